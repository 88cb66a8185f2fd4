"""The command line as one object: all commands with their examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mixda._version import __version__
from mixda.cli import _after, _commands
from mixda.cli._options import Seed


class _Commands(typer.core.TyperGroup):  # type: ignore[misc]
    """All commands, and ``bench``, which is imported on first use."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), "bench"]

    def get_command(self, ctx: Any, name: str) -> Any:
        if name != "bench":
            return super().get_command(ctx, name)
        from mixda.cli._bench import app

        bench = typer.main.get_command(app)
        bench.name = "bench"
        return bench


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command() -> Any:
    """Return the command line as one command object."""
    return typer.main.get_command(app)


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default that of the process; exceptions are left to the caller."""
    return int(command().main(arguments, prog_name="mixda", standalone_mode=False) or 0)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"mixda {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Classify unlabeled data with the help of labeled data from elsewhere.

    Labeled sources and an unlabeled target are summarized as Gaussian mixtures, and optimal
    transport carries the labels over.
    """


def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Output folder.")] = Path(
        "mixda-demo"
    ),
    seed: Seed = 0,
) -> None:
    """Run fit, adapt, predict and report on built-in data: three scanners teach a fourth."""
    from mixda.cli._demo import run_demo

    run_demo(out, seed, run_command)


_EXAMPLES: dict[Callable[..., None], tuple[str, ...]] = {
    _commands.fit: (
        "mixda fit 'runs/*.csv' --label state -o lab.gmm",
        "mixda fit all.parquet --label state --domain site -o '{domain}.gmm'",
    ),
    _commands.adapt: (
        "mixda adapt lab.csv north.gmm south.csv --target plant.csv --label state -o plant.mixda",
        "mixda adapt all.csv --domain site --target plant --label state -o plant.mixda",
    ),
    _commands.check: ("mixda check a.csv b.csv --target plant.csv --label state",),
    _after.label: (
        "mixda label plant.mixda plant.csv -n 20 -o to_label.csv",
        "mixda adapt a.csv b.csv --target plant.csv --label state --target-labels to_label.csv "
        "-o plant.mixda",
    ),
    _commands.predict: (
        "mixda predict plant.mixda 'new/*.parquet' --keep serial -o predictions.csv",
    ),
    _commands.report: ("mixda report plant.mixda --data plant.csv -o report.html",),
    _after.explain: (
        "mixda explain plant.mixda",
        "mixda explain plant.mixda plant.csv --row 17",
    ),
    _after.monitor: ("mixda monitor plant.mixda 'august/*.csv' || echo 'look at plant'",),
    _after.update: ("mixda update plant.mixda 'august/*.csv' -o plant-august.mixda",),
    _commands.info: ("mixda info plant.mixda",),
    demo: ("mixda demo --out demo",),
}

for _function, _lines in _EXAMPLES.items():
    app.command(epilog="\n\n".join(["Example:", *_lines]))(_function)
app.callback(
    epilog="\n\n".join(
        [
            "Example, three labeled files teach a fourth:",
            "mixda adapt a.csv b.csv c.csv --target plant.csv --label state -o plant.mixda",
            "mixda predict plant.mixda plant.csv -o predictions.csv",
            "mixda report plant.mixda --data plant.csv -o report.html",
        ]
    )
)(_root)
