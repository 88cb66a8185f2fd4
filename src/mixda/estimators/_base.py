"""The base class of all estimators: SKADA's domain convention, labels, encoding, predictions.

A method subclasses `MultiSourceClassifier`, stores its parameters in `__init__` and implements
three hooks, `_fit_domains`, `_predict_encoded` and `_rule`, on encoded samples and class codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mixda._core.errors import MixdaError
from mixda._core.namespace import check_dispatched, is_dispatched, namespace, to_numpy
from mixda._core.typing import Array, Codes, Ids, Source
from mixda._core.validation import check_random_state
from mixda.chunks import Domains, RowSource, as_domains
from mixda.estimators._canonical import sort_rows
from mixda.estimators._gaps import fill_empty_features, fit_imputer
from mixda.estimators._large import is_large, predict_large
from mixda.estimators._streams import encoded_streams
from mixda.estimators._summary import summarize_domains
from mixda.estimators._targets import (
    check_forgotten_domains,
    fit_each_target,
    name_targets,
    predict_each_target,
)
from mixda.estimators._to_model import ToModelMixin
from mixda.estimators.encoders import DomainEncoder
from mixda.estimators.utils import (
    check_domains,
    check_samples,
    encode_labels,
    user_errors,
    weighted_rows,
)
from mixda.mixture import Mixture, has_gaps

Self = TypeVar("Self", bound="MultiSourceClassifier")

_PREDICT_REQUEST = {"sample_domain": True, "allow_source": True}


class MultiSourceClassifier(ToModelMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of all estimators, which learn a classifier of the target from labeled sources.

    `sample_domain` follows SKADA: ids of at least 0 are sources, one domain per id; a negative id
    is the target. Target rows of `y` are dropped before anything reads them. Without
    `sample_domain`, all rows of `fit` form one source without a target, and all rows of `predict`
    belong to the target.

    Different negative ids are different targets. `fit` then adapts to each of them by itself:
    `targets_` holds one fitted estimator per id, `predict` sends each row to that of its id, and
    rows of sources get the mean of all. What is about one target, such as `to_model`, is asked of
    ``targets_[-1]``.

    A subclass has the parameters `encoder`, `scale` and `random_state`, and implements

    ``_fit_domains(sources, target, rng)``
        `sources` is a list of ``(Z, codes)``, encoded samples and positions in `classes_`, in the
        order of `sources_`; `target` is an array or None.
    ``_predict_encoded(Z)``
        Probabilities of the classes for encoded samples, shape (n, nc).
    ``_rule()``
        The same function as a `mixda.rules.Rule`, for `to_model`.

    After a fit with a target, `source_mixtures_` and `unlabeled_mixture_` describe the domains in
    the encoded space. For a method that fits no mixtures, they have one Gaussian per class (in
    the target, per predicted class), so that models and reports know the data without a sample.

    Missing values (NaN) are filled with their conditional means under `imputer_`, a mixture of all
    rows, in `fit` and in `predict`. Methods that classify by the posterior of a mixture over the
    features themselves integrate them out instead.
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
    _sorts_rows = False  # whether `fit` sorts rows by value, so that their order does not matter

    encoder: Any
    scale: str | None
    random_state: Any
    _seed: int
    _weights: list[Array] | None  # of each source, then of the target, during a fit with weights
    _large: Domains | None = None  # data of any size, during a fit
    _streams: Mapping[int, RowSource] = MappingProxyType({})  # all their rows, encoded

    def fit(
        self, X: Any, y: Any = None, sample_domain: Any = None, **options: Any
    ) -> MultiSourceClassifier:
        """Learn from labeled sources and an unlabeled target.

        Data that do not fit in memory are given as a mapping of ids to sources of `mixda.chunks`
        or as `mixda.chunks.Domains`, without `y`; as one such source, with `sample_domain` mapping
        the names of its domains to ids; or as a Dask collection with `y` and `sample_domain`.
        Mixtures are then fitted to all rows, everything else to a sample of each domain.

        Parameters
        ----------
        X : array-like of shape (n, d), or data of any size
            Samples of all domains. NaN marks a missing value.
        y : array-like of shape (n,)
            Classes of the source rows. Target rows are never read.
        sample_domain : array-like of shape (n,) or int, optional
            Ids of at least 0 for sources, negative for the target. Default: one source.
        **options
            Rejected. `sample_weight` is an option of the methods over mixtures and of
            `SourceOnly`.

        Returns
        -------
        self
        """
        if options:
            raise MixdaError(
                f"{type(self).__name__}.fit does not use {next(iter(options))}; sample_weight is "
                "used by SourceOnly, GMMWBT, GMMDaDiL and GMMOTDA."
            )
        return self._fit(X, y, sample_domain)

    def _fit(self: Self, X: Any, y: Any, sample_domain: Any, sample_weight: Any = None) -> Self:
        self._large = as_domains(X, y, sample_domain)
        if self._large is None:
            return self._fit_arrays(X, y, sample_domain, sample_weight)
        if sample_weight is not None:
            raise MixdaError("sample_weight must be None for data of any size.")
        try:
            X, y, ids = self._large.arrays()
            alone = sample_domain is None and list(self._large.rows) == [0]
            return self._fit_arrays(X, y, None if alone else ids)
        finally:
            self._large, self._streams = None, {}

    def _fit_arrays(
        self: Self, X: Any, y: Any, sample_domain: Any, sample_weight: Any = None
    ) -> Self:
        if y is None:
            raise MixdaError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                "give the classes of the source rows."
            )
        self._forget()
        given_X, X = X, check_samples(self, X, reset=True)
        if self._large is not None and self._large.feature_names is not None:
            self.feature_names_in_ = np.array(self._large.feature_names, dtype=object)
        with user_errors():
            check_consistent_length(X, y)
        ids = check_domains(sample_domain, len(X), default=0)
        is_source = ids >= 0
        self._check_roles(ids, y, given=sample_domain is not None)
        if len(np.unique(ids[~is_source])) > 1:
            self.targets_ = fit_each_target(self, given_X, y, ids, sample_weight, self._options_of)
            fitted = next(iter(self.targets_.values()))
            self.classes_, self.sources_ = fitted.classes_, fitted.sources_
            return self
        self.classes_, codes = encode_labels(y, is_source, ids)
        weight = None
        if sample_weight is not None:
            X, codes, ids, weight = weighted_rows(X, codes, ids, sample_weight)
        if self._sorts_rows:
            X, codes, ids, weight = sort_rows(X, codes, ids, weight)
        rng = check_random_state(self.random_state)
        self._seed = int(rng.integers(2**31))
        Z = self._encode(X, codes, ids, weight)
        self._fit_encoded(Z, codes, ids, weight, rng)
        return self

    def _encode(self, X: Array, codes: Codes, ids: Ids, weight: Array | None) -> Array:
        """Learn the encoder from the rows of all domains, and return them encoded."""
        if has_gaps(X):
            self.imputer_ = fit_imputer(X, weight)
            if self._integrates_gaps():
                X = fill_empty_features(X, ids, self.imputer_)
            else:
                X = self.imputer_.impute(X)
        self.encoder_ = DomainEncoder(*self._space(codes, ids[ids >= 0]), self._seed)
        return self.encoder_.fit_transform(X, codes, ids, weight)

    def _fit_encoded(
        self, Z: Array, codes: Codes, ids: Ids, weight: Array | None, rng: np.random.Generator
    ) -> None:
        """Split encoded rows by domain, and let the method learn from them."""
        is_source = ids >= 0
        self.sources_ = np.unique(ids[is_source])
        source_Z, source_ids = Z[is_source], ids[is_source]
        sources = [(source_Z[source_ids == k], codes[source_ids == k]) for k in self.sources_]
        target = None if is_source.all() else Z[~is_source]
        sizes = [*(len(Z) for Z, _ in sources), *([] if target is None else [len(target)])]
        self._rows_used = sizes
        if self._large is not None and self._large.is_thinned:
            self._streams = encoded_streams(
                self._large,
                self.encoder_,
                self.classes_,
                getattr(self, "imputer_", None),
                self._integrates_gaps(),
            )
        if weight is not None:
            self._weights = [weight[ids == k] for k in self.sources_] + [weight[~is_source]]
        try:
            self._fit_domains(sources, target, rng)
        finally:
            self._weights = None
        if target is None:
            return
        self._sizes = self._all_rows(sizes)
        if not hasattr(self, "unlabeled_mixture_"):
            predicted = self._predict_encoded(target).argmax(axis=1)
            self.source_mixtures_, self.unlabeled_mixture_ = summarize_domains(
                sources, (target, predicted), self.classes_
            )

    def _all_rows(self, sizes: list[int]) -> Sequence[int | None]:
        """Return the rows of each source and of the target, not only of their samples."""
        if self._large is None:
            return sizes
        samples = self._large.samples
        target = sum(sample.n_rows for key, sample in samples.items() if key < 0)
        return [*(samples[int(k)].n_rows for k in self.sources_), target]

    def predict(self, X: Any, sample_domain: Any = None, allow_source: bool = True) -> Any:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n, d), RowSource, or Dask collection
            For a Dask collection, the result is a Dask array; for a `RowSource`, an iterator over
            one array per partition. Their rows are those of the target. With scikit-learn's array
            dispatch, so are those of a torch or CuPy array, which is classified on its device by
            the rule of `to_model`.
        sample_domain : array-like of shape (n,) or int, optional
            Domains of the rows. Default: the target. Rows of sources are standardized as such
            (see `scale`) and then classified like those of the target. It is required after a fit
            with several targets.
        allow_source : bool
            If False, rows of source domains raise an error.

        Returns
        -------
        ndarray of shape (n,)
        """
        if is_large(X):
            return predict_large(self, X, sample_domain, "predict")
        proba = self.predict_proba(X, sample_domain, allow_source)
        winners: NDArray[Any] = self.classes_[to_numpy(proba.argmax(axis=1))]
        return winners

    def predict_proba(self, X: Any, sample_domain: Any = None, allow_source: bool = True) -> Any:
        """Return the probability of each class, shape (n, nc), columns as in `classes_`.

        Parameters are those of `predict`.
        """
        check_is_fitted(self)
        if is_large(X):
            return predict_large(self, X, sample_domain, "predict_proba")
        if is_dispatched(X):
            return self._predict_dispatched(X, sample_domain)
        given_X, X = X, check_samples(self, X, reset=False)
        if hasattr(self, "targets_") and sample_domain is None:
            known = name_targets(self.targets_)
            raise MixdaError(f"sample_domain must name the target of each row; fit had {known}.")
        ids = check_domains(sample_domain, len(X), default=-1)
        if not allow_source and (ids >= 0).any():
            raise MixdaError(
                f"allow_source is False, but {(ids >= 0).sum()} rows are from source domains; give "
                "target rows (negative ids), or allow_source=True."
            )
        if hasattr(self, "targets_"):
            return predict_each_target(self.targets_, given_X, ids)
        if has_gaps(X) and not self._integrates_gaps():
            X = self._imputer().impute(X)
        return self._predict(X, ids)

    def predict_log_proba(
        self, X: Any, sample_domain: Any = None, allow_source: bool = True
    ) -> Array:
        """Return the logarithm of `predict_proba`; parameters are those of `predict`."""
        with np.errstate(divide="ignore"):
            proba = self.predict_proba(X, sample_domain, allow_source)
            log_proba: Array = namespace(proba).log(proba)
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

    def _options_of(self, rows: Codes, ids: Ids) -> dict[str, Any]:
        """Return further arguments of `fit` for some of the rows."""
        return {}

    def _space(self, codes: Codes, ids: Ids) -> tuple[str | None, Any]:
        """Return `scale` and `encoder`; `codes` and `ids` are those of the source rows."""
        return self.scale, self.encoder

    def _integrates_gaps(self) -> bool:
        """Return whether `_fit_domains` and `_predict_encoded` accept NaN."""
        return False

    def _imputer(self) -> Mixture:
        """Return the mixture whose conditional means fill the gaps of rows to predict."""
        if hasattr(self, "imputer_"):
            imputer: Mixture = self.imputer_
            return imputer
        if not hasattr(self, "unlabeled_mixture_"):
            raise MixdaError(
                "X has missing values (NaN), but the samples of the fit had none and no target; "
                "drop or impute them."
            )
        return self.to_model().gap_mixture()

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        raise NotImplementedError

    def _predict(self, X: Array, ids: Ids) -> Array:
        return self._predict_encoded(self.encoder_.transform(X, ids))

    def _predict_dispatched(self, X: Any, sample_domain: Any) -> Any:
        """Return the probabilities of rows of the target in an array of torch or CuPy."""
        X = check_dispatched(X, self.n_features_in_)
        ids = check_domains(sample_domain, len(X), default=-1)
        if hasattr(self, "targets_") or (ids >= 0).any():
            raise MixdaError(
                f"X is an array of {namespace(X).__name__}, whose rows must all be of the one "
                "target; pass a numpy array for rows of sources, and for several targets use the "
                "estimator of each of them in targets_."
            )
        if has_gaps(X) and not self._integrates_gaps():
            X = self._imputer().impute(X)
        return self._whole_rule()(X)

    def _predict_encoded(self, Z: Array) -> Array:
        raise NotImplementedError

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # of an earlier fit
        self._sizes, self._rows_used, self._streamed = [], [], False
        self._weights = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_roles(self, ids: Ids, y: Any, given: bool) -> None:
        is_source = ids >= 0
        if not given and self._needs_target:
            check_forgotten_domains(type(self).__name__, y)
        if not is_source.any():
            raise MixdaError(
                "sample_domain has no source (all ids are negative); give labeled source rows an "
                "id of at least 0."
            )
        if self._needs_target and given and is_source.all():
            raise MixdaError(
                "sample_domain has no target (no id is negative); give target rows a negative id, "
                "or leave out sample_domain to train without adaptation."
            )
