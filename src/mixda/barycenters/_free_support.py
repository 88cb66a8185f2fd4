r"""Barycenters whose support and weights are free: a restricted multi-marginal linear program.

A barycenter is the image of a coupling π of all inputs. The tuple of components
``t = (i_1, …, i_C)`` gives one component of it, of weight ``π_t``:

.. math:: \min_{\pi} \sum_t \pi_t c_t, \qquad
          c_t = \sum_c \lambda_c \lVert z_{c, i_c} - \bar z_t \rVert^2, \qquad
          \bar z_t = \sum_c \lambda_c z_{c, i_c},

with the weights of input *c* as the *c*-th marginal of π. There are ``Π K_c`` tuples, of which a
vertex uses at most ``Σ K_c - C + 1``. The program is solved over a pool of tuples. The pool grows
by tuples of negative reduced cost that differ from a used one in a single component (column
generation with local pricing), so the value is an upper bound of the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from mixda._core.typing import Array, Codes, Floats
from mixda.transport import SparsePlan

_MAX_ROUNDS = 30  # of pricing
_MIN_GAIN = 1e-7  # reduced cost that counts, relative to the objective
_MIN_DECREASE = 1e-4  # of the objective in a round, relative
_POOL_SIZE = 3  # tuples kept from round to round, relative to the number of components
_MIN_MASS = 1e-12  # of a tuple that is used


def free_support(
    gram: Floats,
    input_weights: Sequence[Array],
    lam: Array,
    starts: Sequence[Sequence[SparsePlan]],
    n_components: int | None = None,
) -> tuple[sparse.csr_matrix, Array]:
    """Return a barycenter with free support as its image matrix and its weights.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Inner products of all inputs' components, stacked.
    input_weights : C arrays of shape (K_c,), positive
    lam : ndarray of shape (C,), positive
    starts : sequence of C SparsePlan each
        Plans from some barycenters to the inputs. Their tuples are the first in the pool.

    n_components : int, optional
        Merge components until at most this many are left.

    Returns
    -------
    image : sparse matrix of shape (K_B, n)
        The barycenter is this matrix times the components.
    weights : ndarray of shape (K_B,)
    """
    offsets = np.cumsum([0, *(len(w) for w in input_weights[:-1])])
    right = np.concatenate([w / w.sum() for w in input_weights])
    pool = np.unique(np.vstack([_glue(plans) for plans in starts]) + offsets, axis=0)
    previous = np.inf
    for _ in range(_MAX_ROUNDS):
        costs = _tuple_costs(gram, pool, lam)
        mass, duals = _solve(pool, costs, right)
        used, value = mass > _MIN_MASS, float(mass @ costs)
        tuples, weights = pool[used], mass[used] / mass[used].sum()
        if previous - value <= _MIN_DECREASE * value:
            break
        previous = value
        new = _neighbors(gram, tuples, lam, duals, input_weights, _MIN_GAIN * value)
        reduced = np.where(used, -np.inf, costs - duals[pool].sum(axis=1))
        kept = np.argsort(reduced, kind="stable")[: _POOL_SIZE * len(right)]
        pool = np.unique(np.vstack([pool[kept], new]), axis=0)
    C = len(lam)
    entries = np.tile(lam, len(tuples)), tuples.ravel(), np.arange(0, tuples.size + 1, C)
    image = sparse.csr_matrix(entries, shape=(len(tuples), len(gram)))
    return _merge(image, weights, gram, len(weights) if n_components is None else n_components)


def _glue(plans: Sequence[SparsePlan]) -> Codes:
    """Tuples of the coupling that visits the plans' entries in order, row by row.

    All plans have the same row sums, so their entries cut [0, 1] at the same places between rows.
    """
    ends = [np.cumsum(plan.mass) / plan.mass.sum() for plan in plans]
    cuts = np.concatenate([[0.0], np.unique(np.concatenate(ends))])
    middles = 0.5 * (cuts[1:] + cuts[:-1])[np.diff(cuts) > _MIN_MASS]
    picked = [np.searchsorted(end, middles).clip(max=len(end) - 1) for end in ends]
    return np.stack([plan.columns[i] for plan, i in zip(plans, picked, strict=True)], axis=1)


def _tuple_costs(gram: Floats, tuples: Codes, lam: Array) -> Array:
    """Cost of every tuple, ``Σ_c λ_c ‖z_c‖² - ‖Σ_c λ_c z_c‖²``."""
    blocks = gram[tuples[:, :, None], tuples[:, None, :]]
    costs: Array = np.einsum("tcc,c->t", blocks, lam) - blocks @ lam @ lam
    return np.maximum(costs, 0.0)


def _solve(tuples: Codes, costs: Array, right: Array) -> tuple[Array, Array]:
    """Solve the program over the given tuples; return their mass and the duals of the marginals."""
    from scipy.optimize import linprog

    columns = np.repeat(np.arange(len(tuples)), tuples.shape[1])
    entries = np.ones(tuples.size), (tuples.ravel(), columns)
    marginals = sparse.csr_matrix(entries, shape=(len(right), len(tuples)))
    scale = float(costs.max()) or 1.0
    solution = linprog(costs / scale, A_eq=marginals, b_eq=right, method="highs-ds")
    if solution.status != 0:
        raise RuntimeError(f"the restricted multi-marginal program failed: {solution.message}")
    return np.asarray(solution.x), scale * np.asarray(solution.eqlin.marginals)


def _neighbors(
    gram: Floats,
    tuples: Codes,
    lam: Array,
    duals: Array,
    input_weights: Sequence[Array],
    gain: float,
) -> Codes:
    """Return the best change of each single component of each tuple, if it is a gain.

    With ``r`` the mean of the other components, the cost is
    ``h + λ_c (1 - λ_c) ‖z_k‖² - 2 λ_c ⟨r, z_k⟩`` if component *k* stands at place *c*.
    """
    norms, found, start = gram.diagonal(), [], 0
    blocks = gram[tuples[:, :, None], tuples[:, None, :]]
    for c, x in enumerate(lam):
        own = slice(start, start := start + len(input_weights[c]))
        rest = np.where(np.arange(len(lam)) == c, 0.0, lam)
        fixed = np.einsum("tbb,b->t", blocks, rest) - blocks @ rest @ rest
        fixed = fixed - np.where(rest > 0, duals[tuples], 0.0).sum(axis=1)
        inner = sum(y * gram[tuples[:, b], own] for b, y in enumerate(lam) if b != c)
        reduced = x * (1.0 - x) * norms[own] - 2.0 * x * inner - duals[own] + fixed[:, None]
        best = reduced.argmin(axis=1)
        better = reduced[np.arange(len(tuples)), best] < -gain
        changed = tuples[better].copy()
        changed[:, c] = best[better] + own.start
        found.append(changed)
    return np.vstack(found)


def _merge(
    image: sparse.csr_matrix, weights: Array, gram: Floats, n_components: int
) -> tuple[sparse.csr_matrix, Array]:
    """Merge components until `n_components` are left, always the pair that costs least (Ward).

    Replacing two components by their mean raises the objective by at most
    ``b_j b_k / (b_j + b_k) ‖B_j - B_k‖²``.
    """
    products = image @ gram
    inner = np.asarray((image @ products.T).T)
    norms = inner.diagonal()
    distances = np.maximum(norms[:, None] + norms - 2.0 * inner, 0.0)
    mixing, weights = np.eye(len(weights)), weights.copy()
    alive = np.ones(len(weights), dtype=bool)
    while alive.sum() > n_components:
        increase = distances * (weights[:, None] * weights / (weights[:, None] + weights))
        increase[~alive] = increase[:, ~alive] = np.inf
        np.fill_diagonal(increase, np.inf)
        j, k = sorted(np.unravel_index(int(increase.argmin()), increase.shape))
        total = weights[j] + weights[k]
        a, b = weights[j] / total, weights[k] / total
        merged = a * distances[j] + b * distances[k] - a * b * distances[j, k]
        distances[j], distances[:, j] = merged, merged
        mixing[j] = a * mixing[j] + b * mixing[k]
        weights[j], alive[k] = total, False
    kept = sparse.csr_matrix(mixing[alive])
    return sparse.csr_matrix(kept @ image), weights[alive]
