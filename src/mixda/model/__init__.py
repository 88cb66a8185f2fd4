"""A fitted classifier of the target as a value, and its ``.mixda`` file."""

from mixda.model._model import AdaptedModel, Domain, load
from mixda.model._model import default_names as default_names
from mixda.model._model import novelty_threshold as novelty_threshold
from mixda.model._trust import Trust
from mixda.model._trust import describe_trust as describe_trust
from mixda.model._trust import describe_trust_in_rows as describe_trust_in_rows
from mixda.model._trust import estimate_holds as estimate_holds
from mixda.model._trust import trust_numbers as trust_numbers
from mixda.model._trust import trust_range as trust_range
from mixda.model._trust import trust_reason as trust_reason
from mixda.model._trust import trust_sentence as trust_sentence

__all__ = ["AdaptedModel", "Domain", "Trust", "load"]
