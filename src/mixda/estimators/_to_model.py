"""A fitted estimator as a value: `to_model`, and what is done with the model at once."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixda._core.errors import MixdaError
from mixda._core.typing import Ids
from mixda._version import __version__
from mixda.estimators._targets import name_targets
from mixda.estimators.encoders import DomainEncoder
from mixda.mixture import Mixture
from mixda.model import AdaptedModel, Domain, Explanation, default_names, outlier_threshold
from mixda.rules import Chain, Rule


class ToModelMixin:
    """Base of `MultiSourceClassifier`: turns a fitted estimator into an `AdaptedModel`."""

    get_params: Callable[..., dict[str, Any]]
    classes_: NDArray[Any]
    sources_: Ids
    n_features_in_: int
    encoder_: DomainEncoder
    targets_: Mapping[int, Any]
    source_mixtures_: list[Mixture]
    unlabeled_mixture_: Mixture
    _sizes: Sequence[int | None]  # samples of each source, then of the target, where known
    _rows_used: list[int]  # of each source, then of the target, those in memory
    _streamed = False  # whether mixtures were fitted to more rows than these

    def to_model(self, domain_names: Sequence[str] | None = None) -> AdaptedModel:
        """Return the fitted classifier of the target as a value that can be saved.

        Parameters
        ----------
        domain_names : sequence of str, optional
            Names of the sources in the order of `sources_`, then of the target. Default:
            "source 0", …, "target".

        Returns
        -------
        AdaptedModel
            It makes the same predictions and holds mixtures of the domains, but no samples.
        """
        self._check_adapted()
        *sources, target = self._domains(domain_names)
        given = getattr(self, "feature_names_in_", None)
        return AdaptedModel(
            feature_names=default_names(self.n_features_in_) if given is None else tuple(given),
            classes=self.classes_,
            method=type(self).__name__,
            rule=self._whole_rule(),
            encoder=self.encoder_.rule(),
            sources=tuple(sources),
            target=target,
            novelty_threshold=outlier_threshold([d.mixture for d in (*sources, target)]),
            imputer=getattr(self, "imputer_", None),
            settings=self._settings(),
            **self._adapted(),
        )

    def explain(self, row: Any, against: Any = None) -> Explanation:
        """Explain why a row of the target got its class; see `AdaptedModel.explain`."""
        return self.to_model().explain(row, against)

    def save(
        self,
        path: str | Path,
        domain_names: Sequence[str] | None = None,
        allow_exposed_rows: bool = False,
    ) -> None:
        """Write `to_model` to `path` (customarily ``.mixda``), atomically.

        Parameters
        ----------
        path : path
        domain_names : see `to_model`
        allow_exposed_rows : see `AdaptedModel.save`
        """
        self.to_model(domain_names).save(path, allow_exposed_rows)

    def report(
        self,
        path: str | Path,
        X: Any = None,
        y: Any = None,
        title: str | None = None,
        domain_names: Sequence[str] | None = None,
    ) -> Path:
        """Write a report of the adaptation, one HTML page, to `path`.

        Parameters
        ----------
        path : path
        X, y, title : see `AdaptedModel.report`
        domain_names : see `to_model`

        Returns
        -------
        Path
        """
        return self.to_model(domain_names).report(path, X=X, y=y, title=title)

    def _rule(self) -> Rule:
        """Return the rule from encoded samples to the probabilities of the classes."""
        raise NotImplementedError

    def _whole_rule(self) -> Rule:
        """Return the rule from raw features of the target to the probabilities."""
        encoder, head = self.encoder_.rule(), self._rule()
        return head if encoder is None else Chain((encoder, head))

    def _adapted(self) -> dict[str, Any]:
        """Return what else a model keeps: `labeled_target`, `dictionary`, `plan`."""
        return {}

    def _check_adapted(self) -> None:
        check_is_fitted(self)
        if hasattr(self, "targets_"):
            raise MixdaError(
                f"this {type(self).__name__} was fitted to {name_targets(self.targets_)}; use the "
                f"estimator of one of them, such as targets_[{next(iter(self.targets_))}]."
            )
        if not hasattr(self, "unlabeled_mixture_"):
            raise MixdaError(
                f"this {type(self).__name__} was fitted without a target; call "
                "fit(X, y, sample_domain=...) with some negative ids first."
            )

    def _domains(self, names: Sequence[str] | None) -> list[Domain]:
        """Return the domains of a model; sources that the method pooled are one domain."""
        if names is None:
            names = [*(f"source {k}" for k in self.sources_), "target"]
        if isinstance(names, str) or len(names) != len(self.sources_) + 1:
            raise MixdaError(
                f"domain_names must be {len(self.sources_) + 1} names, the sources first and the "
                f"target last, got {names!r}."
            )
        names, sizes = [str(name) for name in names], self._sizes
        if len(self.source_mixtures_) < len(self.sources_):
            known = [size for size in sizes[:-1] if size is not None]
            total = sum(known) if len(known) == len(self.sources_) else None
            names, sizes = [" + ".join(names[:-1]), names[-1]], [total, sizes[-1]]
        mixtures = [*self.source_mixtures_, self.unlabeled_mixture_]
        return [Domain(*parts) for parts in zip(names, mixtures, sizes, strict=True)]

    def _settings(self) -> dict[str, Any]:
        """Return parameters, versions and date of the fit as JSON."""
        parameters = {name: as_json(value) for name, value in self.get_params(deep=False).items()}
        parameters.pop("checkpoint", None)  # a place on this machine
        return {
            "parameters": parameters,
            "rows_used": self._rows_used,
            "streamed": self._streamed,
            "versions": {
                "mixda": __version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }


def as_json(value: Any) -> Any:
    """Return a parameter as JSON, or the name of an object."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return repr(value) if isinstance(value, BaseEstimator) else type(value).__name__
