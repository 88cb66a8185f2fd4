"""Steps of the methods that move samples or labels: the original WBT, JCPOT and GMM-OTDA.

Classes are integer codes here. The estimators around these steps are in `mixda.estimators`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixda._core.typing import Array, Codes, Source
from mixda.empirical._clouds import point_cloud
from mixda.mixture import Mixture, log_gaussians
from mixda.transport import squared_distances


def hard_barycenter(
    sources: Sequence[Source], n_classes: int, reg: float, rng: np.random.Generator
) -> Mixture:
    """Run one round of the original WBT: start at noisy class means and map within each class.

    Each class is averaged over the sources that have it.
    """
    import ot

    Z, codes = np.vstack([X for X, _ in sources]), np.concatenate([c for _, c in sources])
    start = np.stack([Z[codes == c].mean(axis=0) for c in codes])
    start += rng.standard_normal(Z.shape)
    moved, present = np.zeros_like(start), np.zeros((len(start), 1))
    for X, c in sources:
        for code in np.unique(c):  # one plan per class: no mass moves between classes
            rows, members = codes == code, X[c == code]
            cost = squared_distances(start[rows], members)
            cost /= cost.max() or 1.0
            plan = ot.sinkhorn([], [], cost, reg, method="sinkhorn_log")
            moved[rows] += plan @ members / plan.sum(axis=1, keepdims=True)
            present[rows] += 1.0
    return point_cloud(moved / present, codes, np.arange(n_classes))


def hard_transport(cloud: Mixture, target: Array, reg: float, reg_class: float) -> Mixture:
    """Map a labeled cloud to the target with an entropic plan and a class penalty."""
    import ot

    codes = np.asarray(cloud.labels).argmax(axis=1)
    norm = "max" if ot.dist(cloud.means, target).max() > 0 else None
    transport = ot.da.SinkhornL1l2Transport(reg, reg_class, norm=norm)
    transport.fit(Xs=cloud.means, ys=codes, Xt=target)
    mass = transport.coupling_.sum(axis=1, keepdims=True)
    return point_cloud(
        transport.coupling_ @ target / np.maximum(mass, 1e-300), codes, cloud.classes
    )


def propagate_labels(
    sources: Sequence[Source], target: Array, n_classes: int, reg: float
) -> tuple[Codes, Array]:
    """Return the classes that JCPOT propagates to the target samples, and its proportions.

    Every source must have all classes.
    """
    import ot

    sources = list(sources) * (2 if len(sources) == 1 else 1)  # POT rejects a single source
    # POT's reg is absolute: scale the largest cost to one
    largest = max(float(squared_distances(Z, target).max()) for Z, _ in sources)
    scale = (largest or 1.0) ** -0.5
    transport = ot.da.JCPOTTransport(reg, metric="sqeuclidean", log=True)
    codes = [codes for _, codes in sources]
    transport.fit(Xs=[scale * Z for Z, _ in sources], ys=codes, Xt=scale * target)
    propagated = np.zeros((n_classes, len(target)))
    for c, plan in zip(codes, transport.coupling_, strict=True):
        mass = np.eye(n_classes)[c].T @ plan
        propagated += mass / np.maximum(mass.sum(axis=0), 1e-300)
    return propagated.argmax(axis=0), np.asarray(transport.proportions_)


def send_samples(
    Z: Array,
    codes: Codes,
    source: Mixture,
    target: Mixture,
    plan: Array,
    sample_weight: Array | None = None,
) -> tuple[Array, Codes, Array]:
    r"""Send every sample to all target components that its own component is matched with.

    .. math:: T_{ij}(x) = m_j^T + \frac{s_j^T}{s_i^S}(x - m_i^S)

    Returns the images, the rows of `Z` that they come from, and their weights, of mean one without
    `sample_weight`. The samples that a pair of components sends share its mass
    :math:`\omega_{ij}`, in proportion to their own weights.
    """
    own = np.ones(len(Z)) if sample_weight is None else sample_weight
    component = _own_components(Z, codes, source)
    images, owners, weights = [], [], []
    for i, j in zip(*np.nonzero(plan > 1e-9), strict=True):
        rows = np.flatnonzero(component == i)
        if len(rows):
            ratio = target.stds[j] / source.stds[i]
            images.append(target.means[j] + ratio * (Z[rows] - source.means[i]))
            owners.append(rows)
            weights.append(plan[i, j] * own[rows] / own[rows].sum())
    weight, owner = np.concatenate(weights), np.concatenate(owners)
    return np.vstack(images), owner, weight * (own[owner].sum() / weight.sum())


def _own_components(Z: Array, codes: Codes, source: Mixture) -> Codes:
    """Return the most likely component of each sample among those of its class.

    Log-densities are compared, because far from the class all densities underflow.
    """
    log_joint = log_gaussians(Z, source.means, source.stds)
    log_joint += np.log(np.maximum(source.weights, np.finfo(np.float64).tiny))
    own = np.asarray(source.labels)[:, codes].T > 0
    components: Codes = np.where(own, log_joint, -np.inf).argmax(axis=1)
    return components
