"""Steps of the methods that move samples: the original WBT, JCPOT's labels, GMM-OTDA's images.

Classes are integer codes here; what surrounds these steps is in `mixda.estimators`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mixda._core.validation import Array
from mixda.empirical._dictionary import Labeled, point_cloud
from mixda.mixture import Mixture, log_gaussians
from mixda.transport import squared_distances


def hard_barycenter(
    sources: Sequence[Labeled], n_classes: int, reg: float, rng: np.random.Generator
) -> Mixture:
    """Run one round of the original WBT: start at noisy class means, map within classes only.

    A class is averaged over the sources that have it.
    """
    import ot

    Z, codes = np.vstack([X for X, _ in sources]), np.concatenate([c for _, c in sources])
    start = np.stack([Z[codes == c].mean(axis=0) for c in codes])
    start += rng.standard_normal(Z.shape)
    moved, present = np.zeros_like(start), np.zeros((len(start), 1))
    for X, c in sources:
        for code in np.unique(c):  # classes may not be crossed: a plan of its own for each
            rows, members = codes == code, X[c == code]
            cost = squared_distances(start[rows], members)
            cost /= cost.max() or 1.0
            plan = ot.sinkhorn([], [], cost, reg, method="sinkhorn_log")
            moved[rows] += plan @ members / plan.sum(axis=1, keepdims=True)
            present[rows] += 1.0
    return point_cloud(moved / present, codes, np.arange(n_classes))


def hard_transport(cloud: Mixture, target: Array, reg: float, reg_class: float) -> Mixture:
    """Map a labeled cloud to the target by an entropic plan that keeps classes together."""
    import ot

    codes = np.asarray(cloud.labels).argmax(axis=1)
    norm = "max" if ot.dist(cloud.means, target).max() > 0 else None
    transport = ot.da.SinkhornL1l2Transport(reg, reg_class, norm=norm)
    transport.fit(Xs=cloud.means, ys=codes, Xt=target)
    mass = transport.coupling_.sum(axis=1, keepdims=True)
    return point_cloud(
        transport.coupling_ @ target / np.maximum(mass, 1e-300), codes, cloud.classes
    )


def carry_labels(
    sources: Sequence[Labeled], target: Array, n_classes: int, reg: float
) -> tuple[NDArray[np.intp], Array]:
    """Return the classes that JCPOT's plans bring to the target's samples, and its proportions.

    Every source must have all classes.
    """
    import ot

    sources = list(sources) * (2 if len(sources) == 1 else 1)  # POT takes no list of one
    # POT takes the entropy's weight as absolute: scale the largest cost to one
    largest = max(float(squared_distances(Z, target).max()) for Z, _ in sources)
    scale = (largest or 1.0) ** -0.5
    transport = ot.da.JCPOTTransport(reg, metric="sqeuclidean", log=True)
    codes = [codes for _, codes in sources]
    transport.fit(Xs=[scale * Z for Z, _ in sources], ys=codes, Xt=scale * target)
    carried = np.zeros((n_classes, len(target)))
    for c, plan in zip(codes, transport.coupling_, strict=True):
        mass = np.eye(n_classes)[c].T @ plan
        carried += mass / np.maximum(mass.sum(axis=0), 1e-300)
    return carried.argmax(axis=0), np.asarray(transport.proportions_)


def send_samples(
    Z: Array, codes: NDArray[np.intp], source: Mixture, target: Mixture, plan: Array
) -> tuple[Array, NDArray[np.intp], Array]:
    r"""Send samples to all the components of the target that their own one is matched with.

    .. math:: T_{ij}(x) = m_j^T + \frac{s_j^T}{s_i^S}(x - m_i^S)

    Returns the images, the rows of `Z` that they come from, and weights of mean one: the mass
    :math:`\omega_{ij}` of a pair is shared by the samples that it sends.
    """
    component = _own_components(Z, codes, source)
    images, owners, weights = [], [], []
    for i, j in zip(*np.nonzero(plan > 1e-9), strict=True):
        rows = np.flatnonzero(component == i)
        if len(rows):
            ratio = target.stds[j] / source.stds[i]
            images.append(target.means[j] + ratio * (Z[rows] - source.means[i]))
            owners.append(rows)
            weights.append(np.full(len(rows), plan[i, j] / len(rows)))
    weight = np.concatenate(weights)
    return np.vstack(images), np.concatenate(owners), weight / weight.mean()


def _own_components(Z: Array, codes: NDArray[np.intp], source: Mixture) -> NDArray[np.intp]:
    """Return the likeliest component of each sample among those of its class.

    In logarithms, because far from the class the probabilities of all of them are zero.
    """
    log_joint = log_gaussians(Z, source.means, source.stds)
    log_joint += np.log(np.maximum(source.weights, np.finfo(np.float64).tiny))
    own = np.asarray(source.labels)[:, codes].T > 0
    chosen: NDArray[np.intp] = np.where(own, log_joint, -np.inf).argmax(axis=1)
    return chosen
