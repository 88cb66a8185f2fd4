"""GMM-OTDA, the single-source counterpart of GMM-WBT: labels move to the mixture of the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, PathArgument, Source
from mixda._core.validation import check_choice
from mixda.empirical import send_samples
from mixda.estimators._canonical import CanonicalOrder
from mixda.estimators._mixture_classifier import MixtureClassifier
from mixda.estimators.utils import pool, train_head
from mixda.mixture import Mixture, pool_mixtures
from mixda.transport import barycentric_map, transport_plan

__all__ = ["GMMOTDA"]


class GMMOTDA(MixtureClassifier):
    r"""Transport labels or samples from one mixture of all sources to the mixture of the target.

    .. math:: v_j^T = \sum_i \frac{\omega_{ij}}{\sum_{i'} \omega_{i'j}} v_i^S, \qquad
              T_{ij}(x) = m_j^T + \frac{s_j^T}{s_i^S}(x - m_i^S)

    with :math:`\omega` the plan between the two mixtures. Several sources are pooled.

    Parameters
    ----------
    route : {"labels", "samples"}
        "labels": the plan propagates labels to the components of the target, which classify by
        maximum a posteriori or through `classifier`. "samples": each source sample is mapped along
        all pairs of components that match its own, and a classifier is trained on the images,
        weighted by the plan.
    reg : float
        Entropic regularization of the plan; 0 is exact transport.
    n_components, target_components, class_prior, min_std, n_init, encoder, scale, classifier,
    n_samples, checkpoint, random_state, verbose, min_component_rows, preset : see `mixda.GMMWBT`

    Attributes
    ----------
    target_mixture_ : Mixture
    plan_ : ndarray of shape (K_S, K_T)
    source_mixtures_ : list of one Mixture

    References
    ----------
    .. [1] E. Fernandes Montesuma, F. Ngolè Mboula and A. Souloumiac, "Optimal transport for
       domain adaptation through Gaussian mixture models", TMLR 2024.

    Examples
    --------
    >>> from mixda import GMMOTDA
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = GMMOTDA(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model.score(task.X_target, task.y_target) > 0.97
    True
    """

    def __init__(
        self,
        route: str = "labels",
        n_components: int | str = 3,
        target_components: int | str | None = None,
        class_prior: str = "auto",
        min_std: ArrayLike = "auto",
        n_init: int | str = "auto",
        reg: float = 0.0,
        encoder: Any = "auto",
        scale: str | None = "auto",
        classifier: Any = "auto",
        n_samples: int | None = None,
        checkpoint: PathArgument | None = None,
        random_state: Any = None,
        verbose: bool = False,
        min_component_rows: int | str = "auto",
        preset: str = "default",
    ) -> None:
        self.route = route
        self.n_components = n_components
        self.target_components = target_components
        self.class_prior = class_prior
        self.min_std = min_std
        self.n_init = n_init
        self.min_component_rows = min_component_rows
        self.reg = reg
        self.encoder = encoder
        self.scale = scale
        self.classifier = classifier
        self.n_samples = n_samples
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.preset = preset

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        check_choice(self.route, "route", ("labels", "samples"))
        order = CanonicalOrder.of_samples(sources, len(self.classes_)).sources
        self._pooled, self._pooled_weight = pool([sources[i] for i in order]), None
        if self._weights is not None:
            *own, last = self._weights
            self._pooled_weight = np.concatenate([own[i] for i in order])
            self._weights = [self._pooled_weight, last]
        try:
            super()._fit_domains([self._pooled], target, rng)
        finally:
            del self._pooled, self._pooled_weight

    def _finish(self, sources: list[Mixture], target: Mixture) -> None:
        if check_choice(self.route, "route", ("labels", "samples")) == "samples" and not hasattr(
            self, "_pooled"
        ):
            raise MixdaError(
                "route='samples' needs samples, which mixtures do not hold; use route='labels', or "
                "fit the estimator to data."
            )
        super()._finish([pool_mixtures(sources)], target)

    def _train_classifier(self, rng: np.random.Generator) -> Any:
        if self.route == "labels" or not hasattr(self, "plan_"):
            return super()._train_classifier(rng)
        Z, codes = self._pooled
        images, rows, weights = send_samples(
            Z,
            codes,
            self.source_mixtures_[0],
            self.unlabeled_mixture_,
            self.plan_,
            self._pooled_weight,
        )
        head = None if super()._is_map() else self._chosen("classifier")
        return train_head(head, self._seed, images, codes[rows], weights)

    def _integrates_gaps(self) -> bool:
        return super()._integrates_gaps() and self.route == "labels"

    def _is_map(self) -> bool:
        by_samples = self.route == "samples" and hasattr(self, "plan_")
        return super()._is_map() and not by_samples

    def _adapt(self, sources: list[Mixture], target: Mixture, rng: np.random.Generator) -> Mixture:
        order, classes = CanonicalOrder.of(sources), sources[0].classes
        (source,) = order.sorted_sources(sources)
        plan = transport_plan(source, target, reg=self.reg).plan
        labels = barycentric_map(target, source, plan.T).labels
        self.plan_ = plan[np.argsort(order.components(sources[0]))]
        adapted = Mixture(target.weights, target.means, target.stds, labels)
        return order.with_given_classes(adapted, np.asarray(classes))
