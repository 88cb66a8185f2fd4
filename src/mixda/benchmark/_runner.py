"""Run a suite in parallel: each domain in turn as the target × methods × seeds. Resumable."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.text import printable
from mixda._core.validation import check_choice, check_n_jobs, check_positive_int
from mixda.benchmark._cells import Cell, check_folder, digest, is_done, slug, sweep
from mixda.benchmark._entries import HEADS
from mixda.benchmark._features import BACKBONES, is_whole
from mixda.benchmark._plan import describe_data, plan_cells
from mixda.benchmark._provenance import provenance
from mixda.benchmark._worker import prepare_features, record_failure, run_cell
from mixda.chunks import connected_client
from mixda.datasets import DomainDataset

Job = Callable[..., str | None]
Jobs = list[tuple[Job, tuple[Any, ...]]]

_DASK_TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class RunSummary:
    """Outcome of a run.

    Attributes
    ----------
    folder : Path
    n_cells : int
        Number of cells requested.
    n_run, n_found, n_failed : int
        Cells finished in this run, finished in an earlier run, and failed in this run.
    errors : tuple of str
        Distinct error messages.
    """

    folder: Path
    n_cells: int
    n_run: int
    n_found: int
    n_failed: int
    errors: tuple[str, ...]


def run(
    suite: str,
    methods: Iterable[str] | None = None,
    seeds: int = 5,
    out: str | Path = "bench",
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    targets: str | Sequence[str | int] | None = None,
    features: str | None = None,
    rows: int | None = None,
    head: str = "logistic",
    data: str | None = None,
    label: str | None = None,
    domain: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: str | None = None,
    n_jobs: int = 1,
    dask: str | None = None,
    verbose: bool = False,
) -> RunSummary:
    r"""Run a suite and write one file per cell; interrupted runs can be resumed.

    A cell is (target, method, seed). The rows of the target are split once into five folds, by
    `DomainDataset.block` if available, otherwise at random, never by label. With seed :math:`s`,
    a method gets all sources and the unlabeled rows of four folds, and is scored on fold
    :math:`s \bmod 5`, so that five seeds use each fold once. Features are computed once per
    target and are the same for all methods. If they have a backbone, it is trained on the sources
    of the target, once per seed.

    Parameters
    ----------
    suite : str
        A key of `SUITES`, one of `ABLATIONS`, or the path of your own data.
    methods : iterable of str, optional
        Keys of `METHODS`, or "all"; by default the shallow methods (ablations have their own).
    seeds : int
        Number of seeds, 0 to ``seeds - 1``.
    out : str or Path
        Folder of the run. Cells finished there are not run again.
    settings : dict of dict, optional
        Hyper-parameters by method, such as ``{"GMMDaDiL": {"n_atoms": 4}}``. Different settings
        make different cells.
    targets : str or sequence of str or int, optional
        Names or numbers of domains, or a comma-separated string; by default each domain in turn.
    features : str, optional
        One of `FEATURES`; by default those of the suite.
    rows : int, optional
        Maximum number of rows per domain, for a quick run.
    head : {"logistic", "svc"}
        Classifier trained on samples of the target mixture, reported next to MAP.
    data : str, optional
        Data of an ablation; by default cwru.
    label, domain : str, optional
        Columns of your own data with the classes and the domains.
    columns, drop : sequence of str, optional
        Columns of your own data to use as features (by default all numeric), or to exclude.
    missing : {"error", "drop"}, optional
        Whether rows of your own data with missing values raise an error (the default) or are
        dropped.
    n_jobs : int
        Number of processes; -1 uses all cores.
    dask : str, optional
        Address of a Dask scheduler; its workers need access to `out`.
    verbose : bool
        Summarize your own data on standard error, and show progress on a terminal.

    Returns
    -------
    RunSummary

    Examples
    --------
    >>> import tempfile
    >>> from mixda import benchmark
    >>> with tempfile.TemporaryDirectory() as out:
    ...     first = benchmark.run("toy", ["SourceOnly"], seeds=2, out=out, rows=60)
    ...     again = benchmark.run("toy", ["SourceOnly"], seeds=2, out=out, rows=60)
    >>> first.n_run, again.n_run, again.n_found
    (2, 0, 2)
    """
    seeds = check_positive_int(seeds, "seeds")
    check_choice(head, "head", HEADS)
    out = check_folder(out)
    check_n_jobs(n_jobs)
    reading = {
        "label": label,
        "domain": domain,
        "features": columns,
        "drop": drop,
        "missing": missing,
    }
    plan = plan_cells(
        suite,
        methods,
        seeds,
        out,
        settings=settings,
        targets=targets,
        features=features,
        rows=rows,
        head=head,
        data=data,
        reading={name: value for name, value in reading.items() if value not in (None, (), [])},
    )
    if verbose and plan.is_own:
        print(printable(describe_data(plan), keep="\n"), file=sys.stderr)
    return _run_cells(out.absolute(), plan.cells, plan.data, n_jobs, dask, verbose)


def _run_cells(
    folder: Path,
    cells: Sequence[Cell],
    data: DomainDataset,
    n_jobs: int,
    dask: str | None,
    verbose: bool,
) -> RunSummary:
    for part in ("cells", "features"):
        _make_folder(folder / part)
    sweep(folder)
    about = {**provenance(), "domains": list(data.domain_names)}
    waiting = [cell for cell in cells if not is_done(folder, cell)]
    paths = {cell.key: _feature_path(folder, cell) for cell in waiting}
    whole = {path: is_whole(path) for path in set(paths.values())}
    missing = {paths[cell.key]: cell for cell in waiting if not whole[paths[cell.key]]}
    with _backend(dask):
        jobs: Jobs = [
            (prepare_features, (path, data, cell.target, cell.features, _backbone_seed(cell)))
            for path, cell in missing.items()
        ]
        problems = dict(zip(missing, _run_jobs(jobs, "features", n_jobs, verbose), strict=True))
        failures, ready = [], []
        for cell in waiting:
            reason = problems.get(paths[cell.key])
            if reason is None:
                ready.append(cell)
            else:
                record_failure(folder, cell, reason, about)
                failures.append(reason)
        random.SystemRandom().shuffle(ready)  # concurrent runs then share the cells
        jobs = [(run_cell, (folder, cell, paths[cell.key], about)) for cell in ready]
        failures += [x for x in _run_jobs(jobs, "cells", n_jobs, verbose) if x is not None]
    return RunSummary(
        folder,
        n_cells=len(cells),
        n_run=len(waiting) - len(failures),
        n_found=len(cells) - len(waiting),
        n_failed=len(failures),
        errors=tuple(sorted(set(failures))),
    )


def _run_jobs(jobs: Jobs, what: str, n_jobs: int, verbose: bool) -> list[str | None]:
    """Run all jobs in parallel; return the error message of each, or None."""
    from joblib import Parallel, __version__, delayed

    if tuple(int(number) for number in __version__.split(".")[:2]) < (1, 4):
        raise MixdaError(
            f"Benchmarks require joblib 1.4 or newer, but {__version__} is installed. Install it "
            "with: pip install 'mixda[bench]'"
        )
    reasons: list[str | None] = [None] * len(jobs)
    if not jobs:
        return reasons
    calls = (delayed(_numbered)(i, job, arguments) for i, (job, arguments) in enumerate(jobs))
    with Progress(len(jobs), what, verbose) as progress:
        progress.update(0)
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", max_nbytes=None)
        for done, (i, reason) in enumerate(parallel(calls), 1):
            reasons[i] = reason
            n_failed = sum(reason is not None for reason in reasons)
            progress.update(done, f"{n_failed} failed" if n_failed else "")
    return reasons


def _numbered(i: int, job: Job, arguments: tuple[Any, ...]) -> tuple[int, str | None]:
    return i, job(*arguments)


@contextmanager
def _backend(dask: str | None) -> Iterator[None]:
    if dask is None:
        yield
        return
    try:
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise MixdaError(
            f"dask={dask!r} requires dask[distributed]. Install it with: pip install 'mixda[scale]'"
        ) from None
    from joblib import parallel_config

    with connected_client(dask, f"dask={dask!r} (--dask)", set_as_default=True) as client:
        try:
            client.wait_for_workers(1, timeout=_DASK_TIMEOUT_SECONDS)
            with parallel_config(backend="dask"):
                yield
        except TimeoutError:
            raise MixdaError(
                f"dask={dask!r}: the scheduler has no workers. Start some with "
                f"`dask worker {dask}`, and run the same command again."
            ) from None
        except (CancelledError, OSError, RuntimeError, KilledWorker) as error:
            if client.status == "running" and not isinstance(error, KilledWorker):
                raise
            raise MixdaError(
                f"dask={dask!r}: the scheduler or its workers were lost. Finished cells are kept: "
                "start the cluster and run the same command again to continue."
            ) from None


def _feature_path(folder: Path, cell: Cell) -> Path:
    identity = [cell.data, cell.features, cell.recipe, cell.rows, cell.fingerprint, cell.target]
    if cell.features in BACKBONES:
        identity.append(_backbone_seed(cell))
    name = f"{slug(cell.data)}-{slug(cell.target)}-{cell.features}-{digest(identity)}"
    return folder / "features" / f"{name}.npz"


def _backbone_seed(cell: Cell) -> int:
    return cell.seed if cell.features in BACKBONES else 0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MixdaError(
            f"out: {folder} cannot be created ({error.strerror}). Choose another folder."
        ) from None
