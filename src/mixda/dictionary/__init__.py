"""Dictionaries of mixtures (Algorithm 2 of the paper)."""

from mixda.dictionary._checkpoint import dictionary_checkpoint as dictionary_checkpoint
from mixda.dictionary._dictionary import Dictionary, History
from mixda.dictionary._dictionary import Record as Record
from mixda.dictionary._engine import Engine as Engine
from mixda.dictionary._engine import align_atoms as align_atoms
from mixda.dictionary._learn import learn_dictionary
from mixda.dictionary._optimizers import Adam as Adam
from mixda.dictionary._optimizers import coordinate_gradient as coordinate_gradient
from mixda.dictionary._quadratic import project_simplex as project_simplex
from mixda.dictionary._state import State as State

__all__ = ["Dictionary", "History", "learn_dictionary"]
