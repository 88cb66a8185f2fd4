"""Run a suite: every domain in turn the target × methods × seeds, in parallel, resumable."""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.text import listed
from mixda._core.validation import check_choice, check_positive_int
from mixda._version import __version__
from mixda.benchmark._ablations import ablation_cells
from mixda.benchmark._cells import Cell, Record, check_folder, digest, is_done, slug, sweep
from mixda.benchmark._entries import (
    HEADS,
    METHODS,
    SHALLOW,
    check_methods,
    make_method,
    parameters_of,
    without_defaults,
)
from mixda.benchmark._features import FEATURES, check_backbone, is_whole, recipe
from mixda.benchmark._suites import ABLATIONS, SUITES, find_suite, fingerprint, own_name, thin
from mixda.benchmark._worker import give_up, prepare_features, run_cell
from mixda.datasets import DomainDataset

Job = Callable[..., str | None]
Jobs = list[tuple[Job, tuple[Any, ...]]]

_DASK_SECONDS = 10  # a scheduler that is there answers sooner
_PACKAGES = ("numpy", "scipy", "scikit-learn", "POT", "torch")


@dataclass(frozen=True)
class RunSummary:
    """What a run did.

    Attributes
    ----------
    folder : Path
    n_cells : int
        Asked for.
    n_run, n_found, n_failed : int
        Finished now, finished in an earlier run, failed now.
    errors : tuple of str
        The different sentences of the failures.
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
    r"""Run a suite and write one file per cell as it finishes; go on where a run was stopped.

    A cell is (target, method, seed). The rows of the target are split once into five folds (by
    `DomainDataset.block` where there is one, else by chance; never by label). With seed
    :math:`s`, a method gets all sources and the unlabeled rows of four folds, and is scored on
    fold :math:`s \bmod 5`; so five seeds use every fold once. Features, with a backbone where
    they have one, are made once per target from its sources, and are the same for all methods.

    Parameters
    ----------
    suite : str
        A name of `SUITES` or `ABLATIONS`, or the path of your own data.
    methods : iterable of str, optional
        Names of `METHODS`, or "all"; by default the shallow ones (an ablation has its own).
    seeds : int
        Seeds 0 … seeds - 1.
    out : str or Path
        Folder of the run. Cells that are finished there are not run again.
    settings : dict of dict, optional
        Hyper-parameters by method, as ``{"GMMDaDiL": {"n_atoms": 4}}``. Other settings are
        another cell.
    targets : str or sequence of str or int, optional
        Names or numbers of domains, or a text of them with commas; by default every domain in
        turn.
    features : str, optional
        See `FEATURES`; by default those of the suite.
    rows : int, optional
        Keep at most so many rows of every domain, for a quick run.
    head : {"logistic", "svc"}
        Classifier on samples of the target mixture, reported beside MAP.
    data : str, optional
        Data of an ablation; by default cwru.
    label, domain : str, optional
        Columns of your own data with the classes and with the domains.
    columns, drop : sequence of str, optional
        Columns of your own data that are features (by default all of numbers), or that are not.
    missing : {"error", "drop"}, optional
        What to do with rows of your own data that lack a value; by default an error.
    n_jobs : int
        Processes; -1 is one per core.
    dask : str, optional
        Address of a Dask scheduler to run the cells on; its workers must see `out`.
    verbose : bool
        Say on standard error what was read of your own data; show progress, if on a terminal.

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
    _check_jobs(n_jobs)
    is_ablation = suite in ABLATIONS
    _check_use(suite, is_ablation, data)
    source = ("cwru" if data is None else data) if is_ablation else suite
    reading = {"label": label, "domain": domain, "features": columns, "drop": drop}
    reading["missing"] = missing
    given = {name: value for name, value in reading.items() if value not in (None, (), [])}
    found = find_suite(source, given)
    features = check_choice(found.features if features is None else features, "features", FEATURES)
    check_backbone(features)
    if source not in SUITES:
        _check_apart(out, Path(source).expanduser())
    samples = thin(found.load(), rows)
    if source not in SUITES:
        source = own_name(source)
        suite = suite if is_ablation else source
        if verbose:
            print(_describe(source, samples), file=sys.stderr)
    names = _check_targets(samples, found.targets if targets is None else targets)
    if is_ablation and targets is not None and len(names) > 1:
        raise MixdaError(
            f"the ablation {suite!r} looks at one target, got {', '.join(names)}; choose one."
        )
    base = Cell(suite, source, features, rows, fingerprint(samples), "", "", 0, {}, head)
    base = replace(base, recipe=recipe(features))
    chosen = None if methods is None else check_methods(methods)
    chosen_settings = {
        check_methods([name])[0]: dict(values) for name, values in (settings or {}).items()
    }
    if is_ablation:
        cells = ablation_cells(base, samples, names, chosen, seeds, chosen_settings)
    else:
        cells = _grid(base, names, chosen or list(SHALLOW), seeds, chosen_settings)
    _check_settings(chosen_settings, cells)
    return _run_cells(out.absolute(), _resolved(cells), samples, n_jobs, dask, verbose)


def _check_jobs(n_jobs: int) -> None:
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise MixdaError(f"jobs must be a number of processes, or -1 for all, got {n_jobs!r}.")


def _check_use(suite: str, is_ablation: bool, data: str | None) -> None:
    if not is_ablation and data is not None:
        raise MixdaError(
            f"data is for the ablations {', '.join(ABLATIONS)}; {suite} has its own, leave it out."
        )


def _check_apart(out: Path, own: Path) -> None:
    if own.is_dir() and own.resolve() in (out.resolve(), *out.resolve().parents):
        raise MixdaError(
            f"{out} lies among your data; give another folder as out, or the files of the run "
            "would be read as data."
        )


def _describe(name: str, data: DomainDataset) -> str:
    named = f": {listed(data.feature_names)}" if data.feature_names else ""
    parts = [f"{name}: {len(data.X):,} rows", f"{data.X.shape[1]} features{named}"]
    for what, names in (("domains", data.domain_names), ("classes", data.class_names)):
        parts.append(f"{len(names)} {what}: {listed(names)}")
    return "\n  ".join(parts)


def _check_targets(data: DomainDataset, targets: str | Sequence[str | int] | None) -> list[str]:
    known = data.domain_names
    if len(known) < 2:
        raise MixdaError(
            f"the data have one domain only ({known[0]}); a benchmark needs a source and a "
            "target: name the column of the domains (domain=… in Python, --domain on the command "
            "line)."
        )
    if targets is None:
        return list(known)
    given = _split_targets(targets, known) if isinstance(targets, str) else targets
    names = [known[data.domain_index(_named(one, known))] for one in given]
    if not names:
        raise MixdaError(f"no target was given; the domains are {listed(known)}.")
    if len(set(names)) < len(names):
        raise MixdaError(f"a target is given twice: {', '.join(names)}; name each once.")
    return names


def _split_targets(text: str, known: Sequence[str]) -> list[str]:
    """Split at commas, but not those of a name: the longest known name wins."""
    parts = text.split(",")
    found = []
    while parts:
        ends = [i for i in range(len(parts), 0, -1) if ",".join(parts[:i]).strip() in known]
        end = ends[0] if ends else 1
        found.append(",".join(parts[:end]).strip())
        parts = parts[end:]
    return [name for name in found if name]


def _named(domain: str | int, known: Sequence[str]) -> str | int:
    """Return a number for a text of digits that is no name."""
    is_number = isinstance(domain, str) and domain not in known and domain.isdecimal()
    return int(domain) if is_number else domain


def _check_settings(given: Mapping[str, Any], cells: Sequence[Cell]) -> None:
    unused = set(given) - {cell.method for cell in cells}
    if unused:
        raise MixdaError(f"settings are given for {', '.join(sorted(unused))}, which is not run.")
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError):
        raise MixdaError(
            "settings must be finite numbers, words, lists or None, which a file can hold, got "
            f"{given!r}."
        ) from None


def _grid(
    base: Cell,
    targets: Sequence[str],
    methods: Sequence[str],
    seeds: int,
    settings: Mapping[str, Mapping[str, Any]],
) -> list[Cell]:
    own = {m: without_defaults(m, settings.get(m, {})) for m in methods}
    return [
        replace(base, target=target, method=m, seed=seed, settings=own[m])
        for target in targets
        for m in methods
        for seed in range(seeds)
    ]


def _resolved(cells: Sequence[Cell]) -> list[Cell]:
    """Write down all hyper-parameters; a wrong setting is said here, before any work."""
    parameters: dict[tuple[str, str], dict[str, Any]] = {}
    complete = []
    for cell in cells:
        key = cell.method, digest(dict(cell.settings))
        if key not in parameters:
            parameters[key] = parameters_of(make_method(cell.method, cell.settings, 0))
        has_head = METHODS[cell.method].mixture and cell.experiment == "accuracy"
        head = cell.head if has_head else None  # no cell of another head is another cell
        complete.append(replace(cell, parameters=parameters[key], head=head))
    return complete


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
    paths = {cell.target: _feature_path(folder, cell) for cell in waiting}
    whole = {target: is_whole(path) for target, path in paths.items()}
    missing = [cell for cell in waiting if not whole[cell.target]]
    kinds = {cell.target: cell.features for cell in missing}
    with _backend(dask):
        jobs: Jobs = [
            (prepare_features, (paths[target], data, target, kind))
            for target, kind in kinds.items()
        ]
        unmade = dict(zip(kinds, _work(jobs, "features", n_jobs, verbose), strict=True))
        failures = []
        for cell in missing:
            reason = unmade[cell.target]
            if reason is not None:
                give_up(folder, cell, reason, about)
                failures.append(reason)
        ready = [cell for cell in waiting if unmade.get(cell.target) is None]
        random.SystemRandom().shuffle(ready)  # runs side by side then share the cells
        jobs = [(run_cell, (folder, cell, paths[cell.target], about)) for cell in ready]
        failures += [x for x in _work(jobs, "cells", n_jobs, verbose) if x is not None]
    return RunSummary(
        folder,
        n_cells=len(cells),
        n_run=len(waiting) - len(failures),
        n_found=len(cells) - len(waiting),
        n_failed=len(failures),
        errors=tuple(sorted(set(failures))),
    )


def _work(jobs: Jobs, what: str, n_jobs: int, verbose: bool) -> list[str | None]:
    """Do all jobs in parallel and show how many are done; return why each failed, or None."""
    from joblib import Parallel, __version__, delayed

    if tuple(int(number) for number in __version__.split(".")[:2]) < (1, 4):
        raise MixdaError(
            f"benchmarks need joblib 1.4 or newer, this is {__version__}; "
            "pip install 'mixda[bench]'."
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
        from distributed import Client
    except ImportError:
        raise MixdaError(
            "a Dask cluster needs dask[distributed]; pip install 'mixda[scale]'."
        ) from None
    from joblib import parallel_config

    try:
        client = Client(dask, timeout=_DASK_SECONDS)
    except (OSError, ValueError) as error:
        raise MixdaError(
            f"no Dask scheduler answers at {dask} ({' '.join(str(error).split())}); start one "
            "(dask scheduler), correct the address, or leave it out."
        ) from None
    with client, parallel_config(backend="dask"):
        yield


def provenance() -> Record:
    """Return what a reader of a result wants to know of its maker: versions, commit, machine."""
    versions = {"mixda": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    machine = f"{platform.system()} {platform.machine()}"
    return {
        "versions": versions,
        "commit": _commit(),
        "cores": os.cpu_count(),
        "machine": machine,
    }


def _commit() -> str | None:
    """Commit of the checkout that mixda runs from, with a plus if files differ; None if none."""
    home = Path(__file__).parents[1]
    if not (home.parents[1] / ".git").exists():  # an installed copy may lie in another's checkout
        return None
    commands = ("rev-parse --short HEAD", "status --porcelain -uno .")
    options: dict[str, Any] = {"cwd": home, "capture_output": True, "text": True, "check": True}
    try:
        name, changed = (
            subprocess.run(["git", *command.split()], **options).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{name}+" if changed else name


def _feature_path(folder: Path, cell: Cell) -> Path:
    what = [cell.data, cell.features, cell.recipe, cell.rows, cell.fingerprint, cell.target]
    name = f"{slug(cell.data)}-{slug(cell.target)}-{cell.features}-{digest(what)}"
    return folder / "features" / f"{name}.npz"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MixdaError(
            f"{folder} cannot be made ({error.strerror}); give another folder as out."
        ) from None
