"""Slow, literal transcriptions of the paper's formulas: what the engine is compared with.

Plain loops, float64, no import from mixda. Written to be checked by eye against sections 2 and 3
of the paper, not to be used.
"""

from __future__ import annotations

import numpy as np

NUM_ITER_MAX = 10_000_000  # ot.emd stops silently (with a warning) at its default of 1e5


def w2_cost(m, s, m2, s2):
    """W2² between every pair of axis-aligned Gaussians: |m_i - m'_j|² + |s_i - s'_j|²."""
    cost = np.zeros((len(m), len(m2)))
    for i in range(len(m)):
        for j in range(len(m2)):
            cost[i, j] = np.sum((m[i] - m2[j]) ** 2) + np.sum((s[i] - s2[j]) ** 2)
    return cost


def smw2_cost(m, s, v, m2, s2, v2, beta):
    """Cost of eq. (SMW2): W2² + beta |v_i - v'_j|²; without labels on a side, W2² alone."""
    cost = w2_cost(m, s, m2, s2)
    if v is None or v2 is None:
        return cost
    for i in range(len(m)):
        for j in range(len(m2)):
            cost[i, j] += beta * np.sum((v[i] - v2[j]) ** 2)
    return cost


def smw2_plan(p, q, cost):
    """Exact plan of the linear program over Gamma(p, q), shape (len(p), len(q))."""
    import ot

    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    cost = np.ascontiguousarray(cost, dtype=float)
    return ot.emd(p / p.sum(), q / q.sum(), cost, numItermax=NUM_ITER_MAX)


def smw2_squared(p, m, s, v, q, m2, s2, v2, beta):
    """SMW2², or MW2² when either side has no labels."""
    cost = smw2_cost(m, s, v, m2, s2, v2, beta)
    return float(np.sum(smw2_plan(p, q, cost) * cost))


def algorithm_1(atoms, weights_of_atoms, lam, K_B, M0, S0, V0, beta, n_iter=100, tol=1e-9):
    """Algorithm 1: the SMW2 barycenter with uniform weights 1 / K_B.

    Parameters
    ----------
    atoms : list of (M, S, V), V None for unlabeled mixtures
    weights_of_atoms : list of (K_c,) arrays, or None for uniform
    lam : (C,) barycentric coordinates
    M0, S0, V0 : the start, (K_B, d), (K_B, d), (K_B, nc)

    Returns
    -------
    M, S, V, plans, losses
        ``plans[c]``, of shape (K_B, K_c), is the last: (M, S, V) is its image. ``losses[it]``
        is L_it, evaluated with the plans of round `it` before the update of round `it`.
    """
    b = np.full(K_B, 1.0 / K_B)
    M, S = np.array(M0, dtype=float), np.array(S0, dtype=float)
    V = None if V0 is None else np.array(V0, dtype=float)
    if weights_of_atoms is None:
        weights_of_atoms = [np.full(len(atom[0]), 1.0 / len(atom[0])) for atom in atoms]
    losses = []
    plans = None
    it = 0
    while it < n_iter and (it < 2 or abs(losses[-1] - losses[-2]) >= tol):
        plans = []
        loss = 0.0
        for c, (M_c, S_c, V_c) in enumerate(atoms):
            cost = smw2_cost(M, S, V, M_c, S_c, V_c, beta)
            plan = smw2_plan(b, weights_of_atoms[c], cost)
            plans.append(plan)
            loss += lam[c] * np.sum(plan * cost)
        losses.append(float(loss))
        M = _barycentric_update(plans, lam, [atom[0] for atom in atoms], K_B)
        S = _barycentric_update(plans, lam, [atom[1] for atom in atoms], K_B)
        if V is not None:
            V = _barycentric_update(plans, lam, [atom[2] for atom in atoms], K_B)
        it += 1
    return M, S, V, plans, losses


def _barycentric_update(plans, lam, values, K_B):
    """Theorem 1: sum_c lambda_c T_c with T_c(i) = sum_j (omega_ij / b_i) x_j and b_i = 1 / K_B."""
    new = np.zeros((K_B, values[0].shape[1]))
    for c, plan in enumerate(plans):
        for i in range(K_B):
            for j in range(plan.shape[1]):
                new[i] += lam[c] * (plan[i, j] * K_B) * values[c][j]
    return new


def algorithm_2_loss_torch(
    means, stds, logits, lam, domains, starts, beta, n_iter=100, tol=0.0, atom_weights=None
):
    """Loss of Algorithm 2 as a torch scalar whose autograd gradients are the oracle's.

    Algorithm 1 runs on detached values; the barycenter is then written once more as a
    differentiable function of atoms and coordinates with the last plans frozen.

    Parameters
    ----------
    means, stds : lists of C float64 tensors (K_c, d); logits : list of C tensors (K_c, nc)
        Label logits, v = softmax(logits); None for unlabeled atoms.
    lam : tensor (L, C), row l the coordinates of domain l
    domains : list of L tuples (weights, means, stds, labels or None) of NumPy arrays
    starts : list of L tuples (M0, S0, V0) for Algorithm 1 (its number of rows is K_B)
    beta : float
    tol : float
        With the default 0 exactly `n_iter` rounds are done.
    atom_weights : list of C arrays, or None for uniform

    Returns
    -------
    loss : scalar tensor
    details : list of dict(plans, plan, value, barycenter), one per domain
    """
    import torch

    labels = None if logits is None else [torch.softmax(u, dim=1) for u in logits]
    n_atoms = len(means)
    atoms = [
        (
            means[c].detach().numpy(),
            stds[c].detach().numpy(),
            None if labels is None else labels[c].detach().numpy(),
        )
        for c in range(n_atoms)
    ]
    loss = torch.zeros((), dtype=torch.float64)
    details = []
    for ell, (q, m_q, s_q, v_q) in enumerate(domains):
        M0, S0, V0 = starts[ell]
        K_B = len(M0)
        coordinates = lam[ell].detach().numpy()
        plans = algorithm_1(
            atoms, atom_weights, coordinates, K_B, M0, S0, V0, beta, n_iter=n_iter, tol=tol
        )[3]
        frozen = [torch.from_numpy(plan) for plan in plans]
        M = sum(lam[ell, c] * K_B * (frozen[c] @ means[c]) for c in range(n_atoms))
        S = sum(lam[ell, c] * K_B * (frozen[c] @ stds[c]) for c in range(n_atoms))
        V = None
        if labels is not None:
            V = sum(lam[ell, c] * K_B * (frozen[c] @ labels[c]) for c in range(n_atoms))
        cost = _torch_cost(M, S, V, m_q, s_q, v_q, beta)
        plan = smw2_plan(np.full(K_B, 1.0 / K_B), q, cost.detach().numpy())
        value = torch.sum(torch.from_numpy(plan) * cost)
        loss = loss + value
        barycenter = tuple(None if x is None else x.detach().numpy() for x in (M, S, V))
        details.append(
            {"plans": plans, "plan": plan, "value": value.item(), "barycenter": barycenter}
        )
    return loss, details


def _torch_cost(M, S, V, m_q, s_q, v_q, beta):
    """`smw2_cost` with the barycenter (M, S, V) in the graph and the domain outside of it."""
    import torch

    m_q, s_q = torch.from_numpy(np.array(m_q)), torch.from_numpy(np.array(s_q))
    rows = []
    for i in range(len(M)):
        row = []
        for j in range(len(m_q)):
            entry = torch.sum((M[i] - m_q[j]) ** 2) + torch.sum((S[i] - s_q[j]) ** 2)
            if v_q is not None:
                entry = entry + beta * torch.sum((V[i] - torch.from_numpy(np.array(v_q[j]))) ** 2)
            row.append(entry)
        rows.append(torch.stack(row))
    return torch.stack(rows)


def finite_difference_gradient(f, x, step=1e-6):
    """Central differences of the scalar function `f` at the array `x`, entry by entry."""
    x = np.array(x, dtype=float)
    gradient = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        forward, backward = x.copy(), x.copy()
        forward[index] += step
        backward[index] -= step
        gradient[index] = (f(forward) - f(backward)) / (2.0 * step)
    return gradient
