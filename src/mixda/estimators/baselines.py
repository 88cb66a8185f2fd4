"""Lower and upper bound of every method: trained on the sources alone, or on target labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Codes, Ids, Source
from mixda.estimators._base import MultiSourceClassifier
from mixda.estimators._export import rule_of
from mixda.estimators.utils import head_proba, pool, train_head
from mixda.rules import Rule

__all__ = ["SourceOnly", "TargetOnly"]


class SourceOnly(MultiSourceClassifier):
    r"""Train one classifier on all sources together and apply it to the target unchanged.

    .. math:: \min_h \sum_\ell \sum_i \mathcal{L}\bigl(h(x_i^\ell), y_i^\ell\bigr)

    Parameters
    ----------
    classifier : classifier, optional
        Any scikit-learn classifier; default a logistic regression.
    encoder, scale : see `mixda.GMMWBT`
        ``scale="domain"`` standardizes each domain by its own moments, a simple adaptation.
    random_state : None, int or numpy generator

    Attributes
    ----------
    classifier_ : classifier

    Examples
    --------
    >>> from mixda import SourceOnly
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = SourceOnly().fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model.score(task.X_target, task.y_target) < 0.9
    True
    """

    _needs_target = False

    def __init__(
        self,
        classifier: Any = None,
        encoder: Any = None,
        scale: str | None = "auto",
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.encoder = encoder
        self.scale = scale
        self.random_state = random_state

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_domain: Any = None, sample_weight: Any = None
    ) -> SourceOnly:
        """Learn from labeled sources.

        Parameters
        ----------
        X, y, sample_domain : see `MultiSourceClassifier.fit`
        sample_weight : array-like of shape (n,), optional
            Weight of each row in the moments of its domain (`scale`) and in the classifier, which
            must accept weights. Rows of weight zero are left out.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_domain, sample_weight)

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        weight = None if self._weights is None else np.concatenate(self._weights[: len(sources)])
        self.classifier_ = train_head(self.classifier, self._seed, *pool(sources), weight)

    def _predict_encoded(self, Z: Array) -> Array:
        return head_proba(self.classifier_, Z, len(self.classes_))

    def _rule(self) -> Rule:
        return rule_of(self.classifier_, len(self.classes_))


class TargetOnly(SourceOnly):
    r"""Train on the target's own labels: an upper bound, not a method.

    The labels are a separate argument, ``fit(..., target_labels=...)``, with one label per target
    row in the same order; as in all methods, `y` is never read on target rows. Without
    `sample_domain`, this is an ordinary classifier.

    .. math:: \min_h \sum_i \mathcal{L}\bigl(h(x_i^T), y_i^T\bigr)

    Parameters
    ----------
    classifier, encoder, scale, random_state : see `SourceOnly`

    Examples
    --------
    >>> from mixda import TargetOnly
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = TargetOnly()
    >>> _ = model.fit(task.X, task.y, task.sample_domain, target_labels=task.y_target)
    >>> model.score(task.X_target, task.y_target) > 0.99
    True
    """

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_domain: Any = None, target_labels: Any = None
    ) -> TargetOnly:
        """Train on the target labels.

        Parameters
        ----------
        X, y, sample_domain : see `SourceOnly.fit`
        target_labels : array-like of shape (n_target,)
            Classes of the rows with a negative `sample_domain`, in the same order.

        Returns
        -------
        self
        """
        self._target_labels = target_labels
        try:
            return self._fit(X, y, sample_domain)
        finally:
            del self._target_labels

    def _options_of(self, rows: Codes, ids: Ids) -> dict[str, Any]:
        labels, n_target = self._target_labels, int((ids < 0).sum())
        if labels is None:
            return {}
        if len(labels) != n_target:
            raise MixdaError(
                f"target_labels must have one class for each of the {n_target} target rows, got "
                f"{len(labels)} value(s)."
            )
        places = np.cumsum(ids < 0) - 1
        return {"target_labels": np.asarray(labels)[places[rows][ids[rows] < 0]]}

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        if target is None:
            return super()._fit_domains(sources, target, rng)
        if self._target_labels is None:
            raise MixdaError(
                "TargetOnly needs target labels; give them as fit(..., target_labels=...), or use "
                "SourceOnly."
            )
        labels = np.asarray(self._target_labels)
        codes = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        if labels.shape != (len(target),) or (self.classes_[codes] != labels).any():
            raise MixdaError(
                f"target_labels must have one known class for each of the {len(target)} target "
                f"rows, got {labels.size} value(s); classes are {self.classes_.tolist()}."
            )
        self.classifier_ = train_head(self.classifier, self._seed, target, codes)
        return None
