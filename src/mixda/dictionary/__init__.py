"""Dictionaries of mixtures (Algorithm 2 of the paper)."""

from mixda.dictionary._checkpoint import kept_dictionary as kept_dictionary
from mixda.dictionary._dictionary import Dictionary, History
from mixda.dictionary._engine import Engine as Engine
from mixda.dictionary._engine import Reconstruction as Reconstruction
from mixda.dictionary._engine import State as State
from mixda.dictionary._engine import project_simplex as project_simplex
from mixda.dictionary._learn import learn_dictionary
from mixda.dictionary._optimizers import Adam as Adam
from mixda.dictionary._optimizers import coordinate_gradient as coordinate_gradient

__all__ = ["Dictionary", "History", "learn_dictionary"]
