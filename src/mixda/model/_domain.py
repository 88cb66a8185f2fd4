"""A domain of a model: its name and its mixture."""

from __future__ import annotations

from dataclasses import dataclass

from mixda._core.errors import MixdaError
from mixda.mixture import Mixture


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain of a model.

    Attributes
    ----------
    name : str
    mixture : Mixture
        In the *encoded* space of the model; labeled for sources.
    n_samples : int or None
        Number of samples, if known.
    """

    name: str
    mixture: Mixture
    n_samples: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.mixture, Mixture):
            raise MixdaError(
                f"name must be a string and mixture a Mixture, got {self.name!r} and a "
                f"{type(self.mixture).__name__}."
            )
        if not isinstance(self.n_samples, (int, type(None))):
            raise MixdaError(f"n_samples must be an integer or None, got {self.n_samples!r}.")
