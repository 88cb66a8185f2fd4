"""Compare dictionary learning in mixda with a torch transcription of the authors' code.

    python benchmarks/dictionary.py [--K 31 62 124 217] [--steps 50] [--threads 2] [--no-engine]

Both learn from the same synthetic domains (d = 2048, 31 classes, two sources and a target, three
atoms). Both dictionaries are evaluated by the same independent code: fixed beta, its own
implementation of Algorithm 1, and the sum over domains of SMW2² (sources) and MW2² (target).
Nothing is extrapolated: all steps are run, and the time to equal loss is the wall time of the
engine, including its start-up.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# OpenMP threads of torch spin while they wait, which makes the transcription up to ten times slower
# on a busy machine. Let them sleep instead. This must be set before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mixda import Mixture

Array = NDArray[np.float64]

# ------------------------------------------------------------------------------------------------
# The engine. `mixda.learn_dictionary` is called in this block only.
# The variants show where a speed-up comes from: "adam, random" uses the optimizer and the kind of
# start of the transcription, "block, random" adds the optimizer, "default" adds the start.
ENGINE: dict[str, dict[str, Any]] = {
    "adam, random": {"optimizer": "adam", "init": "random"},
    "block, random": {"optimizer": "block", "init": "random"},
    "default": {},
}


def time_engine(
    problem: Problem, K: int, arguments: Any, options: dict[str, Any]
) -> tuple[Array, float]:
    """Return the seconds of each step without a callback, and the share of dense products."""
    import mixda

    clock, seconds = clock_of(arguments), []
    for n_iter in (1, arguments.steps):
        start = clock()
        with watch_products(clock) as spent:
            d = mixda.learn_dictionary(
                problem.sources,
                problem.target,
                n_atoms=arguments.atoms,
                n_components=K,
                n_iter=n_iter,
                tol=-np.inf,
                random_state=arguments.seed,
                **options,
            )
        seconds.append(clock() - start)
    stepping = seconds[1] - seconds[0]
    if arguments.cpu_time:  # the history has wall times only
        return np.array([stepping / (arguments.steps - 1)]), sum(spent) / stepping
    return np.diff(d.history.seconds), sum(spent) / float(d.history.seconds[-1])


def run_engine(
    problem: Problem, K: int, n_steps: int, arguments: Any, options: dict[str, Any], stop: Any
) -> Learned:
    """Run the engine for at most `n_steps` updates, until `stop(learned)` is true.

    The time of the evaluation in `stop` is not counted; the start-up is.
    """
    import mixda

    learned: list[Learned] = []
    step_ends: list[float] = []
    paused, stopped = 0.0, False
    clock = clock_of(arguments)
    start = clock()

    def callback(d: Any) -> bool:
        nonlocal paused, stopped
        if stopped:  # the engine reports its last state again
            return True
        now = clock()
        step_ends.append(now - start - paused)
        n_done = len(step_ends) - 1  # the first call reports the start
        steps = np.diff(step_ends)
        learned[:] = [Learned(list(d.atoms), d.coordinates, step_ends[-1], n_done, steps)]
        stopped = bool(stop(learned[0]))
        paused += clock() - now
        return stopped

    mixda.learn_dictionary(
        problem.sources,
        problem.target,
        n_atoms=arguments.atoms,
        n_components=K,
        n_iter=n_steps,
        tol=-np.inf,  # no early stopping
        callback=callback,
        random_state=arguments.seed,
        **options,
    )
    return learned[0]


# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learned:
    """A learned dictionary and the wall time it took."""

    atoms: list[Mixture]
    coordinates: Array
    seconds: float
    n_steps: int
    step_seconds: Array


@dataclass(frozen=True)
class Problem:
    """Two labeled sources, an unlabeled target, and the target labels for scoring."""

    sources: list[Mixture]
    target: Mixture
    labeled_target: Mixture
    X: Array
    y: NDArray[np.int64]

    @property
    def domains(self) -> list[Mixture]:
        return [*self.sources, self.target]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--K", type=int, nargs="+", default=[31, 62, 124, 217])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--classes", type=int, default=31)
    parser.add_argument("--atoms", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--init", choices=["zeros", "normal"], default="zeros")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="measure processor time (use with --threads 1 on a shared machine)",
    )
    parser.add_argument(
        "--per-step",
        action="store_true",
        help="only time steps of the transcription and of the default, in alternating rounds",
    )
    parser.add_argument("--no-engine", action="store_true", help="time the transcription only")
    arguments = parser.parse_args()
    if arguments.per_step:
        compare_steps(arguments)
        return
    print_settings(arguments)
    with threadpool_limits(arguments.threads):
        for K in arguments.K:
            problem = make_problem(K, arguments.features, arguments.classes, seed=arguments.seed)
            reference = run_transcription(problem, K, arguments)
            if not arguments.no_engine:
                for name, options in ENGINE.items():
                    compare(problem, K, reference, name, options, arguments)


def compare_steps(arguments: argparse.Namespace, n_rounds: int = 3) -> None:
    """Print the time of a step for each K: medians of alternating rounds, and mean for the engine.

    A step of the engine that moves the coordinates only is cheaper. The mean includes all steps.
    """
    import _transcription

    import mixda
    import mixda.dictionary._learn as learn

    clock = clock_of(arguments)
    learn.time = argparse.Namespace(perf_counter=clock)  # the clock of the history
    print(
        "| K | transcription | engine, median step | ratio | engine, mean step | ratio | products |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for K in arguments.K:
        problem, rows = make_problem(K, arguments.features, arguments.classes), []
        with threadpool_limits(arguments.threads):
            for _ in range(n_rounds):
                theirs = _transcription.run(
                    problem.sources, problem.target, arguments.atoms, K, 4,
                    n_threads=arguments.threads, clock=clock,
                )  # fmt: skip
                with watch_products(clock) as spent:
                    ours = mixda.learn_dictionary(
                        problem.sources, problem.target, n_atoms=arguments.atoms, n_components=K,
                        n_iter=arguments.steps, tol=-np.inf,
                    ).history.seconds  # fmt: skip
                steps = np.diff(ours)
                share = sum(spent) / float(ours[-1])
                rows.append((theirs["seconds_per_step"], np.median(steps), steps.mean(), share))
        reference, median, mean, share = np.array(rows).T
        print(
            f"| {K} | {1e3 * np.median(reference):.0f} ms | {1e3 * np.median(median):.1f} ms "
            f"| {np.median(reference / median):.1f}× | {1e3 * np.median(mean):.1f} ms "
            f"| {np.median(reference / mean):.1f}× | {np.median(share):.0%} |",
            flush=True,
        )


def clock_of(arguments: argparse.Namespace) -> Any:
    return time.process_time if arguments.cpu_time else time.perf_counter


def print_settings(arguments: argparse.Namespace) -> None:
    print(
        f"d = {arguments.features}, {arguments.classes} classes, {arguments.atoms} atoms, "
        f"3 domains, {arguments.steps} steps of the transcription ({arguments.dtype}, "
        f"{arguments.init} start), {arguments.threads} threads, "
        f"{'processor' if arguments.cpu_time else 'wall'} time, load {os.getloadavg()[0]:.1f} "
        f"on {os.cpu_count()} cores.\nAll steps of the transcription are run; its time is their "
        "number × their median (or their sum if less), so that other jobs do not count against "
        "it.\nSteps: median (minimum); the engine's times to a loss are of whole runs, "
        "start-up included. "
        "Losses are the common evaluator's.\n"
    )
    if not arguments.no_engine:
        columns = [
            "K", "engine", "transcription s/step", "engine s/step", "ratio per step",
            "loss after the steps", "engine's loss (steps)", "time to that loss: transcription",
            "engine (steps)", "ratio", "matrix products",
            "target accuracy: transcription / engine at that loss / at its end",
        ]  # fmt: skip
        print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)


def run_transcription(problem: Problem, K: int, arguments: argparse.Namespace) -> Learned:
    import _transcription
    import torch

    result = _transcription.run(
        problem.sources,
        problem.target,
        arguments.atoms,
        K,
        arguments.steps,
        init=arguments.init,
        dtype=getattr(torch, arguments.dtype),
        n_threads=arguments.threads,
        seed=arguments.seed,
        clock=clock_of(arguments),
    )
    seconds = np.array(result["step_seconds"])
    learned = Learned(
        [
            Mixture(np.full(K, 1.0 / K), m, s, v / v.sum(1, keepdims=True))
            for m, s, v in result["atoms"]
        ],
        result["coordinates"],
        # bursts of other jobs must not count in our favor
        min(float(seconds.sum()), arguments.steps * float(np.median(seconds))),
        arguments.steps,
        seconds,
    )
    if arguments.no_engine:
        losses = result["losses"]
        print(
            f"K={K}: s/step median {np.median(seconds):.4f}, min {seconds.min():.4f}, max "
            f"{seconds.max():.4f}; total {seconds.sum():.1f} s, of which ot.emd "
            f"{result['seconds_emd']:.1f} s; {result['rounds']:.1f} rounds per "
            f"barycenter; own loss {losses[0]:.1f} -> {losses[-1]:.1f}; "
            f"common loss {evaluate(problem, learned):.1f}; "
            f"target accuracy {accuracy(problem, learned):.3f}",
            flush=True,
        )
    return learned


def compare(
    problem: Problem,
    K: int,
    reference: Learned,
    name: str,
    options: dict[str, Any],
    arguments: argparse.Namespace,
) -> None:
    """Print one row: time per step, and wall time to the loss of the reference."""
    goal = evaluate(problem, reference)
    reached: Learned | None = None

    def stop(learned: Learned) -> bool:
        nonlocal reached
        if reached is None and learned.n_steps in judged_steps(2 * arguments.steps):
            reached = learned if evaluate(problem, learned) <= goal else None
        return learned.n_steps >= arguments.steps and reached is not None

    last = run_engine(problem, K, 2 * arguments.steps, arguments, options, stop)
    steps, products = time_engine(problem, K, arguments, options)
    reference_steps = reference.step_seconds
    typical, quickest = (f(reference_steps) / f(steps) for f in (np.median, np.min))
    if reached is None:
        to_goal, ratio = "not reached", "–"
    else:
        to_goal = f"{reached.seconds:.2f} s ({reached.n_steps})"
        ratio = f"{reference.seconds / reached.seconds:.1f}×"
    learned = (reference, reached or last, last)
    cells = [
        K,
        name,
        f"{np.median(reference_steps):.4f} ({reference_steps.min():.4f})",
        f"{np.median(steps):.4f} ({steps.min():.4f})",
        f"{typical:.1f}× ({quickest:.1f}×)",
        f"{goal:.1f}",
        f"{evaluate(problem, last):.1f} ({last.n_steps})",
        f"{reference.seconds:.2f} s",
        to_goal,
        ratio,
        f"{products:.0%}",
        " / ".join(f"{accuracy(problem, one):.3f}" for one in learned),
    ]
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def judged_steps(limit: int) -> set[int]:
    """Return the steps to evaluate: the first ten, then fewer and fewer, as evaluation is slow."""
    steps, n = set(range(11)), 10
    while n < limit:
        n = max(n + 1, int(1.15 * n))
        steps.add(n)
    return steps


# --- the domains --------------------------------------------------------------------------------


def make_problem(K: int, d: int, nc: int, seed: int = 0, n_samples: int = 620) -> Problem:
    """Make domains like standardized ResNet features.

    The total variance is close to one, a third of it between classes. Classes have common means.
    Each domain scales and shifts the features and has its own components within a class, with
    non-uniform weights and standard deviations.
    """
    rng = np.random.default_rng(seed)
    class_means = 0.55 * rng.normal(size=(nc, d))
    sources = [_make_domain(rng, class_means, K) for _ in range(2)]
    labeled_target = _make_domain(rng, class_means, K)
    t = labeled_target
    target = Mixture(t.weights, t.means, t.stds)
    X, y = t.sample(n_samples, random_state=seed)
    return Problem(sources, target, t, X, np.asarray(y))


def _make_domain(rng: np.random.Generator, class_means: Array, K: int) -> Mixture:
    nc, d = class_means.shape
    classes = np.arange(K) % nc
    scale, shift = np.exp(0.15 * rng.normal(size=d)), 0.3 * rng.normal(size=d)
    means = class_means[classes] + 0.25 * rng.normal(size=(K, d))
    stds = rng.uniform(0.5, 1.0, size=(K, d))
    return Mixture(
        rng.dirichlet(np.full(K, 5.0)), scale * means + shift, scale * stds, np.eye(nc)[classes]
    )


# --- evaluation: numpy and ot.emd only, the same for both ---------------------------------------


def evaluate(problem: Problem, learned: Learned, n_rounds: int = 20) -> float:
    """Return the sum over domains of SMW2² (labeled) or MW2² to the barycenter, for fixed beta."""
    domains = problem.domains
    beta = max(
        float(feature_cost(p, q).max()) for i, p in enumerate(domains) for q in domains[i + 1 :]
    )
    total = 0.0
    for domain, weights in zip(domains, learned.coordinates, strict=True):
        b = judge_barycenter(learned.atoms, weights, beta, n_rounds)
        cost = labeled_cost(domain, b, beta)
        total += float(np.sum(plan(domain.weights, b.weights, cost) * cost))
    return total


def accuracy(problem: Problem, learned: Learned) -> float:
    """Return the MAP accuracy of the reconstructed target on samples of the true target."""
    beta = max(float(feature_cost(p, problem.target).max()) for p in problem.sources)
    b = judge_barycenter(learned.atoms, learned.coordinates[-1], beta, 20)
    return float(np.mean(b.predict(problem.X) == problem.y))


def judge_barycenter(atoms: list[Mixture], lam: Array, beta: float, n_rounds: int) -> Mixture:
    """Run Algorithm 1 from two starts and return the better *barycenter objective*, not loss.

    The starts are that of the transcription (zero means, cyclic labels) and the heaviest atom.
    """
    K, d, nc = atoms[0].n_components, atoms[0].n_features, atoms[0].labels.shape[1]
    uniform = np.full(K, 1.0 / K)
    cyclic = Mixture(uniform, np.zeros((K, d)), np.ones((K, d)), np.eye(nc)[np.arange(K) % nc])
    heaviest = atoms[int(np.argmax(lam))]
    used = [c for c in range(len(atoms)) if lam[c] > 0]
    candidates = []
    for b in (cyclic, heaviest):
        previous = np.inf
        for _ in range(n_rounds):
            costs = [labeled_cost(b, atoms[c], beta) for c in used]
            plans = [
                plan(b.weights, atoms[c].weights, cost) for c, cost in zip(used, costs, strict=True)
            ]
            objective = sum(
                lam[c] * np.sum(w * cost) for c, w, cost in zip(used, plans, costs, strict=True)
            )
            b = _push(b, atoms, used, lam, plans)
            if previous - objective <= 1e-7 * abs(objective):
                break
            previous = objective
        candidates.append((objective, b))
    return min(candidates, key=lambda pair: pair[0])[1]


def _push(
    b: Mixture, atoms: list[Mixture], used: list[int], lam: Array, plans: list[Array]
) -> Mixture:
    maps = [lam[c] * w / b.weights[:, None] for c, w in zip(used, plans, strict=True)]
    means, stds, labels = (
        sum(T @ getattr(atoms[c], name) for c, T in zip(used, maps, strict=True))
        for name in ("means", "stds", "labels")
    )
    return Mixture(b.weights, means, stds, labels / labels.sum(1, keepdims=True))


def plan(p: Array, q: Array, cost: Array) -> Array:
    import ot

    return ot.emd(np.array(p) / p.sum(), np.array(q) / q.sum(), cost, numItermax=10_000_000)


def labeled_cost(p: Mixture, q: Mixture, beta: float) -> Array:
    cost = feature_cost(p, q)
    if p.is_labeled and q.is_labeled:
        cost = cost + beta * _sqdist(p.labels, q.labels)
    return cost


def feature_cost(p: Mixture, q: Mixture) -> Array:
    return _sqdist(p.means, q.means) + _sqdist(p.stds, q.stds)


def _sqdist(a: Array, b: Array) -> Array:
    return np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1) - 2.0 * a @ b.T, 0.0)


# --- lower bound on the time of a step ----------------------------------------------------------


@contextmanager
def watch_products(clock: Any) -> Iterator[list[float]]:
    """Collect the time that the engine spends in large dense products and solves.

    They bound the time of a step from below: the inner products of atoms and domains, computed or
    updated, and for block steps the solution with as many right-hand sides as there are features.
    """
    from mixda.dictionary._engine import Engine
    from mixda.dictionary._quadratic import DampedStep

    spent: list[float] = []

    def timed(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            start = clock()
            result = function(*arguments)
            spent.append(clock() - start)
            return result

        return call

    watched = [(Engine, "_products"), (Engine, "updated_products"), (DampedStep, "__call__")]
    originals = [getattr(owner, name) for owner, name in watched]
    for (owner, name), original in zip(watched, originals, strict=True):
        setattr(owner, name, timed(original))
    try:
        yield spent
    finally:
        for (owner, name), original in zip(watched, originals, strict=True):
            setattr(owner, name, original)


if __name__ == "__main__":
    main()
