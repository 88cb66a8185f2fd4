"""PyTorch transcription of GMM-DaDiL as in the authors' public code, the baseline for the engine.

It was written from a description of the code's behavior; no line is copied. It follows the toy
notebook: Adam with a learning rate of 0.1 on means, variances, label logits and coordinates; in
every step and for every domain a *new* barycenter (zero means, one-hot cyclic labels, at most ten
iterations, `ot.emd` for each atom), then one differentiable pass with fixed plans; beta equal to
the largest feature cost of each call; projection on the simplex; a lower bound on variances. The
package of the same authors (PyDiL) differs in `init="normal"`, `loss_spread="variance"` and
`domain_weights=False`; its learning-rate scheduler is left out. Costs use the expanded square (one
matrix product), which is the fastest form in torch here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ot
import torch

NUM_ITER_MAX = 1_000_000


def run(
    sources: list[Any],
    target: Any,
    n_atoms: int,
    n_components: int,
    n_steps: int = 50,
    *,
    learning_rate: float = 0.1,
    min_variance: float = 0.05,
    n_rounds: int = 10,
    tol: float = 1e-4,
    init: str = "zeros",
    spread: str = "variance",
    loss_spread: str = "std",
    domain_weights: bool = True,
    dtype: torch.dtype = torch.float32,
    n_threads: int = 2,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Learn a dictionary; sources and target have `.weights, .means, .stds, .labels` arrays.

    Returns
    -------
    dict
        `atoms`: list of (means, stds, labels) float64 arrays; `coordinates`: (n_domains, n_atoms),
        target last; `losses`: the loss before each step, in their convention (beta moves with it);
        `step_seconds`: one per step; `seconds_per_step`: their median; `rounds`: mean number of
        rounds of Algorithm 1; `seconds_emd`: share of the total spent in `ot.emd`.
    """
    previous_threads = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        return _run(
            [_domain(m, dtype, domain_weights) for m in (*sources, target)],
            _Settings(n_components, n_rounds, tol, init, spread, loss_spread, clock),
            n_atoms, n_steps, learning_rate, min_variance, dtype, seed,
        )  # fmt: skip
    finally:
        torch.set_num_threads(previous_threads)


class _Settings:
    """Settings and counters of the inner functions."""

    def __init__(self, K, n_rounds, tol, init, spread, loss_spread, clock):
        self.K, self.n_rounds, self.tol = K, n_rounds, tol
        self.init, self.spread, self.loss_spread = init, spread, loss_spread
        self.rounds: list[int] = []
        self.clock, self.seconds_emd = clock, 0.0

    def emd(self, p, q, cost):
        start = self.clock()
        cost = np.ascontiguousarray(cost.detach().numpy(), dtype=np.float64)
        plan = ot.emd(p, q, cost, numItermax=NUM_ITER_MAX)
        self.seconds_emd += self.clock() - start
        return plan


def _run(domains, settings, n_atoms, n_steps, learning_rate, min_variance, dtype, seed):
    K, d = settings.K, domains[0][1].shape[1]
    nc = domains[0][3].shape[1]
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(n_atoms, K, d, generator=generator, dtype=dtype).requires_grad_()
    spreads = torch.ones(n_atoms, K, d, dtype=dtype).requires_grad_()
    logits = torch.ones(n_atoms, K, nc, dtype=dtype).requires_grad_()
    lam = torch.full((len(domains), n_atoms), 1.0 / n_atoms, dtype=dtype).requires_grad_()
    floor = min_variance if settings.spread == "variance" else min_variance**0.5
    optimizer = torch.optim.Adam([means, spreads, logits, lam], lr=learning_rate)
    losses, step_seconds = [], []
    for _ in range(n_steps):
        start = settings.clock()
        optimizer.zero_grad()
        stds = spreads.sqrt() if settings.spread == "variance" else spreads
        labels = torch.softmax(logits, dim=-1)
        loss = sum(
            _domain_loss(domain, means, stds, labels, lam[ell], settings, generator)
            for ell, domain in enumerate(domains)
        )
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            lam.copy_(_project_simplex(lam))
            spreads.clamp_(min=floor)
        losses.append(loss.item())
        step_seconds.append(settings.clock() - start)
    with torch.no_grad():
        stds = spreads.sqrt() if settings.spread == "variance" else spreads
        labels = torch.softmax(logits.double(), dim=-1)
        atoms = [
            (m.double().numpy(), s.double().numpy(), v.numpy())
            for m, s, v in zip(means, stds, labels, strict=True)
        ]
    return {
        "atoms": atoms,
        "coordinates": _project_simplex(lam.detach().double()).numpy(),
        "losses": losses,
        "step_seconds": step_seconds,
        "seconds_per_step": float(np.median(step_seconds)) if step_seconds else float("nan"),
        "rounds": float(np.mean(settings.rounds)) if settings.rounds else float("nan"),
        "seconds_emd": settings.seconds_emd,
    }


def _domain(mixture, dtype, domain_weights):
    weights = np.array(mixture.weights, dtype=np.float64)
    if not domain_weights:
        weights = np.full(len(weights), 1.0 / len(weights))
    means, stds, labels = (
        None if x is None else torch.tensor(np.array(x), dtype=dtype)
        for x in (mixture.means, mixture.stds, mixture.labels)
    )
    return weights / weights.sum(), means, stds, labels


def _domain_loss(domain, means, stds, labels, lam, settings, generator):
    """Return SMW2² (MW2² without labels) between a domain and its barycenter, with fixed plans."""
    weights, m_q, s_q, v_q = domain
    M, S, V = _barycenter(means, stds, labels, lam, settings, generator)
    if settings.loss_spread == "variance":
        cost = _sqdist(m_q, M) + _sqdist(s_q**2, S**2)
    else:
        cost = _sqdist(m_q, M) + _sqdist(s_q, S)
    if v_q is not None:
        cost = cost + cost.detach().max() * _sqdist(v_q, V)
    plan = settings.emd(weights, np.full(settings.K, 1.0 / settings.K), cost)
    return torch.sum(torch.from_numpy(plan).to(cost.dtype) * cost)


def _barycenter(means, stds, labels, lam, settings, generator):
    """Run Algorithm 1 without gradients, then one pass with gradients and fixed plans."""
    K, (n_atoms, K_atom, d), nc = settings.K, means.shape, labels.shape[2]
    uniform_atom, uniform = np.full(K_atom, 1.0 / K_atom), np.full(K, 1.0 / K)
    with torch.no_grad():
        M = torch.zeros(K, d, dtype=means.dtype)
        if settings.init == "normal":
            M = torch.randn(K, d, generator=generator, dtype=means.dtype)
        S = torch.ones(K, d, dtype=means.dtype)
        V = torch.eye(nc, dtype=means.dtype)[torch.arange(K) % nc]
        previous = None
        settings.rounds.append(0)
        for n_rounds in range(1, settings.n_rounds + 1):
            plans, objective = [], 0.0
            for c in range(n_atoms):
                cost = _sqdist(means[c], M) + _sqdist(stds[c], S)
                cost += cost.max() * _sqdist(labels[c], V)
                plan = torch.from_numpy(settings.emd(uniform_atom, uniform, cost)).to(cost.dtype)
                plans.append(plan)
                objective += torch.sum(plan * cost).item()
            M, S, V = (_push(plans, lam, x, K) for x in (means, stds, labels))
            settings.rounds[-1] = n_rounds
            if previous is not None and abs(objective - previous) / K < settings.tol:
                break
            previous = objective
    return tuple(_push(plans, lam, x, K) for x in (means, stds, labels))


def _push(plans, lam, x, K):
    return sum(lam[c] * K * (plan.T @ x[c]) for c, plan in enumerate(plans))


def _sqdist(x, y):
    return torch.addmm((x * x).sum(1)[:, None] + (y * y).sum(1)[None], x, y.T, alpha=-2.0)


def _project_simplex(rows):
    """Euclidean projection of each row on the simplex, by sorting."""
    u = rows.sort(dim=1, descending=True).values
    excess = u.cumsum(1) - 1.0
    index = torch.arange(1, rows.shape[1] + 1, dtype=rows.dtype)
    rho = (u - excess / index > 0).sum(1, keepdim=True)
    return (rows - excess.gather(1, rho - 1) / rho).clamp(min=0.0)
