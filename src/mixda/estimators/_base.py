"""What every estimator shares: SKADA's domain convention, labels, encoding and predictions.

A method subclasses `MultiSourceClassifier`, keeps its parameters in `__init__` and writes three
hooks, `_fit_domains`, `_predict_encoded` and `_rule`, that see encoded samples and integer classes.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from mixda import __version__
from mixda._validation import Array, check_magnitude, check_random_state
from mixda.em import fit_labeled_mixture
from mixda.estimators._encoders import DomainEncoder, Ids, seeded
from mixda.mixture import Mixture
from mixda.model import AdaptedModel, Domain, default_names, novelty_threshold
from mixda.rules import Chain, Rule

Codes = NDArray[np.intp]
Source = tuple[Array, Codes]

_FLOOR = 0.1  # of a feature's spread: 0.001 costs GMM-DaDiL up to half its accuracy on MLP features
_PREDICT_REQUEST = {"sample_domain": True, "allow_source": True}


class MultiSourceClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators: labelled source domains in, a classifier of the target out.

    `sample_domain` follows SKADA: ids of at least 0 are sources, one domain per id, and negative
    ids are the target (several negative ids are one target). Target rows of `y` are dropped
    before anything looks at them. Without `sample_domain`, all rows of `fit` are one source with
    nothing to adapt to, and all rows to predict are the target's.

    A subclass has the parameters `encoder`, `scale` and `random_state`, and implements

    ``_fit_domains(sources, target, rng)``
        `sources` is a list of ``(Z, codes)``, encoded samples and positions in `classes_`, one
        pair per source in the order of `sources_`; `target` is an array or None.
    ``_predict_encoded(Z)``
        Probabilities of the classes for encoded samples, shape (n, nc).
    ``_rule()``
        The same as a `mixda.rules.Rule`, for `to_model`.

    After a fit with a target there are `source_mixtures_` and `unlabeled_mixture_`: a method that
    does not fit mixtures of its own gets one Gaussian per class and domain in the encoded space
    (per predicted class in the target), in closed form, so that models and reports know where the
    data were without holding a sample.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    __metadata_request__predict = _PREDICT_REQUEST
    __metadata_request__predict_proba = _PREDICT_REQUEST
    __metadata_request__predict_log_proba = _PREDICT_REQUEST
    __metadata_request__score: ClassVar[dict[str, bool]] = {
        "sample_weight": True,  # SKADA's importance-weighted scorer asks for it
        **_PREDICT_REQUEST,
    }

    _needs_target = True  # whether sample_domain without a negative id is a mistake

    encoder: Any
    scale: Any
    random_state: Any
    _seed: int
    _sizes: list[int | None]  # samples of each source, then of the target, where known

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> MultiSourceClassifier:
        """Learn from labelled sources and an unlabelled target.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Samples of all domains.
        y : array-like of shape (n,)
            Classes of the source rows; what stands on target rows is never read.
        sample_domain : array-like of shape (n,) or int, optional
            Ids of at least 0 for sources, negative for the target. Default: one source.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                "give the classes of the source rows."
            )
        self._forget()
        X = validate_data(self, X, dtype=np.float64)
        check_magnitude(X, "X")
        check_consistent_length(X, y)
        ids = check_domains(sample_domain, len(X), default=0)
        is_source = ids >= 0
        self._check_roles(is_source, given=sample_domain is not None)
        self.classes_, codes = encode_labels(y, is_source, ids)
        rng = check_random_state(self.random_state)
        self._seed = int(rng.integers(2**31))
        self.encoder_ = DomainEncoder(self.scale, self.encoder, self._seed)
        Z = self.encoder_.fit_transform(X, codes, ids)
        self.sources_ = np.unique(ids[is_source])
        source_Z, source_ids = Z[is_source], ids[is_source]
        sources = [(source_Z[source_ids == k], codes[source_ids == k]) for k in self.sources_]
        target = None if is_source.all() else Z[~is_source]
        self._fit_domains(sources, target, rng)
        if target is not None:
            self._sizes = [*(len(Z) for Z, _ in sources), len(target)]
            if not hasattr(self, "unlabeled_mixture_"):
                self._summarize(sources, target)
        return self

    def predict(self, X: Any, sample_domain: Any = None, allow_source: bool = True) -> NDArray[Any]:
        """Return the most probable class of every row.

        Parameters
        ----------
        X : array-like of shape (n, d)
        sample_domain : array-like of shape (n,) or int, optional
            Where the rows come from; by default the target. Rows of sources are standardised as
            such (see `scale`) and then classified by the target's model.
        allow_source : bool
            If False, rows of source domains are an error.

        Returns
        -------
        ndarray of shape (n,)
        """
        proba = self.predict_proba(X, sample_domain, allow_source)
        winners: NDArray[Any] = self.classes_[proba.argmax(axis=1)]
        return winners

    def predict_proba(self, X: Any, sample_domain: Any = None, allow_source: bool = True) -> Array:
        """Return the probability of every class, shape (n, nc), columns as in `classes_`.

        Parameters are those of `predict`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        check_magnitude(X, "X")
        ids = check_domains(sample_domain, len(X), default=-1)
        if not allow_source and (ids >= 0).any():
            raise ValueError(
                f"{(ids >= 0).sum()} of the rows to predict are of source domains, but "
                "allow_source is False; give target rows (negative ids) or allow_source=True."
            )
        return self._predict(X, ids)

    def predict_log_proba(
        self, X: Any, sample_domain: Any = None, allow_source: bool = True
    ) -> Array:
        """Return the logarithm of `predict_proba`; parameters are those of `predict`."""
        with np.errstate(divide="ignore"):
            log_proba: Array = np.log(self.predict_proba(X, sample_domain, allow_source))
        return log_proba

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sample_domain: Any = None,
        allow_source: bool = True,
    ) -> float:
        """Return the accuracy of `predict` on the given rows, whose `y` must be their classes."""
        from sklearn.metrics import accuracy_score

        predicted = self.predict(X, sample_domain, allow_source)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def to_model(self, domain_names: Sequence[str] | None = None) -> AdaptedModel:
        """Return the fitted classifier of the target as a value that can be saved.

        Parameters
        ----------
        domain_names : sequence of str, optional
            Of the sources in the order of `sources_`, then of the target; default "source 0" …
            "target".

        Returns
        -------
        AdaptedModel
            It predicts the same, and holds mixtures of the domains but none of their samples.
        """
        self._check_adapted()
        encoder, head = self.encoder_.rule(), self._rule()
        *sources, target = self._domains(domain_names)
        given = getattr(self, "feature_names_in_", None)
        return AdaptedModel(
            feature_names=default_names(self.n_features_in_) if given is None else tuple(given),
            classes=self.classes_,
            method=type(self).__name__,
            rule=head if encoder is None else Chain((encoder, head)),
            encoder=encoder,
            sources=tuple(sources),
            target=target,
            novelty_threshold=novelty_threshold([d.mixture for d in (*sources, target)]),
            settings=self._settings(),
            **self._adapted(),
        )

    def save(self, path: str | Path, domain_names: Sequence[str] | None = None) -> None:
        """Write `to_model` to `path` (customarily ``.mixda``), atomically."""
        self.to_model(domain_names).save(path)

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

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        raise NotImplementedError

    def _predict(self, X: Array, ids: Ids) -> Array:
        return self._predict_encoded(self.encoder_.transform(X, ids))

    def _predict_encoded(self, Z: Array) -> Array:
        raise NotImplementedError

    def _rule(self) -> Rule:
        raise NotImplementedError

    def _adapted(self) -> dict[str, Any]:
        """Return what else a model keeps: `labeled_target`, `dictionary`, `plan`."""
        return {}

    def _check_adapted(self) -> None:
        check_is_fitted(self)
        if not hasattr(self, "unlabeled_mixture_"):
            raise ValueError(
                f"this {type(self).__name__} was fitted without a target, so there is no adapted "
                "model; call fit(X, y, sample_domain=...) with some negative ids first."
            )

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # nothing of an earlier fit may decide
        self._sizes = []

    def _summarize(self, sources: list[Source], target: Array) -> None:
        domains = [*(Z for Z, _ in sources), target]
        largest = max(np.abs(Z).max() for Z in domains)
        floor = std_floor([Z.var(axis=0) for Z in domains], largest)

        def gaussians(Z: Array, codes: Codes) -> Mixture:
            return fit_labeled_mixture(
                Z,
                self.classes_[codes],
                1,
                class_prior="empirical",
                classes=self.classes_,
                min_std=floor,
                random_state=0,
            )

        self.source_mixtures_ = [gaussians(Z, codes) for Z, codes in sources]
        predicted = gaussians(target, self._predict_encoded(target).argmax(axis=1))
        self.unlabeled_mixture_ = replace(predicted, labels=None, classes=None)

    def _domains(self, names: Sequence[str] | None) -> list[Domain]:
        """Return the domains of a model; sources that the method took as one are one here too."""
        if names is None:
            names = [*(f"source {k}" for k in self.sources_), "target"]
        if isinstance(names, str) or len(names) != len(self.sources_) + 1:
            raise ValueError(
                f"domain_names must be {len(self.sources_) + 1} names, those of the sources and "
                f"then the target's, got {names!r}."
            )
        names, sizes = [str(name) for name in names], self._sizes
        if len(self.source_mixtures_) < len(self.sources_):
            known = [size for size in sizes[:-1] if size is not None]
            total = sum(known) if len(known) == len(self.sources_) else None
            names, sizes = [" + ".join(names[:-1]), names[-1]], [total, sizes[-1]]
        mixtures = [*self.source_mixtures_, self.unlabeled_mixture_]
        return [Domain(*parts) for parts in zip(names, mixtures, sizes, strict=True)]

    def _settings(self) -> dict[str, Any]:
        parameters = {name: _as_json(value) for name, value in self.get_params(deep=False).items()}
        parameters.pop("checkpoint", None)  # a place on this machine
        return {
            "parameters": parameters,
            "versions": {
                "mixda": __version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }

    def _check_roles(self, is_source: NDArray[np.bool_], given: bool) -> None:
        if not is_source.any():
            raise ValueError(
                "sample_domain names no source domain (all ids are negative); "
                "give labelled source rows an id of 0 or more."
            )
        if self._needs_target and given and is_source.all():
            raise ValueError(
                "sample_domain names no target (no id is negative); give target rows a negative "
                "id, or leave sample_domain out to train on labelled rows without adaptation."
            )


def train_head(
    classifier: Any, seed: int, Z: Array, codes: Codes, sample_weight: Array | None = None
) -> Any:
    """Fit a clone of any scikit-learn classifier (default a logistic regression) on `codes`."""
    if classifier is None:
        classifier = LogisticRegression(max_iter=1000)
    if not hasattr(classifier, "fit"):
        raise ValueError(
            f"classifier must be a scikit-learn classifier or None, got {classifier!r}."
        )
    if len(np.unique(codes)) == 1:
        return DummyClassifier(strategy="most_frequent").fit(Z, codes)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return seeded(classifier, seed).fit(Z, codes, **weights)


def head_proba(head: Any, Z: Array, n_classes: int) -> Array:
    """Probabilities (n, n_classes) of a head that may know fewer classes, or only decide."""
    proba = np.zeros((len(Z), n_classes))
    if hasattr(head, "predict_proba"):
        proba[:, head.classes_] = head.predict_proba(Z)
    else:
        proba[np.arange(len(Z)), head.predict(Z)] = 1.0
    return proba


def std_floor(variances: list[Array], largest: float) -> Array:
    """Smallest standard deviation of each feature: a share of its spread within the domains.

    `variances` are those of the features, one array per domain; `largest` is the largest absolute
    value anywhere, in case that all is constant.
    """
    spread = np.sqrt(np.mean(variances, axis=0))
    least = 1e-12 * largest or 1e-6  # all is constant, or zero
    floor: Array = np.maximum(_FLOOR * np.maximum(spread, spread.mean()), least)
    return floor


def pool(sources: list[Source]) -> Source:
    """All sources as one."""
    return np.vstack([Z for Z, _ in sources]), np.concatenate([codes for _, codes in sources])


def check_domains(sample_domain: Any, n: int, default: int) -> NDArray[np.int64]:
    """Return one id per row: those given, one for all, or the default."""
    if sample_domain is None:
        return np.full(n, default)
    ids = np.asarray(sample_domain)
    if ids.ndim == 0:
        ids = np.full(n, ids)
    if ids.shape != (n,):
        raise ValueError(
            f"sample_domain must hold one id per row of X ({n}), got an array of shape {ids.shape}."
        )
    try:
        numbers = ids.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(n, np.nan)
    if not ((np.abs(numbers) < 2**53) & (numbers == np.round(numbers))).all():
        raise ValueError(
            "sample_domain must hold integers: 0 or more for sources, negative for the target; "
            "number the domains that have names."
        )
    return numbers.astype(np.int64)


def encode_labels(
    y: Any, is_source: NDArray[np.bool_], ids: NDArray[np.int64]
) -> tuple[NDArray[Any], Codes]:
    """Names of the classes and the code of every source row; target rows go before all else."""
    if isinstance(y, (list, tuple)):  # not as one array: target values would choose its dtype
        y = [label for label, kept in zip(y, is_source, strict=True) if kept]
        labels = np.asarray(y)
    else:
        labels = np.asarray(y)[is_source]
    labels = column_or_1d(labels, warn=True)
    missing = _is_missing(labels)
    if missing.any():
        domain = ids[is_source][missing][0]
        raise ValueError(
            f"y contains NaN, infinity or None on {missing.sum()} row(s) of source domains (the "
            f"first in domain {domain}); drop them, or mark them as target with a negative id."
        )
    if labels.dtype.kind == "O" and not all(isinstance(label, str) for label in labels):
        labels = np.array(labels.tolist())
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"the source rows of y hold one class only ({classes.tolist()[0]!r}); a classifier "
            "needs at least two classes."
        )
    return classes, codes


def _as_json(value: Any) -> Any:
    """Return a parameter as JSON, or in words if it is an object."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return repr(value) if isinstance(value, BaseEstimator) else type(value).__name__


def _is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    if labels.dtype.kind == "f":
        missing: NDArray[np.bool_] = ~np.isfinite(labels)
        return missing
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.array([label is None or label != label for label in labels], dtype=bool)
