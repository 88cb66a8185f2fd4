"""The commands from files to a report, one function each.

Modules are imported when a command needs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mixda._core.text import listed, plural, split_names
from mixda.cli._options import (
    AllowExposed,
    Bounds,
    Classes,
    Columns,
    Components,
    Data,
    Delta,
    Domain,
    Drop,
    Epsilon,
    Jobs,
    Json,
    Label,
    Labels,
    MaxRows,
    MinRows,
    Missing,
    Model,
    Ordinal,
    Quiet,
    RenameLabel,
    Scheduler,
    Seed,
    Target,
    TargetLabels,
)
from mixda.cli._output import Output, show_mixtures, show_model, show_report
from mixda.cli._parse import number_or_word, pairs, settings, target_parameters
from mixda.cli._private import private_mixtures
from mixda.estimators import COMMANDS


def fit(
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.gmm",
            help="Output file; {domain} stands for the domain name.",
        ),
    ],
    label: Label = None,
    domain: Domain = None,
    components: Components = None,
    columns: Columns = None,
    drop: Drop = None,
    missing: Missing = "mixture",
    min_rows_per_component: MinRows = 5,
    allow_exposed_rows: AllowExposed = False,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    bounds: Bounds = None,
    classes: Classes = None,
    seed: Seed = 0,
    n_jobs: Jobs = None,
    scheduler: Scheduler = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted large fit.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Summarize data as a Gaussian mixture, a small file without samples.

    Each mean in the file averages at least 5 rows (--min-rows-per-component). This protects
    single rows from being copied, but it is not differential privacy, which --epsilon adds.

    All files together form one domain. With --domain, each value of that column is a domain and
    gets its own file. Without --label, the mixture has no classes.
    """
    from mixda.tables import open_table
    from mixda.workflow import fit_files, output_paths

    out = Output(quiet, json)
    output_paths(output, [""])  # fail before the work, not after it
    if domain is not None:
        output_paths(output, open_table(data).distinct(domain))
    if epsilon is not None or bounds is not None or classes is not None:
        unused = {"--domain": domain, "--columns": columns, "--drop": drop, "--n-jobs": n_jobs}
        unused |= {"--scheduler": scheduler, "--resume": resume or None}
        unused |= {"--missing": None if missing == "mixture" else missing}
        unused |= {"--allow-exposed-rows": allow_exposed_rows or None}
        mixtures = private_mixtures(
            data, label, components, seed, (epsilon, delta, bounds, classes), unused
        )
    else:
        mixtures = fit_files(
            data,
            label,
            domain,
            components=number_or_word(components),
            columns=split_names(columns),
            drop=split_names(drop) or (),
            missing=missing,
            min_component_rows=min_rows_per_component,
            allow_exposed_rows=allow_exposed_rows,
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
        mixture.save(path, allow_exposed_rows=True)  # `fit_files` has checked it
    show_mixtures(out, mixtures, paths)


def adapt(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="Labeled domains: data files, .gmm files, or both."),
    ],
    target: Target,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL.mixda", help="Output file.")
    ],
    label: Labels = None,
    domain: Domain = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=", ".join(COMMANDS) + ".", autocompletion=lambda: list(COMMANDS)
        ),
    ] = "auto",
    encoder: Annotated[
        str,
        typer.Option(
            metavar="auto|lda|mlp|none",
            help="Features learned from the samples first; auto: lda for dadil, wbt, otda.",
            autocompletion=lambda: ["auto", "lda", "mlp", "none"],
        ),
    ] = "auto",
    scale: Annotated[
        str,
        typer.Option(
            metavar="auto|domain|sources|none",
            help="Standardize each domain by itself (auto for dadil, wbt, otda) or by the sources.",
            autocompletion=lambda: ["auto", "domain", "sources", "none"],
        ),
    ] = "auto",
    components: Components = None,
    target_components: Annotated[
        str | None, typer.Option(metavar="N|bic", help="Number of components of the target.")
    ] = None,
    columns: Columns = None,
    drop: Drop = None,
    missing: Missing = "mixture",
    min_rows_per_component: MinRows = 5,
    allow_exposed_rows: AllowExposed = False,
    ordinal: Ordinal = None,
    rename_label: RenameLabel = None,
    target_shares: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=SHARE",
            help="Known class proportions of the target, such as healthy=0.95 (method auto).",
        ),
    ] = None,
    target_labels: TargetLabels = None,
    force: Annotated[
        bool, typer.Option("--force", help="Go on although the checks found blockers.")
    ] = False,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Other parameters of the method, such as n_atoms=4."
        ),
    ] = None,
    seed: Seed = 0,
    max_rows: MaxRows = None,
    n_jobs: Jobs = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a classifier of the target from labeled sources and the unlabeled target.

    Each source file is a domain, named after the file. With --domain, each value of that column is
    a domain. The label column of the target is never read, unless --target-labels names it. The
    methods that accept .gmm files are dadil, wbt and otda.
    """
    from mixda._core.resume import cache_until_done
    from mixda.tables import ordinal_levels
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
                encoder=None if encoder == "none" else encoder,
                scale=None if scale == "none" else scale,
                components=number_or_word(components),
                target_components=number_or_word(target_components),
                columns=split_names(columns),
                drop=split_names(drop) or (),
                missing=missing,
                min_component_rows=min_rows_per_component,
                allow_exposed_rows=allow_exposed_rows,
                ordinal=ordinal_levels(ordinal or ()),
                rename_labels=pairs(rename_label, "--rename-label"),
                target_labels=target_labels,
                force=force,
                options={**settings(options or []), **target_parameters(target_shares)},
                seed=seed,
                max_rows=max_rows,
                n_jobs=n_jobs,
                client=scheduler,
                checkpoint=checkpoint,
                verbose=out.shown,
            )
            model.save(output, allow_exposed_rows=True)  # `adapt_files` has checked it
    except KeyboardInterrupt:
        if checkpoint.exists():
            typer.echo(f"interrupted; run the same command to resume from {checkpoint}", err=True)
        raise
    summary = describe_model(model)
    show_model(out, model, summary)
    out.say(summary["sampling"])
    if method == "auto" and model.method != "AutoMSDA":
        out.say(
            f"auto is {model.method} here; with data files instead of .gmm files, it compares "
            "several methods and estimates the accuracy."
        )
    out.say(summary["trust"])
    out.say(f"written: {output}")
    out.result({**summary, "written": str(output)})


def check(
    sources: Annotated[
        list[str], typer.Argument(metavar="SOURCE", help="Labeled domains: data files.")
    ],
    target: Target,
    label: Labels = None,
    domain: Domain = None,
    columns: Columns = None,
    drop: Drop = None,
    ordinal: Ordinal = None,
    rename_label: RenameLabel = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="REPORT.html", help="Write the findings as a page."),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check files before a fit: which columns are used, and what could silently do harm.

    The exit code is 2 if there are blockers, which stop adapt unless it is forced.
    """
    from mixda._core.atomic import write_atomically
    from mixda.tables import ordinal_levels
    from mixda.workflow import check as check_files
    from mixda.workflow import output_paths

    out = Output(quiet, json)
    if output is not None:
        output_paths(output, [""], ".html")
    report = check_files(
        sources,
        target,
        label,
        domain,
        columns=split_names(columns),
        drop=split_names(drop) or (),
        ordinal=ordinal_levels(ordinal or ()),
        rename_labels=pairs(rename_label, "--rename-label"),
    )
    show_report(out, report)
    if output is not None:
        write_atomically(output, report.to_html().encode())
        out.say(f"written: {output}")
    out.result(report.to_json())
    if report.blockers:
        raise typer.Exit(2)


def predict(
    model: Model,
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="Output file (.csv, .parquet), or a folder: one parquet file per partition.",
        ),
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns to copy, such as ids, comma-separated."),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            metavar="mixture|drop",
            help="Rows with missing values: classify by the other columns, or leave unlabeled.",
            autocompletion=lambda: ["mixture", "drop"],
        ),
    ] = "mixture",
    rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Rows held in memory at a time.")
    ] = 65_536,
    safe_csv: Annotated[
        bool,
        typer.Option("--safe-csv", help="Put ' before text that spreadsheets run as a formula."),
    ] = False,
    n_jobs: Jobs = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Classify rows: label, confidence, probabilities, and a flag for outliers.

    Columns are matched by name; others are ignored. Rows with a missing value get a note. Files
    may be larger than memory. An interrupted prediction into a folder resumes if the same command
    is run again; --n-jobs and --scheduler need a folder.
    """
    from mixda.model import AdaptedModel
    from mixda.workflow import describe_trust, predict_file

    out = Output(quiet, json)
    loaded = AdaptedModel.load(model)
    with out.counting("predicting") as update:
        done = predict_file(
            loaded,
            data,
            output,
            keep=split_names(keep) or (),
            missing=missing,
            rows=rows,
            safe_csv=safe_csv,
            n_jobs=n_jobs,
            client=scheduler,
            on_rows=update,
        )
    total = max(done.rows - done.missing, 1)
    table = [(name, n, f"{n / total:.1%}") for name, n in done.counts.items()]
    out.table("predicted", ["class", "rows", "share"], table)
    if done.missing:
        verb = "has" if done.missing == 1 else "have"
        out.say(f"{plural(done.missing, 'row')} {verb} a missing value, and a note but no label.")
    if done.gaps:
        verb = "has" if done.gaps == 1 else "have"
        out.say(f"{plural(done.gaps, 'row')} {verb} missing values, classified by other columns.")
    if done.far:
        verb = "is an outlier" if done.far == 1 else "are outliers"
        out.say(f"{plural(done.far, 'row')} {verb}: far from all data of the model (column far).")
    trust = describe_trust(loaded, outlier_share=done.far / total)
    out.say(trust["trust"])
    out.say(f"written: {output} ({plural(done.rows, 'row')})")
    out.result({**vars(done), **trust, "written": str(output)})


def report(
    model: Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="REPORT.html", help="Output file.")
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="Samples of the target: files or patterns."),
    ] = None,
    label: Label = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write an HTML page about a model: how far apart its domains are, how far to trust it.

    With --data, the page also shows the samples the model is least certain about. With --label, it
    shows the confusion matrix; labels are used for nothing else.
    """
    from mixda.model import AdaptedModel
    from mixda.workflow import describe_trust, output_paths, report_file

    out = Output(quiet, json)
    output_paths(output, [""], ".html")
    loaded = AdaptedModel.load(model)
    path = report_file(loaded, output, data or None, label)
    out.say(describe_trust(loaded)["trust"])
    out.say(f"written: {path}")
    out.result({"written": str(path)})


def info(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .gmm, a .mixda or a data file.")],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Show what a file holds."""
    from mixda.checks import read_findings
    from mixda.workflow import describe

    out = Output(quiet, json)
    contents = describe(file)
    hidden = ("domains", "estimate", "checks")
    shown = [(k, v) for k, v in contents.items() if v is not None and k not in hidden]
    cells = [(k, listed(v) if isinstance(v, list) else v) for k, v in shown]
    out.table(file, ["what", "value"], cells, words=2)
    if "domains" in contents:
        domains = contents["domains"]
        out.table("domains", list(domains[0]), [list(d.values()) for d in domains], words=2)
    for finding in read_findings(contents.get("checks")):
        out.say(f"{finding.severity}: {finding}.")
    out.result(contents)
