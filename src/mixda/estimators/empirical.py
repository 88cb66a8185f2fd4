"""Methods that transport samples: WBT, DaDiL and WJDOT.

The numerics are in `mixda.empirical`, `mixda.barycenters` and POT.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixda._core.typing import Array, Source
from mixda._core.validation import check_choice, check_positive_int
from mixda.barycenters import barycenter
from mixda.empirical import (
    hard_barycenter,
    hard_transport,
    learn_empirical_dictionary,
    learn_joint_transport,
    point_cloud,
)
from mixda.estimators._base import MultiSourceClassifier
from mixda.estimators._canonical import CanonicalOrder
from mixda.estimators._export import rule_of
from mixda.estimators.utils import head_proba, pool, train_head
from mixda.mixture import Mixture
from mixda.rules import Average, Chain, Linear, Normalize, Rule, Sigmoid
from mixda.transport import barycentric_map, transport_plan

__all__ = ["WBT", "WJDOT", "DaDiL"]


class HeadClassifier(MultiSourceClassifier):
    """Base of the methods that train a classifier on samples that they generate or label.

    A subclass implements ``_training_set(sources, target, rng)``, which returns samples and codes.
    Without a target, the classifier is trained on the sources.
    """

    _sorts_rows = True

    classifier: Any

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        made = pool(sources) if target is None else self._training_set(sources, target, rng)
        self.classifier_ = train_head(self.classifier, self._seed, *made)

    def _training_set(
        self, sources: list[Source], target: Array, rng: np.random.Generator
    ) -> Source:
        raise NotImplementedError

    def _predict_encoded(self, Z: Array) -> Array:
        return head_proba(self.classifier_, Z, len(self.classes_))

    def _rule(self) -> Rule:
        return rule_of(self.classifier_, len(self.classes_))


class WBT(HeadClassifier):
    r"""Wasserstein barycenter transport: the barycenter of the sources is moved onto the target.

    .. math:: B = \arg\min_B \sum_\ell \lambda_\ell W_{c,2}(B, \hat Q_\ell)^2, \qquad
              \hat x_i = \sum_j \frac{\omega_{ij}}{b_i} x_j^T

    Parameters
    ----------
    n_points : int, optional
        Number of points of the barycenter. Default: 20 per class.
    max_samples : int
        Maximum number of samples per domain. Samples of a source are drawn by class, in its class
        proportions and at least one per class.
    label_mode : {"soft", "hard"}
        "soft" propagates labels with exact plans, as in later work of the authors. "hard" is the
        original method: labels are fixed to those of the source samples, entropic plans do not
        connect different classes, there is one iteration, and the plan to the target is entropic
        with class regularization.
    beta : float, "auto" or "max"
        Weight of the labels; "soft" only.
    reg, reg_class : float
        Entropy and group-lasso weights of "hard".
    classifier : classifier, optional
        Trained on the transported samples. Default: a logistic regression.
    encoder, scale, random_state : see `mixda.GMMWBT`

    Attributes
    ----------
    barycenter_ : Mixture
        The labeled point cloud before the transport.
    transported_ : Mixture
        The labeled point cloud after the transport.
    classifier_ : classifier

    References
    ----------
    .. [1] E. Fernandes Montesuma and F. Ngolè Mboula, "Wasserstein barycenter for multi-source
       domain adaptation", CVPR 2021.

    Examples
    --------
    >>> from mixda import WBT
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = WBT(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model.score(task.X_target, task.y_target) > 0.97
    True
    """

    def __init__(
        self,
        n_points: int | None = None,
        max_samples: int = 1000,
        label_mode: str = "soft",
        beta: Any = "auto",
        reg: float = 1e-2,
        reg_class: float = 1e-2,
        classifier: Any = None,
        encoder: Any = None,
        scale: str | None = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_points = n_points
        self.max_samples = max_samples
        self.label_mode = label_mode
        self.beta = beta
        self.reg = reg
        self.reg_class = reg_class
        self.classifier = classifier
        self.encoder = encoder
        self.scale = scale
        self.random_state = random_state

    def _training_set(
        self, sources: list[Source], target: Array, rng: np.random.Generator
    ) -> Source:
        mode = check_choice(self.label_mode, "label_mode", ("soft", "hard"))
        size = check_positive_int(self.max_samples, "max_samples")
        names = np.arange(len(self.classes_))
        order = CanonicalOrder.of_samples(sources, len(names))
        sources = order.sorted_samples(sources)
        kept = [subsample(source, size, rng) for source in sources]
        target = target[rng.permutation(len(target))[:size]]
        if mode == "hard":
            center = hard_barycenter(kept, len(names), self.reg, rng)
            moved = hard_transport(center, target, self.reg, self.reg_class)
        else:
            clouds = [point_cloud(Z, codes, names) for Z, codes in kept]
            n_points = 20 * len(names) if self.n_points is None else self.n_points
            center = barycenter(
                clouds,
                n_components=n_points,
                beta=self.beta,
                component_weights="uniform",
                init=_balanced(pool(kept), len(names), n_points, rng),
            ).mixture
            cloud = point_cloud(target)
            moved = barycentric_map(center, cloud, transport_plan(center, cloud).plan)
        self.barycenter_ = order.with_given_classes(center, names)
        self.transported_ = order.with_given_classes(moved, names)
        return moved.means, order.most_probable(moved)


class DaDiL(MultiSourceClassifier):
    r"""Dataset dictionary learning: domains as barycenters of learned labeled point clouds.

    The objective is that of `mixda.empirical.learn_empirical_dictionary`. DaDiL-R trains a
    classifier on the reconstruction :math:`\mathcal{B}(\lambda_T, \mathcal{P})` of the target;
    DaDiL-E averages one classifier per atom,
    :math:`P(y \mid x) = \sum_c \lambda_{T,c} P_c(y \mid x)`.

    Parameters
    ----------
    method : {"R", "E"}
    n_atoms : int
    n_points : int, optional
        Number of points per atom. Default: 20 per class.
    batch_size : int, optional
        Samples per domain and points per atom in a step. Default: 10 per class.
    n_epochs : int
        Passes over the points of the atoms.
    learning_rate : float
        Learning rate of Adam.
    beta : float, "auto" or "max"
    init : {"sources", "random"}
    classifier : classifier, optional
        Default: a logistic regression.
    encoder, scale, random_state : see `mixda.GMMWBT`
    verbose : bool

    Attributes
    ----------
    dictionary_ : Dictionary
    classifiers_ : list of classifier
        One for "R", one per atom for "E".
    classifier_weights_ : ndarray

    References
    ----------
    .. [1] E. Fernandes Montesuma, F. Ngolè Mboula and A. Souloumiac, "Multi-source domain
       adaptation through dataset dictionary learning in Wasserstein space", ECAI 2023.

    Examples
    --------
    >>> from mixda import DaDiL
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = DaDiL(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model.score(task.X_target, task.y_target) > 0.97
    True
    """

    _sorts_rows = True

    def __init__(
        self,
        method: str = "R",
        n_atoms: int = 3,
        n_points: int | None = None,
        batch_size: int | None = None,
        n_epochs: int = 50,
        learning_rate: float = 0.1,
        beta: Any = "auto",
        init: str = "sources",
        classifier: Any = None,
        encoder: Any = None,
        scale: str | None = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.n_atoms = n_atoms
        self.n_points = n_points
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.beta = beta
        self.init = init
        self.classifier = classifier
        self.encoder = encoder
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        method = check_choice(self.method, "method", ("R", "E"))
        self.classifier_weights_ = np.ones(1)
        if target is None:
            self.classifiers_ = [train_head(self.classifier, self._seed, *pool(sources))]
            return
        nc = len(self.classes_)
        order = CanonicalOrder.of_samples(sources, nc)
        learned = learn_empirical_dictionary(
            order.sorted_samples(sources),
            target,
            nc,
            n_atoms=check_positive_int(self.n_atoms, "n_atoms"),
            n_points=20 * nc if self.n_points is None else self.n_points,
            batch_size=10 * nc if self.batch_size is None else self.batch_size,
            n_epochs=self.n_epochs,
            learning_rate=self.learning_rate,
            beta=self.beta,
            init=self.init,
            verbose=self.verbose,
            random_state=rng,
        )
        d = self.dictionary_ = order.restored(learned, np.arange(nc))
        clouds = [d.target] if method == "R" else list(d.atoms)
        if method == "E":
            self.classifier_weights_ = d.coordinates[-1]
        self.classifiers_ = [
            train_head(self.classifier, self._seed, p.means, np.asarray(p.labels).argmax(axis=1))
            for p in clouds
        ]

    def _predict_encoded(self, Z: Array) -> Array:
        total = np.zeros((len(Z), len(self.classes_)))
        for weight, head in zip(self.classifier_weights_, self.classifiers_, strict=True):
            total += weight * head_proba(head, Z, len(self.classes_))
        return total

    def _rule(self) -> Rule:
        heads = [rule_of(head, len(self.classes_)) for head in self.classifiers_]
        return heads[0] if len(heads) == 1 else Average(self.classifier_weights_, tuple(heads))


class WJDOT(MultiSourceClassifier):
    r"""Weighted joint distribution optimal transport: a linear classifier and source weights.

    The objective is that of `mixda.empirical.learn_joint_transport`.

    Parameters
    ----------
    label_weight : float
        Weight of the label cost relative to the feature cost, which is divided by its median.
    learning_rate, weight_rate : float
        Learning rates of the classifier and of the source weights.
    batch_size : int or None
        Samples per domain in a step; None is the full batch.
    n_iter : int
    encoder, scale, random_state : see `mixda.GMMWBT`
    verbose : bool

    Attributes
    ----------
    source_weights_ : ndarray of shape (N,)
        In the order of `sources_`.
    transport_ : JointTransport
        Absent without a target.

    References
    ----------
    .. [1] R. Turrisi, R. Flamary, A. Rakotomamonjy and M. Pontil, "Multi-source domain
       adaptation via weighted joint distributions optimal transport", UAI 2022.

    Examples
    --------
    >>> from mixda import WJDOT
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = WJDOT(batch_size=60, n_iter=100, random_state=0)
    >>> _ = model.fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model.score(task.X_target, task.y_target) > 0.97
    True
    """

    _sorts_rows = True

    def __init__(
        self,
        label_weight: float = 1.0,
        learning_rate: float = 0.03,
        weight_rate: float = 0.01,
        batch_size: int | None = 200,
        n_iter: int = 300,
        encoder: Any = None,
        scale: str | None = "sources",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.label_weight = label_weight
        self.learning_rate = learning_rate
        self.weight_rate = weight_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.encoder = encoder
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        if target is None:
            self.classifier_ = train_head(None, self._seed, *pool(sources))
            return
        order = CanonicalOrder.of_samples(sources, len(self.classes_))
        learned = learn_joint_transport(
            order.sorted_samples(sources),
            target,
            len(self.classes_),
            label_weight=self.label_weight,
            learning_rate=self.learning_rate,
            weight_rate=self.weight_rate,
            batch_size=self.batch_size,
            n_iter=self.n_iter,
            verbose=self.verbose,
            random_state=rng,
        )
        sources_back, classes_back = np.argsort(order.sources), np.argsort(order.classes)
        self.transport_ = replace(
            learned,
            coefficients=learned.coefficients[:, classes_back],
            intercept=learned.intercept[classes_back],
            source_weights=learned.source_weights[sources_back],
        )
        self.source_weights_ = self.transport_.source_weights

    def _predict_encoded(self, Z: Array) -> Array:
        if hasattr(self, "classifier_"):
            return head_proba(self.classifier_, Z, len(self.classes_))
        return self._rule()(Z)

    def _rule(self) -> Rule:
        scores = Linear(self.transport_.coefficients, self.transport_.intercept)
        return Chain((scores, Sigmoid(), Normalize(1e-12)))


def subsample(source: Source, size: int, rng: np.random.Generator) -> Source:
    """Return about `size` samples: each class in proportion, rounded down, at least one."""
    Z, codes = source
    if len(Z) <= size:
        return source
    share = size / len(Z)
    rows = [
        rng.permutation(members)[: max(1, int(share * len(members)))]
        for members in (np.flatnonzero(codes == c) for c in np.unique(codes))
    ]
    kept = np.sort(np.concatenate(rows))
    return Z[kept], codes[kept]


def _balanced(source: Source, n_classes: int, size: int, rng: np.random.Generator) -> Mixture:
    """Return `size` samples as a labeled point cloud with balanced classes."""
    Z, codes = source
    wanted = np.arange(check_positive_int(size, "n_points")) * n_classes // size
    rows = np.array([rng.choice(np.flatnonzero(codes == c)) for c in wanted])
    return point_cloud(Z[rows], codes[rows], np.arange(n_classes))
