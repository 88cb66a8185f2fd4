"""The commands for a model that is in use: explain, label, monitor, update."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixda._core.errors import MixdaError
from mixda._core.text import listed
from mixda.cli._options import Data, Json, Model, Quiet, Seed, TargetLabels
from mixda.cli._output import Output

ALARM = 3  # exit code of ``mixda monitor``

_MAX_COLUMNS_SHOWN = 10


def explain(
    model: Model,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Files with the row to explain."),
    ] = None,
    row: Annotated[
        int | None, typer.Option(metavar="N", help="Row of DATA; the first is 1. Default: 1.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS", help="Compare with this class; default: the second most probable."
        ),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Explain a model: which features moved, and why a row got its class.

    Without DATA, shows for each class the features that differ most between the sources and the
    target. With DATA, shows how much each feature of a row speaks for the predicted class.
    """
    from mixda.model import AdaptedModel
    from mixda.workflow import explain_file

    out = Output(quiet, json)
    loaded = AdaptedModel.load(model)
    if not data:
        _reject(row=row, against=against)
        shifts = loaded.shifts()
        cells = [(s.label or "all", s.feature, s.source, s.target, s.size) for s in shifts]
        head = ["class", "feature", "sources", loaded.target.name, "moved by (sd)"]
        out.table("features that moved most", head, cells, words=2)
        out.result({"shifts": [vars(shift) for shift in shifts]})
        return
    why = explain_file(loaded, data, row or 1, against)
    title = f"{why.label} ({why.probability:.1%}) rather than {why.against}"
    parts: list[tuple[str, float | None, float]]
    parts = [
        (c.feature, None if c.value != c.value else c.value, c.log_odds)
        for c in why.contributions[:_MAX_COLUMNS_SHOWN]
    ]
    rest = sum(c.log_odds for c in why.contributions[_MAX_COLUMNS_SHOWN:])
    parts += [("other features", None, rest)] if len(why.contributions) > len(parts) else []
    parts += [("baseline", None, why.baseline), ("total", None, why.log_odds)]
    out.table(title, ["feature", "value", "log-odds"], parts, below=why.note)
    if why.members:
        votes = [(vote.name, vote.log_odds) for vote in why.members]
        head = ["member", "log-odds"]
        out.table("votes of the members (their sum is the total)", head, votes[:_MAX_COLUMNS_SHOWN])
    near = [(n.label, n.domain, f"{n.probability:.1%}", n.distance) for n in why.neighbors]
    head = ["class", "domain", "probability", "distance (sd)"]
    out.table("nearest components", head, near, words=2)
    if why.outlier:
        out.say("The row is an outlier, far from all data of the model: do not rely on its class.")
    out.result(why.to_json())


def label(
    model: Model,
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="File to fill in, .csv or .parquet."),
    ],
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Number of rows to label.")] = 20,
    target_labels: TargetLabels = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the rows of the target whose labels would help most, with a column to fill in.

    The members of the model disagree on these rows, or it is uncertain about them, and they are
    spread over the data. Fill in the column label, all of it or a part, and pass the file to
    adapt --target-labels. With --target-labels, rows that are labeled already are not suggested
    again, but copied to the output.
    """
    from mixda._core.text import plural
    from mixda.model import AdaptedModel
    from mixda.workflow import label_file

    out = Output(quiet, json)
    loaded = AdaptedModel.load(model)
    written = label_file(loaded, data, output, n=n, known=target_labels)
    out.say(f"written: {output} ({plural(written, 'row')} to label)")
    names = listed([str(name) for name in loaded.classes])
    out.say(f"Fill in the column label ({names}), then: mixda adapt … --target-labels {output}")
    out.result({"rows": written, "written": str(output)})


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
    if drift.outliers is not None and drift.confidence is not None:
        shares = [(c.name, *_percents(c), _mark(c)) for c in (*drift.classes, drift.outliers)]
        shares.append(("mean confidence", *_percents(drift.confidence), _mark(drift.confidence)))
        if drift.accuracy is not None and drift.accuracy_before is not None:
            estimates = (f"{drift.accuracy_before:.1%}", f"{drift.accuracy:.1%}")
            shares.append(("estimated accuracy", *estimates, ""))
        out.table("predictions", ["share of rows", "before", "now", ""], shares)
    else:
        out.say(
            "The model holds no summary of its target: only the means of columns were compared, "
            "with those of its mixture. Give the rows of the target (--reference) for all checks."
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

    The methods over mixtures (dadil, wbt, otda) run again on the mixtures that the model holds. The
    committee of method auto keeps its members and takes their scales from the new rows. If the
    sources are at hand, mixda adapt with the new rows can do more.
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


def _reject(**options: Any) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise MixdaError(f"--{given[0]} is about a row; give the file of the row (DATA) too.")


def _percents(change: Any) -> tuple[str, str]:
    return f"{change.before:.1%}", f"{change.now:.1%}"


def _mark(change: Any) -> str:
    return "changed" if change.alarm else ""
