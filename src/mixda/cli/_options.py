"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA", help="Files (csv, parquet, npz, npy), folders or quoted patterns."
    ),
]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the classes.")]
Domain = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the domain names.")]
Components = Annotated[
    str | None,
    typer.Option(
        metavar="N|bic",
        help="Number of components, per class if there are classes; bic chooses it.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Feature columns, comma-separated; default: all but identifiers and timestamps.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Columns to leave out, comma-separated."),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="mixture|drop|error",
        help="Rows with missing values: integrate the gaps out, leave the rows out, or stop.",
        autocompletion=lambda: ["mixture", "drop", "error"],
    ),
]
MinRows = Annotated[
    int, typer.Option(metavar="N", min=1, help="Merge components of fewer rows than this.")
]
AllowExposed = Annotated[
    bool,
    typer.Option("--allow-exposed-rows", help="Accept classes with fewer rows than that."),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        metavar="E", help="Fit with differential privacy; requires --bounds, and --classes."
    ),
]
Delta = Annotated[float, typer.Option(metavar="D", help="Of differential privacy, below 1 / rows.")]
Bounds = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.json",
        help='Columns of a private fit and their public ranges: {"speed": [0, 3000]}.',
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="All classes that may occur in a private fit."),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Column of the classes; file.csv:COLUMN for a file where it has another name.",
    ),
]
Ordinal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=LEVELS",
        help="Column whose levels have an order, such as grade=low,mid,high.",
    ),
]
RenameLabel = Annotated[
    list[str] | None,
    typer.Option(metavar="OLD=NEW", help="Rename a class, so that the names of files agree."),
]
Target = Annotated[
    str,
    typer.Option(
        metavar="TARGET", help="Unlabeled domain: a file, or a value of the --domain column."
    ),
]
TargetLabels = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="Labels of some rows of the target: a column of it, or a file of mixda label.",
    ),
]
MaxRows = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Rows of a domain held in memory (100000); larger domains are sampled and streamed.",
    ),
]
Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Number of processes; -1 uses all cores.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://10.0.0.1:8786."),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of all random choices.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL.mixda", help="Written by mixda adapt.")]
