"""The commands for a model that is in use: monitor, update."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixda.cli._options import Data, Json, Model, Quiet, Seed
from mixda.cli._output import Output

ALARM = 3  # exit code of ``mixda monitor``

_MAX_COLUMNS_SHOWN = 10


def monitor(
    model: Model,
    data: Data,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATA",
            help="Rows that the model was adapted to; default: their summary in the model.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(metavar="P", help="Probability of a false alarm, at most.")
    ] = 0.05,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare new rows with the target of a model and raise an alarm if they differ.

    Checks the distribution of each column, the shares of the classes, the rate of outliers and the
    confidence. The exit code is 0 if nothing changed and 3 after an alarm.
    """
    from mixda.model import AdaptedModel
    from mixda.workflow import monitor_file

    out = Output(quiet, json)
    drift = monitor_file(AdaptedModel.load(model), data, reference=reference or None, level=level)
    rows = [(c.name, c.before, c.now, c.size, _mark(c)) for c in drift.columns]
    below = f"{len(rows)} columns" if len(rows) > _MAX_COLUMNS_SHOWN else None
    head = ["column", "mean before", "mean now", "moved by (sd)", ""]
    out.table("columns that moved most", head, rows[:_MAX_COLUMNS_SHOWN], below=below)
    shares = [(c.name, *_percents(c), _mark(c)) for c in (*drift.classes, drift.outliers)]
    shares.append(("mean confidence", *_percents(drift.confidence), _mark(drift.confidence)))
    if drift.accuracy is not None and drift.accuracy_before is not None:
        shares.append(
            ("estimated accuracy", f"{drift.accuracy_before:.1%}", f"{drift.accuracy:.1%}", "")
        )
    out.table("predictions", ["share of rows", "before", "now", ""], shares)
    if drift.basis == "mixture":
        out.say(
            "The model holds no summary of its target; compared with rows drawn from its mixture."
        )
    out.say(drift.verdict)
    for reason in drift.reasons:
        out.say(reason)
    out.result(drift.to_json())
    if drift.alarm:
        raise typer.Exit(ALARM)


def update(
    model: Model,
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL.mixda", help="Output file.")
    ],
    share: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Weight of the new rows in the target; 1 forgets the old ones."
        ),
    ] = 1.0,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Adapt a model further with new rows of its target, without the data of the sources.

    A model of method dadil is adapted again from the mixtures it holds. Other models, such as
    those of method auto, follow the groups of similar rows in the new data; if that is not enough,
    run mixda adapt with the sources and the new rows.
    """
    from mixda._core.text import plural
    from mixda.model import AdaptedModel
    from mixda.workflow import output_paths, update_file

    out = Output(quiet, json)
    output_paths(output, [""], ".mixda")
    updated = update_file(AdaptedModel.load(model), data, share=share, seed=seed)
    updated.save(output)
    n_rows = updated.settings["updates"][-1]["rows"]
    if updated.trust is not None:
        out.say(updated.trust.sentence())
    out.say(f"updated with {plural(n_rows, 'row')}; written: {output}")
    out.result({"rows": n_rows, "method": updated.method, "written": str(output)})


def _percents(change: Any) -> tuple[str, str]:
    return f"{change.before:.1%}", f"{change.now:.1%}"


def _mark(change: Any) -> str:
    return "changed" if change.alarm else ""
