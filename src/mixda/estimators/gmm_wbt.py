"""GMM-WBT: the barycenter of the sources, transported onto the target, classifies it.

The numerics are in `mixda.barycenters` and `mixda.transport`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.typing import PathArgument
from mixda._core.validation import check_simplex, is_word
from mixda.barycenters import barycenter
from mixda.estimators._canonical import CanonicalOrder
from mixda.estimators._mixture_classifier import MixtureClassifier
from mixda.mixture import Mixture
from mixda.transport import barycentric_map, transport_plan

__all__ = ["GMMWBT"]


class GMMWBT(MixtureClassifier):
    r"""Classify the target by the barycenter of the sources, transported onto it (GMM-WBT).

    .. math:: B = \arg\min_B \sum_\ell \lambda_\ell \, \mathcal{SMW}_2(B, Q_\ell)^2, \qquad
              \hat m_i = \sum_j \frac{\omega_{ij}}{b_i} m_j^T, \quad
              \hat s_i = \sum_j \frac{\omega_{ij}}{b_i} s_j^T, \quad \hat v_i = v_i^B

    with :math:`\omega` the optimal plan from :math:`B` to the unlabeled target mixture.

    Parameters
    ----------
    n_components : int or "bic"
        Components per class in each source mixture, at most one per sample.
    target_components : int, "bic" or None
        Components of the unlabeled target mixture, at most one per sample. Default: as many as
        the largest source mixture has.
    class_prior : {"auto", "empirical", "uniform"}
        Mass of each class in a source mixture: its share of the samples, or equal, as in the code
        of the authors.
    min_std : "auto", float or array-like of shape (d,)
        Floor of the standard deviations of the mixtures, in the encoded space. "auto" is a tenth
        of the standard deviation of each feature within the domains, and at least a tenth of the
        average over features (`mixda.estimators.utils.std_floor`). It is much higher than that of
        `mixda.fit_mixture`, so that a nearly constant feature, such as a dead unit of a network,
        does not dominate.
    n_init : int or "auto"
        Number of random initializations of each EM; the best likelihood wins. By default there is
        one, which depends on the data alone (``init="systematic"`` of `mixda.fit_mixture`).
    source_weights : array-like of shape (N,), optional
        Barycentric coordinates λ of the sources, in the order of their ids. Default: uniform.
    beta : float, "auto" or "max"
        Weight of the labels in the barycenter; see `mixda.barycenter`.
    component_weights : {"auto", "free", "start", "uniform"} or array-like
        Weights of the barycenter's components; see `mixda.barycenter`.
    reg, reg_m : float, float or None
        Entropic and unbalanced transport to the target; see `mixda.transport_plan`. If `reg_m` is
        given, the target mixture has the weights of the unbalanced plan, so that its class
        proportions may differ from those of the sources.
    encoder : {"auto", "lda", "mlp"}, transformer or None
        Features to adapt in, learned from the labeled sources: linear discriminants
        (`mixda.estimators.LDAEncoder`), the last hidden layer of a network
        (`mixda.estimators.MLPEncoder`), or any scikit-learn transformer. `fit_mixtures` has no
        samples to learn from and uses the features.
    scale : {"auto", "domain", "sources", None}
        Standardization before the encoder: each domain by its own moments (a strong adaptation,
        but it mistakes different class proportions for a shift), all domains by the moments of
        the sources, or none.
    classifier : {"auto", "map", "product"} or classifier
        Maximum a posteriori under the target mixture (section 3.2); the product of its
        probabilities with those of a logistic regression on the sources, which is robust to wrong
        matches of components; or a scikit-learn classifier, trained on samples of the mixture.
    n_samples : int, optional
        Number of these samples. Default: 50 per component.
    checkpoint : path, optional
        Folder for the mixtures that took more than a moment to fit (and the state of the
        dictionary of GMM-DaDiL). An interrupted fit that is started again reads them, with the
        same result. Delete the folder when you no longer need it.
    random_state : None, int or numpy generator
    verbose : bool
        Show progress on a terminal.
    min_component_rows : int or "auto"
        Merge components of the domains' mixtures until each mean averages at least this many
        rows, as far as the rows of a class allow; see `mixda.fit_mixture`. With 5, only a source
        with a class of fewer than five rows keeps a model from being saved.
    preset : {"default", "paper"}
        What "auto" means for the parameters above. "default": ``class_prior="empirical"``,
        ``encoder="lda"``, ``scale="domain"`` ("sources" if a source lacks classes that make up a
        fifth of all rows), ``classifier="product"``, ``min_component_rows=5`` and an initialization
        that depends on the data alone. "paper": ``class_prior="uniform"``, ``encoder=None``,
        ``scale=None``, ``classifier="map"``, ``min_component_rows=1``, ``n_init=1`` and
        ``component_weights="start"``, the settings of the paper and of ``mixda bench``.

    Attributes
    ----------
    target_mixture_ : Mixture
        The classifier: a labeled mixture in the encoded space. Without a target, the mixture of
        all labeled samples.
    barycenter_ : BarycenterResult
    plan_ : ndarray of shape (K_B, K_T)
        From the barycenter to the target mixture.
    source_mixtures_ : list of Mixture
        Labeled, in the order of `sources_`.
    unlabeled_mixture_ : Mixture
        Mixture of the samples of the target.
    encoder_ : DomainEncoder
    classifier_ : classifier
        The classifier of the sources if `classifier` is "product", the classifier trained on
        samples of the mixture if it is one, absent if it is "map".
    sources_ : ndarray of shape (N,)
        Ids of the source domains.
    classes_ : ndarray of shape (nc,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only if `X` had column names.

    References
    ----------
    .. [1] E. Fernandes Montesuma, F. Ngolè Mboula and A. Souloumiac, "Lighter, better, faster
       multi-source domain adaptation with Gaussian mixture models and optimal transport",
       ECML-PKDD 2024.

    Examples
    --------
    >>> from mixda import GMMWBT
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = GMMWBT(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model.score(task.X_target, task.y_target) > 0.99
    True
    """

    def __init__(
        self,
        n_components: int | str = 3,
        target_components: int | str | None = None,
        class_prior: str = "auto",
        min_std: ArrayLike = "auto",
        n_init: int | str = "auto",
        source_weights: ArrayLike | None = None,
        beta: float | str = "auto",
        component_weights: ArrayLike = "auto",
        reg: float = 0.0,
        reg_m: float | None = None,
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
        self.n_components = n_components
        self.target_components = target_components
        self.class_prior = class_prior
        self.min_std = min_std
        self.n_init = n_init
        self.min_component_rows = min_component_rows
        self.source_weights = source_weights
        self.beta = beta
        self.component_weights = component_weights
        self.reg = reg
        self.reg_m = reg_m
        self.encoder = encoder
        self.scale = scale
        self.classifier = classifier
        self.n_samples = n_samples
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.preset = preset

    def _adapt(self, sources: list[Mixture], target: Mixture, rng: np.random.Generator) -> Mixture:
        order, classes = CanonicalOrder.of(sources), np.asarray(sources[0].classes)
        weights = self.source_weights
        if weights is not None:
            weights = check_simplex(weights, "source_weights", len(sources))[order.sources]
        support = self.component_weights
        if self.preset == "paper" and is_word(support, "auto"):
            support = "start"  # as many components as the first source, as in Algorithm 1
        result = barycenter(
            order.sorted_sources(sources), weights, beta=self.beta, component_weights=support
        )
        plans = [result.plans[i] for i in np.argsort(order.sources)]
        places = [np.argsort(order.components(p)) for p in sources]
        self.barycenter_ = replace(
            result,
            mixture=order.with_given_classes(result.mixture, classes),
            plans=tuple(plan[:, place] for plan, place in zip(plans, places, strict=True)),
        )
        moving = self.barycenter_.mixture
        self.plan_ = transport_plan(moving, target, reg=self.reg, reg_m=self.reg_m).plan
        weights = "source" if self.reg_m is None else "plan"
        return barycentric_map(moving, target, self.plan_, weights=weights)
