"""A fitted classifier of the target as a value, and its ``.mixda`` file."""

from mixda.model._domain import Domain
from mixda.model._explain import Contribution, Explanation, MemberVote, Neighbor, Shift
from mixda.model._linear import as_linear as as_linear
from mixda.model._linear import decode as decode
from mixda.model._model import AdaptedModel, load
from mixda.model._model import novelty_threshold as novelty_threshold
from mixda.model._outliers import outlier_threshold as outlier_threshold
from mixda.model._reference import Reference
from mixda.model._reference import shares_below as shares_below
from mixda.model._rows import default_names as default_names
from mixda.model._sampling import describe_sampling as describe_sampling
from mixda.model._trust import Trust

__all__ = [
    "AdaptedModel",
    "Contribution",
    "Domain",
    "Explanation",
    "MemberVote",
    "Neighbor",
    "Reference",
    "Shift",
    "Trust",
    "load",
]
