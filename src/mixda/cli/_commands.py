"""The commands, one function each. Heavy modules are imported when a command needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixda._core.errors import MixdaError
from mixda._core.text import listed, split_names
from mixda._version import __version__
from mixda.cli._output import Output
from mixda.estimators import COMMANDS


class _Commands(typer.core.TyperGroup):  # type: ignore[misc]
    """The commands of this file, and ``bench``, which is only imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), "bench"]

    def get_command(self, ctx: Any, name: str) -> Any:
        if name != "bench":
            return super().get_command(ctx, name)
        from mixda.cli._bench import app as bench

        found = typer.main.get_command(bench)
        found.name = "bench"
        return found


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command() -> Any:
    """Return the whole command line as one command object."""
    return typer.main.get_command(app)


Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA", help="Files (csv, parquet, npz, npy), folders or quoted patterns."
    ),
]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the classes.")]
Domain = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of the names of the domains.")
]
Components = Annotated[
    str | None,
    typer.Option(
        metavar="N|bic", help="A number, per class if there are classes, or bic to choose it."
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS", help="Feature columns, comma-separated; default all of numbers."
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Columns that are no features, comma-separated."),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="error|drop",
        help="Rows with missing values.",
        autocompletion=lambda: ["error", "drop"],
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of all random choices.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


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

    Labeled sources and an unlabeled target become Gaussian mixtures; optimal transport carries
    the labels over.
    """


def fit(
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.gmm",
            help="Where to write; {domain} stands for the domain.",
        ),
    ],
    label: Label = None,
    domain: Domain = None,
    components: Components = None,
    columns: Columns = None,
    drop: Drop = None,
    missing: Missing = "error",
    seed: Seed = 0,
    n_jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Fit in this many processes; -1: all cores.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Fit on a Dask cluster, as tcp://10.0.0.1:8786."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a large fit that was stopped.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Summarize data as a Gaussian mixture, a small file that holds no sample.

    All files together are one domain; with --domain, every value of that column is one, and each
    gets its own file. Without --label the mixture has no classes.
    """
    from mixda.tables import open_table
    from mixda.workflow import fit_files, output_paths

    out = Output(quiet, json)
    output_paths(output, [""])  # say now what will not do
    if domain is not None:
        output_paths(output, open_table(data).distinct(domain))
    mixtures = fit_files(
        data,
        label,
        domain,
        components=_number_or_word(components),
        columns=split_names(columns),
        drop=split_names(drop) or (),
        missing=missing,
        seed=seed,
        n_jobs=n_jobs,
        client=scheduler,
        checkpoint=output.with_name(f"{output.name}.checkpoint"),
        resume=resume,
        verbose=out.shown,
    )
    alone = domain is None and "{domain}" not in output.name
    paths = output_paths(output, [""] if alone else list(mixtures))
    for mixture, path in zip(mixtures.values(), paths, strict=True):
        mixture.save(path)
    rows = [
        {
            "file": str(path),
            "domain": name,
            "rows": mixture.info["n_samples"],
            "features": mixture.n_features,
            "classes": 0 if mixture.classes is None else len(mixture.classes),
            "components": mixture.n_components,
        }
        for (name, mixture), path in zip(mixtures.items(), paths, strict=True)
    ]
    names = list(next(iter(mixtures.values())).feature_names or ())
    cells = [list(row.values()) for row in rows]
    out.table("written", list(rows[0]), cells, words=2, below=f"features: {listed(names)}")
    out.result({"written": rows, "features": names})


def adapt(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE", help="Labeled domains: data files or .gmm files, freely mixed."
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="TARGET", help="Unlabeled domain: a file, or a value of --domain's column."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL.mixda", help="Where to write.")
    ],
    label: Label = None,
    domain: Domain = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=", ".join(COMMANDS) + ".", autocompletion=lambda: list(COMMANDS)
        ),
    ] = "auto",
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="lda|mlp",
            help="Learn features from the samples first.",
            autocompletion=lambda: ["lda", "mlp"],
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="auto|domain|sources|none",
            help="Standardize each domain, or all by the sources (auto).",
            autocompletion=lambda: ["auto", "domain", "sources", "none"],
        ),
    ] = "auto",
    components: Components = None,
    target_components: Annotated[
        str | None, typer.Option(metavar="N|bic", help="The same for the target.")
    ] = None,
    columns: Columns = None,
    drop: Drop = None,
    missing: Missing = "error",
    options: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="More of the method, as n_atoms=4."),
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a classifier of the target from labeled sources and the unlabeled target.

    Every source file is a domain named after the file; with --domain, every value of that column.
    A label column of the target is never read. With .gmm files the methods are dadil, wbt and otda.
    """
    from mixda._core.resume import cache_until_done
    from mixda._core.text import plural
    from mixda.workflow import adapt_files, describe_model, output_paths

    out = Output(quiet, json)
    output_paths(output, [""], ".mixda")
    checkpoint = output.with_name(f"{output.name}.checkpoint")
    try:
        with cache_until_done(checkpoint):
            model = adapt_files(
                sources,
                target,
                label,
                domain,
                method=method,
                encoder=encoder,
                scale=None if scale == "none" else scale,
                components=_number_or_word(components),
                target_components=_number_or_word(target_components),
                columns=split_names(columns),
                drop=split_names(drop) or (),
                missing=missing,
                options=_settings(options or []),
                seed=seed,
                checkpoint=checkpoint,
                verbose=out.shown,
            )
            model.save(output)
    except KeyboardInterrupt:
        if checkpoint.exists():
            typer.echo(f"stopped; the same command goes on with what is in {checkpoint}", err=True)
        raise
    found = describe_model(model)
    domains = found["domains"]
    features = plural(len(found["features"]), "feature")
    title = f"{model.method}: {len(model.classes)} classes, {features}"
    cells = [list(domain.values()) for domain in domains]
    below = f"features: {listed(model.feature_names)}"
    out.table(title, list(domains[0]), cells, words=2, below=below)
    if method == "auto" and model.method != "AutoMSDA":
        out.say(
            f"auto is {model.method} here; with data files instead of .gmm files it would judge "
            "several methods and estimate the accuracy."
        )
    out.say(found["trust"])
    out.say(f"written: {output}")
    out.result({**found, "written": str(output)})


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL.mixda", help="Written by mixda adapt.")],
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write, .csv or .parquet."),
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns to copy, as ids; comma-separated."),
    ] = None,
    rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Rows held in memory at a time.")
    ] = 65_536,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Classify rows: label, confidence, a flag for rows far from all that is known, probabilities.

    Columns are found by name, in any order and among others. Rows with a missing value get no
    label but a note. Files may be larger than memory.
    """
    from mixda._core.text import plural
    from mixda.model import AdaptedModel, trust_numbers, trust_sentence
    from mixda.workflow import predict_file

    out = Output(quiet, json)
    loaded = AdaptedModel.load(model)
    with out.counting("predicting") as update:
        done = predict_file(
            loaded,
            data,
            output,
            keep=split_names(keep) or (),
            rows=rows,
            on_rows=update,
        )
    total = max(done.rows - done.missing, 1)
    table = [(name, n, f"{n / total:.1%}") for name, n in done.counts.items()]
    out.table("predicted", ["class", "rows", "share"], table)
    if done.missing:
        verb = "misses" if done.missing == 1 else "miss"
        out.say(f"{plural(done.missing, 'row')} {verb} a value and got a note instead of a label.")
    if done.far:
        who = "1 row is" if done.far == 1 else f"{done.far:,} rows are"
        out.say(f"{who} far from everything the model knows (column far).")
    far = done.far / total
    trust, estimate = trust_sentence(loaded, far), trust_numbers(loaded, far)
    out.say(trust)
    out.say(f"written: {output} ({plural(done.rows, 'row')})")
    out.result({**vars(done), "trust": trust, "estimate": estimate, "written": str(output)})


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL.mixda", help="Written by mixda adapt.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="REPORT.html", help="Where to write.")
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="Samples of the target: files or patterns."),
    ] = None,
    label: Label = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write one HTML page about a model: how far the domains are apart, how far to trust it.

    With --data it also shows the samples the model is least certain of, and with --label, which is
    used for nothing else, the confusion matrix.
    """
    from mixda.model import AdaptedModel, trust_sentence
    from mixda.workflow import output_paths, report_file

    out = Output(quiet, json)
    output_paths(output, [""], ".html")
    loaded = AdaptedModel.load(model)
    path = report_file(loaded, output, data or None, label)
    out.say(trust_sentence(loaded, far=0.0))
    out.say(f"written: {path}")
    out.result({"written": str(path)})


def info(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .gmm, a .mixda or a data file.")],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Say what a file holds."""
    from mixda.workflow import describe

    out = Output(quiet, json)
    found = describe(file)
    shown = [(k, v) for k, v in found.items() if v is not None and k not in ("domains", "estimate")]
    cells = [(k, listed(v) if isinstance(v, list) else v) for k, v in shown]
    out.table(file, ["what", "value"], cells, words=2)
    if "domains" in found:
        domains = found["domains"]
        out.table("domains", list(domains[0]), [list(d.values()) for d in domains], words=2)
    out.result(found)


def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the results.")] = Path(
        "mixda-demo"
    ),
    seed: Seed = 0,
) -> None:
    """Run fit, adapt, predict and report on built-in data: three scanners teach a fourth."""
    from mixda.cli._demo import run_demo

    run_demo(out, seed)


def _number_or_word(value: str | None) -> int | str | None:
    return int(value) if value is not None and value.lstrip("-").isdigit() else value


def _settings(values: list[str]) -> dict[str, Any]:
    """``name=value`` pairs; a value is JSON if it can be read as such, else a word."""
    import json

    found: dict[str, Any] = {}
    for value in values:
        name, sign, text = value.partition("=")
        if not sign:
            raise MixdaError(f"--set {value!r} must be parameter=value, as n_atoms=4.")
        try:
            found[name.strip()] = json.loads(text)
        except json.JSONDecodeError:
            found[name.strip()] = text
    return found


_EXAMPLES: dict[Any, tuple[str, ...]] = {
    fit: (
        "mixda fit 'runs/*.csv' --label state -o lab.gmm",
        "mixda fit all.parquet --label state --domain site -o '{domain}.gmm'",
    ),
    adapt: (
        "mixda adapt lab.csv north.gmm south.csv --target plant.csv --label state -o plant.mixda",
        "mixda adapt all.csv --domain site --target plant --label state -o plant.mixda",
    ),
    predict: ("mixda predict plant.mixda 'new/*.parquet' --keep serial -o predictions.csv",),
    report: ("mixda report plant.mixda --data plant.csv -o report.html",),
    info: ("mixda info plant.mixda",),
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
