"""The ground cost between components, with and without labels.

Component *i* is the point ``[m_i, s_i]`` with label ``v_i``: W2² between axis-aligned Gaussians
(eq. 6 of the paper) is a squared Euclidean distance, and a mixture is a weighted point cloud.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.namespace import as_like, at_least, check_like, namespace, to_float64
from mixda._core.typing import Array, Floats
from mixda._core.validation import check_number
from mixda.mixture import Mixture

Beta = float | str

_NEAR = 1e-7  # of the squared norms: smaller distances are computed again by differences
_NEAR_SINGLE = 1e-3  # the same in single precision on a device
_NEAR_BLOCK = 4096  # pairs of near points handled at once


def cost_matrix(p: Mixture, q: Mixture, beta: Beta, like: Any = None) -> tuple[Array, float]:
    """Squared ground cost between the components of two mixtures (eq. 12), and the beta used."""
    check_same_features([p, q])
    cost = squared_distances(features(p), features(q), check_like(like))
    weight = LabelWeight.parse(beta).for_plan(cost)
    if weight > 0:
        (labels_p, labels_q), _ = align_labels([p, q])
        if labels_p is None or labels_q is None:
            raise MixdaError(
                f"beta={beta!r} weights the labels, but at least one mixture has no labels; fit it "
                "with fit_labeled_mixture or set beta=0."
            )
        cost += weight * squared_distances(labels_p, labels_q)
    return cost, weight


@dataclass(frozen=True)
class LabelWeight:
    """The weight β of the labels in the ground cost: one constant, or one number per plan.

    Attributes
    ----------
    constant : float or None
        None is the choice ``beta="max"``: the largest feature cost of the plan at hand.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.transport import LabelWeight
    >>> cost = np.array([[1.0, 4.0]])
    >>> LabelWeight(2.0).for_plan(cost), LabelWeight.parse("max").for_plan(cost)
    (2.0, 4.0)
    """

    constant: float | None

    @classmethod
    def parse(cls, beta: Beta) -> LabelWeight:
        """Return the weight that a user asks for with a number or "max"."""
        if not isinstance(beta, str):
            return cls(check_number(beta, "beta", also=" or 'max'"))
        if beta != "max":
            raise MixdaError(f"beta must be a non-negative number or 'max', got {beta!r}.")
        return cls(None)

    @property
    def parameter(self) -> Beta:
        """The weight as a user writes it: a number or "max"."""
        return "max" if self.constant is None else self.constant

    def for_plan(self, feature_cost: Floats) -> float:
        """Return the number to use in a plan with this feature cost."""
        return float(feature_cost.max()) if self.constant is None else self.constant


def features(p: Mixture) -> Array:
    """Points ``[m_i, s_i]`` whose squared distance is W2² between components: shape (K, 2d)."""
    return np.hstack([p.means, p.stds])


def squared_distances(a: Array, b: Array, like: Any = None) -> Array:
    """Squared Euclidean distances (n, m) by one product, exact where two points nearly coincide.

    Points of torch or CuPy have distances of the same library, on the same device. With `like`, an
    array of such a library, points and distances are numpy arrays, and the product is computed
    with the library, the precision and the device of `like`.
    """
    center = 0.5 * (a.mean(axis=0) + b.mean(axis=0))
    a, b = a - center, b - center
    if like is not None:
        return to_float64(_centered_distances(as_like(a, like), as_like(b, like)))
    return _centered_distances(a, b)


def _centered_distances(a: Array, b: Array) -> Array:
    xp = namespace(a)
    near_ratio = _NEAR if xp is np or a.dtype == xp.float64 else _NEAR_SINGLE
    norms_a, norms_b = (a**2).sum(axis=1), (b**2).sum(axis=1)
    scale = norms_a[:, None] + norms_b
    distances: Array = at_least(scale - 2.0 * (a @ b.T), 0.0)
    # ‖a‖² + ‖b‖² - 2ab cancels for near points: compute ‖a - b‖² for those
    is_near: Any = distances <= near_ratio * scale
    i, j = is_near.nonzero(as_tuple=True) if xp.__name__ == "torch" else is_near.nonzero()
    for start in range(0, len(i), _NEAR_BLOCK):
        near = slice(start, start + _NEAR_BLOCK)
        distances[i[near], j[near]] = ((a[i[near]] - b[j[near]]) ** 2).sum(axis=1)
    return distances


def align_labels(mixtures: Sequence[Mixture]) -> tuple[list[Array | None], NDArray[Any]]:
    """Labels of all mixtures over the union of their classes (None stays None), and that union."""
    named = [m.classes for m in mixtures if m.classes is not None]
    if not named:
        return [None] * len(mixtures), np.empty(0)
    classes = named[0]
    if any(not np.array_equal(classes, other) for other in named[1:]):
        if len({other.dtype.kind == "U" for other in named}) > 1:
            raise MixdaError(
                "some mixtures have numbers as classes and others strings; convert one of them."
            )
        classes = np.unique(np.concatenate(named))
    aligned: list[Array | None] = []
    for m in mixtures:
        if m.labels is None or m.classes is None or np.array_equal(m.classes, classes):
            aligned.append(m.labels)
            continue
        labels = np.zeros((m.n_components, len(classes)))
        labels[:, np.searchsorted(classes, m.classes)] = m.labels
        aligned.append(labels)
    return aligned, classes


def check_same_features(
    mixtures: Sequence[Mixture], *, by_name: bool = True
) -> tuple[str, ...] | None:
    """Raise unless all mixtures have the same features; return their names, or None.

    Mixtures with names must have the same ones in the same order, unless `by_name` is False.
    """
    others = [type(m).__name__ for m in mixtures if not isinstance(m, Mixture)]
    if others:
        raise MixdaError(f"a Mixture is needed, got {others[0]}; fit_mixture returns one.")
    sizes = {m.n_features for m in mixtures}
    if len(sizes) != 1:
        raise MixdaError(
            f"the mixtures have different numbers of features ({sorted(sizes)}); "
            "fit them all on the same columns."
        )
    names = [m.feature_names for m in mixtures if m.feature_names is not None]
    for other in names[1:] if by_name else []:
        if other != names[0]:
            a, b = next((a, b) for a, b in zip(names[0], other, strict=True) if a != b)
            raise MixdaError(
                f"the mixtures have different features or a different order of features ({a!r} "
                f"in one, {b!r} in another at the same place); reorder them with Mixture.marginal."
            )
    return names[0] if names else None
