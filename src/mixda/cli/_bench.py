"""``mixda bench``: run benchmarks, print tables, compare with the paper, draw figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mixda import benchmark
from mixda._core.errors import MixdaError
from mixda._core.text import printable, split_names
from mixda.benchmark import parse_settings

CELLS_FAILED = 3  # the exit code if the call is right but results are missing
_HOME = Path("bench")

app = typer.Typer(
    help="Run and resume benchmarks, print their tables, draw their figures.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folder = Annotated[Path, typer.Argument(help="Folder of a run (mixda bench run --out).")]
Columns = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Feature columns of your data, comma-separated."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Columns of your data to leave out."),
]
Format = Annotated[str, typer.Option(help="markdown, latex or csv.")]
Score = Annotated[
    str, typer.Option(help="Rows of the mixture methods: map, head, or both.", show_default=True)
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to a file instead of printing.")
]


def run_suite(
    suite: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join([*benchmark.SUITES, *benchmark.ABLATIONS])}, or the path of "
            "your own data."
        ),
    ],
    out: Annotated[
        str, typer.Option(metavar="PATH", help="Folder of the run; finished cells in it are kept.")
    ] = str(_HOME),
    methods: Annotated[
        str | None,
        typer.Option(
            help=f"all, or a comma-separated list of {', '.join(benchmark.METHODS)}; default: the "
            "shallow methods without AutoMSDA."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seed s holds out fold s mod 5 of the target.")] = 5,
    targets: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated domains or their numbers from 0; default: each in turn."
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(benchmark.FEATURES)}; default: those of the suite."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="METHOD.parameter=JSON value, such as GMMDaDiL.n_atoms=4."),
    ] = None,
    head: Annotated[
        str, typer.Option(help="Classifier on samples of a target mixture: logistic or svc.")
    ] = "logistic",
    rows: Annotated[int | None, typer.Option(help="Maximum number of rows per domain.")] = None,
    data: Annotated[
        str | None, typer.Option(help="Data of an ablation: another suite or a path [cwru].")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the classes, in your data.")] = None,
    domain: Annotated[str | None, typer.Option(help="Column of the domains, in your data.")] = None,
    columns: Columns = None,
    drop: Drop = None,
    missing: Annotated[
        str | None,
        typer.Option(metavar="error|drop", help="Rows of your data with missing values [error]."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 for one per core.")] = 1,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler; its workers have one thread and see --out."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Run targets × methods × seeds; the same command resumes an interrupted run.

    Each domain in turn serves as the target. Its rows are split once into five folds, by runs or
    stretches of time where the data have them, never by labels. With seed s, a method gets all
    sources and four unlabeled folds of the target, and is scored on the fifth, fold s mod 5.
    Features are computed once per target, the same for all methods; those that end in mlp, and
    fcn, train a network on the sources, once per seed. Each cell is a file in OUT/cells. The exit
    code is 3 if cells failed.
    """
    summary = benchmark.run(
        suite,
        None if methods is None else methods.split(","),
        seeds,
        out,
        settings=parse_settings(settings or []),
        targets=targets,
        features=features,
        rows=rows,
        head=head,
        data=data,
        label=label,
        domain=domain,
        columns=_names(columns, "--columns"),
        drop=_names(drop, "--drop") or (),
        missing=missing,
        n_jobs=jobs,
        dask=dask,
        verbose=not quiet,
    )
    if not quiet:
        show = "figure" if suite in benchmark.ABLATIONS else "table"
        typer.echo(
            f"{summary.n_run} cells run, {summary.n_found} found finished, {summary.n_failed} "
            f"failed; see: mixda bench {show} {out}"
        )
    for sentence in summary.errors:
        typer.echo(f"failed: {printable(sentence)}", err=True)
    if summary.n_failed:
        raise typer.Exit(CELLS_FAILED)


def print_table(
    folder: Folder = _HOME,
    format: Format = "markdown",
    score: Score = "both",
    output: Output = None,
) -> None:
    """Print accuracies with ranks and tests; ▼ marks results below source-only.

    Ranks and tests count each method once: the mixture methods by their classifier on samples of
    the mixture, or by maximum a posteriori with --score map.
    """
    _show(benchmark.table(folder, format, score), output)


def print_comparison(
    folder: Folder = _HOME,
    format: Format = "markdown",
    score: Score = "both",
    output: Output = None,
) -> None:
    """Print our results, the published ones, and the difference."""
    _show(benchmark.compare(folder, format, score), output)


def draw_figures(
    folder: Folder = _HOME,
    out: Annotated[
        str | None, typer.Option(metavar="PATH", help="Folder of the figures [FOLDER/figures].")
    ] = None,
    format: Annotated[str, typer.Option(help="svg, png or pdf.")] = "svg",
    embedding: Annotated[
        str | None, typer.Option(help="Embedding of trajectories: umap or pca [umap if installed].")
    ] = None,
    score: Annotated[
        str, typer.Option(help="Rank the mixture methods by map, or by their head (both, head).")
    ] = "both",
) -> None:
    """Draw the critical-difference diagram and the ablations of the run."""
    for path in benchmark.figure(folder, out, format, embedding, score):
        typer.echo(path)


def _names(values: list[str] | None, option: str) -> list[str] | None:
    names = split_names(values)
    if values and names is None:
        raise MixdaError(f"{option} names no column; give comma-separated names, or leave it out.")
    return names


def _show(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(printable(text, keep="\n\t"), nl=False)
        return
    from mixda._core.atomic import write_atomically

    write_atomically(output, text.encode())
    typer.echo(f"written: {output}")


_EXAMPLES = {
    "run": "mixda bench run cwru --methods SourceOnly,GMMWBT --seeds 5 --out out/cwru --jobs 2",
    "table": "mixda bench table out/cwru --format latex -o table.tex",
    "compare": "mixda bench compare out/cwru",
    "figure": "mixda bench figure out/cwru --format png",
}
_COMMANDS = (run_suite, print_table, print_comparison, draw_figures)
for (_name, _example), _function in zip(_EXAMPLES.items(), _COMMANDS, strict=True):
    app.command(_name, epilog=f"Example:\n\n{_example}")(_function)
