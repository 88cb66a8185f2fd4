"""The adapted classifier as a value and as a file (.mixda): `adapt` makes it, `predict` uses it.

A model is numbers only: rules, mixtures and names. It holds no sample of any domain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._validation import Array
from mixda.dictionary import Dictionary
from mixda.mixture import Mixture
from mixda.rules import Rule


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain as a model remembers it.

    Attributes
    ----------
    name : str
    mixture : Mixture
        In the *encoded* space of the model; labelled for sources.
    n_samples : int or None
        How many samples it was fitted to, if that is known.
    """

    name: str
    mixture: Mixture
    n_samples: int | None = None


@dataclass(frozen=True, eq=False)
class AdaptedModel:
    """A classifier of one target, with all that a report says about it.

    Attributes
    ----------
    feature_names : tuple of str
        The columns of `X`, in order; "x0", "x1", … if the user gave none.
    classes : ndarray of shape (nc,)
    method : str
        Name of the estimator: "GMMDaDiL", …
    rule : Rule
        Raw features → class probabilities; the encoder of the target is part of it.
    encoder : Rule or None
        Raw features → the space of the mixtures below; None if that is the same space.
    sources : tuple of Domain
    target : Domain
        With an unlabelled mixture.
    labeled_target : Mixture or None
        Methods over mixtures: the adapted mixture.
    dictionary : Dictionary or None
        GMM-DaDiL: atoms, coordinates, history.
    plan : ndarray of shape (K, K_T) or None
        Methods over mixtures: transport to `target`'s components from those of `labeled_target`
        (GMM-WBT: the barycentre it was; GMM-DaDiL: the reconstruction), or of the one source of
        GMM-OTDA.
    novelty_threshold : float
        Log-density under which a sample is far from everything known; see `novelty`.
    trust : dict or None
        JSON: {"accuracy", "low", "high", "level", "declined", "reason", "candidates"}.
    settings : dict
        JSON: parameters, seed, versions, date.
    """

    feature_names: tuple[str, ...]
    classes: NDArray[Any]
    method: str
    rule: Rule
    encoder: Rule | None
    sources: tuple[Domain, ...]
    target: Domain
    labeled_target: Mixture | None = None
    dictionary: Dictionary | None = None
    plan: Array | None = None
    novelty_threshold: float = -np.inf
    trust: dict[str, Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, shape (n, nc), columns as in `classes`."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row, shape (n,)."""
        raise NotImplementedError

    def novelty(self, X: Any) -> NDArray[np.bool_]:
        """Return which rows are far from everything the model knows, shape (n,)."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the model to `path` (customarily ``.mixda``), atomically."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | Path) -> AdaptedModel:
        """Read a model written by `save`; bit for bit the same."""
        raise NotImplementedError

    def report(self, path: str | Path, X: Any = None, y: Any = None, title: Any = None) -> Path:
        """Write the report, one HTML page, to `path`."""
        from mixda.report import write_report

        return write_report(self, path, X=X, y=y, title=title)
