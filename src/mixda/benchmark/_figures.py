"""Figures of a run: the critical-difference diagram and the ablations of the paper's section 4.3.

Every function draws on axes it is given; `figure` makes the files.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixda._core.atomic import write_atomically
from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_choice
from mixda.benchmark._ablations import free_settings
from mixda.benchmark._cells import Record, check_folder, digest, read_records, slug
from mixda.benchmark._entries import METHODS
from mixda.benchmark._summary import (
    Ranking,
    cliques,
    line_name,
    newest,
    one_per_suite,
    rank_methods,
    samples_key,
    summarize,
)
from mixda.plot import PALETTE, colors

FORMATS = ("svg", "png", "pdf")
EMBEDDINGS = ("umap", "pca")
_MARKERS = "osD^v<>P"


def figure(
    folder: str | Path,
    out: str | Path | None = None,
    format: str = "svg",
    embedding: str | None = None,
    score: str = "both",
) -> list[Path]:
    """Draw the figures of a run: critical differences, lighter, better, faster, trajectories.

    An ablation that was run on several data or targets gets a figure for each, with their names
    in that of the file; other settings of a method are another curve.

    Parameters
    ----------
    folder : str or Path
        The ``out`` of `run`.
    out : str or Path, optional
        Folder of the figures; by default ``figures`` in that of the run.
    format : {"svg", "png", "pdf"}
    embedding : {"umap", "pca"}, optional
        Of the trajectories, by default UMAP where umap-learn is installed.
    score : {"both", "map", "head"}
        Which decision of the mixture methods is ranked: with "map" maximum a posteriori, else the
        classifier, see `summarize`.

    Returns
    -------
    list of Path

    Examples
    --------
    >>> from mixda import benchmark
    >>> benchmark.figure("bench")  # doctest: +SKIP
    [PosixPath('bench/figures/critical-difference.svg')]
    """
    check_choice(format, "format", FORMATS)
    check_choice(embedding, "embedding", (*EMBEDDINGS, None))
    folder = Path(folder)
    home = folder / "figures" if out is None else check_folder(out)
    records = [record for record in read_records(folder) if "error" not in record]
    drawn = {}
    ranking = rank_methods(one_per_suite(summarize(records, score)))
    if np.isfinite(ranking.critical_difference):
        height = 1.2 + 0.22 * len(ranking.names)
        drawn["critical-difference"] = _page((8.0, height), 1, 1, draw_ranking, ranking)
    for suite, draw in _LINES.items():
        for name, members in _groups(records, suite).items():
            drawn[name] = _page((5.2, 3.8), 1, 1, draw, members)
    for name, members in _groups(records, "trajectories").items():
        lines = _by([record for record in members if record["cell"]["seed"] == 0], _label)
        if lines:
            size = (6.5 * len(lines), 6.6)
            drawn[name] = _page(
                size, 2, 2 * len(lines), draw_trajectories, lines, folder, embedding
            )
    if not drawn:
        raise MixdaError(
            f"{folder} has nothing to draw. Run an ablation, or three methods on two targets."
        )
    home.mkdir(parents=True, exist_ok=True)
    return [_save(page, home / f"{name}.{format}", format) for name, page in drawn.items()]


def draw_ranking(axes: Any, ranking: Ranking) -> None:
    """Draw average ranks; a bar joins methods that do not differ by Nemenyi's test."""
    ax = axes
    order = np.argsort(ranking.ranks, kind="stable")
    k = len(order)
    half = -(-k // 2)
    ax.set_xlim(-0.25 * k, 1.25 * k + 1)
    ax.set_ylim(-(half + 2.2), 2.2)
    ax.axis("off")
    ax.plot([1, k], [0, 0], color="black", linewidth=1)
    for tick in range(1, k + 1):
        ax.plot([tick, tick], [0, 0.15], color="black", linewidth=1)
        ax.text(tick, 0.25, str(tick), ha="center", va="bottom", fontsize=8)
    ax.plot([1, 1 + ranking.critical_difference], [1.3, 1.3], color="black", linewidth=2)
    words = (
        f"critical difference {ranking.critical_difference:.2f} (5 %), {ranking.n_targets} targets"
    )
    ax.text(1, 1.45, words, ha="left", va="bottom", fontsize=8)
    bars = cliques(ranking)
    for i, j in enumerate(order):
        rank, left = ranking.ranks[j], i < half
        y = -(0.9 + 0.25 * len(bars) + (i if left else k - 1 - i))
        x, side = (0.6, "right") if left else (k + 0.4, "left")
        ax.plot([rank, rank, x], [0, y, y], color="#555555", linewidth=0.8)
        name = f"{ranking.names[j]}  {rank:.2f}"
        ax.text(x + (-0.1 if left else 0.1), y, name, ha=side, va="center", fontsize=8)
    ordered = ranking.ranks[order]
    for level, (first, last) in enumerate(bars):
        y = -0.35 - 0.25 * level
        span = [ordered[first] - 0.05, ordered[last] + 0.05]
        ax.plot(span, [y, y], color=PALETTE[0], linewidth=3, solid_capstyle="butt")


def draw_lighter(ax: Any, records: Sequence[Record]) -> None:
    """Draw accuracy against the number of components or points (figure 5, lighter)."""
    for i, (name, members) in enumerate(_by(records, _map_label).items()):
        _curve(ax, members, "size", lambda r: 100.0 * r["accuracy"], name, i)
    ax.set_xlabel("components K (GMM-…), points n (DaDiL, WBT)")
    _label_accuracy(ax)
    _finish(ax, records, "Lighter")


def _larger_first(record: Record) -> Record:
    own = record["own_lambda0"]
    if own is None or own >= 0.5:
        return record
    return {**record, "curve": record["curve"][::-1], "own_lambda0": 1.0 - own}


def draw_better(ax: Any, records: Sequence[Record]) -> None:
    """Draw accuracy along λ0, and a star at the learned λ* (figure 5, better).

    The order of two atoms means nothing: the first is the one with the larger learned coordinate.
    """
    words = {"GMMDaDiL": "atoms", "GMMWBT": "sources, then transport"}
    for i, (name, members) in enumerate(_by([*map(_larger_first, records)], _label).items()):
        name = f"{words[members[0]['cell']['method']]} ({name})"
        x = np.array(members[0]["lambda0"])
        curves = 100.0 * np.array([record["curve"] for record in members])
        _line(ax, x, curves.mean(axis=0), 2.0 * curves.std(axis=0), name, i)
        stars = [(r["own_lambda0"], r["accuracy"]) for r in members if r["own_lambda0"] is not None]
        if stars:
            own: Array = np.array(stars)
            color = PALETTE[i % len(PALETTE)]
            style = {"marker": "*", "s": 110, "color": color, "edgecolor": "black"}
            ax.scatter(own[:, 0], 100.0 * own[:, 1], label="learned λ*", zorder=4, **style)
    ax.set_xlabel("λ0")
    _label_accuracy(ax, " (MAP)")
    _finish(ax, records, "Better")


def _label_accuracy(ax: Any, decision: str = "") -> None:
    ax.set_ylabel(f"accuracy{decision} on the target in %, ± 2 std")
    ax.set_ylim(top=min(ax.get_ylim()[1], 101.0))


def draw_faster(ax: Any, records: Sequence[Record]) -> None:
    """Draw the CPU time of learning against K = n_b, a line per M (figure 5, faster)."""
    for i, (name, members) in enumerate(_by(records, _speed_name).items()):
        place = "size" if members[0]["cell"]["method"] == "GMMDaDiL" else "batch_size"
        _curve(ax, members, place, _learning_time, name, i)
    ax.set_yscale("log")
    ax.set_xlabel("components K (GMMDaDiL), batch n_b (DaDiL)")
    lengths = {str(_n_iterations(record)) for record in records}
    ax.set_ylabel(f"CPU seconds of {' or '.join(sorted(lengths))} iterations")
    _finish(ax, records, "Faster")


def draw_trajectories(
    axes: Any, lines: Mapping[str, Sequence[Record]], folder: Path, embedding: str | None
) -> None:
    """Draw atoms and reconstructions over the iterations, GMM-DaDiL beside DaDiL (figure 6).

    Two columns of axes per line: its two atoms above, below the way of the target's
    reconstruction, and its end among the target's samples, by class.
    """
    stored = {}
    for name, (record, *_) in lines.items():
        with np.load(folder / "cells" / record["arrays"]) as arrays:
            stored[name] = dict(arrays)
    moving = [stored[name][part] for name in lines for part in ("atoms", "reconstruction")]
    clouds = [array.reshape(-1, array.shape[-1]) for array in moving]
    clouds.append(next(iter(stored.values()))["target"])
    plane, method = _embed(np.concatenate(clouds), embedding)
    *pieces, target = np.split(plane, np.cumsum([len(cloud) for cloud in clouds])[:-1])
    for i, name in enumerate(lines):
        atoms = pieces[2 * i].reshape(*stored[name]["atoms"].shape[:-1], 2)
        made = pieces[2 * i + 1].reshape(*stored[name]["reconstruction"].shape[:-1], 2)
        frames = axes[:, 2 * i : 2 * i + 2]
        for c in range(2):
            _paths(frames[0, c], atoms[:, c], f"{name}: atom {c + 1}")
        _paths(frames[1, 0], made, f"{name}: reconstruction of the target")
        labels = stored[name]["labels"][-1]
        by_class = np.array(colors(int(labels.max()) + 1))[labels]
        frames[1, 1].scatter(*target.T, s=5, color="#bbbbbb", linewidths=0)
        frames[1, 1].scatter(*made[-1].T, s=16, color=by_class, linewidths=0)
        frames[1, 1].set_title(f"{name}: end, by class (gray: target)", fontsize=9)
    axes[0, 0].set(xticks=[], yticks=[])  # of all: they are shared
    cell = next(iter(lines.values()))[0]["cell"]
    axes[0, 0].figure.suptitle(
        f"{method} of all positions ({cell['data']}, target: {cell['target']}). "
        "Hollow: start, black: end.",
        fontsize=10,
    )


_LINES: dict[str, Callable[[Any, Sequence[Record]], None]] = {
    "lighter": draw_lighter,
    "better": draw_better,
    "faster": draw_faster,
}


def _page(size: tuple[float, float], n_rows: int, n_columns: int, draw: Any, *what: Any) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MixdaError(
            "Figures require matplotlib. Install it with: pip install 'mixda[report]'"
        ) from None
    page = Figure(figsize=size, layout="constrained")
    draw(page.subplots(n_rows, n_columns, sharex=True, sharey=True), *what)
    return page


def _save(page: Any, path: Path, format: str) -> Path:
    buffer = io.BytesIO()
    page.savefig(buffer, format=format, dpi=150)
    write_atomically(path, buffer.getvalue())
    return path


def _groups(records: Sequence[Record], suite: str) -> dict[str, list[Record]]:
    """Group the cells of an ablation by figure, one per data set and target."""
    own = [r for r in records if r["cell"]["suite"] == suite and r["cell"]["data"] != suite]
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in own:
        key = *samples_key(record["cell"]), record["cell"]["target"]
        groups.setdefault(key, []).append(record)
    if len(groups) == 1:
        return {suite: newest(own)}
    return {
        f"{suite}-{slug(str(key[0]))}-{slug(str(key[-1]))}-{digest(key)[:4]}": newest(groups[key])
        for key in sorted(groups)
    }


def _label(record: Record) -> str:
    """Return the name of a curve: the method and the settings chosen by the user."""
    cell = record["cell"]
    return line_name({**cell, "settings": free_settings(cell)})


def _map_label(record: Record) -> str:
    """Return the name of a curve of accuracies, with the decision rule where it is ambiguous."""
    return _label(record) + (" (MAP)" if METHODS[record["cell"]["method"]].mixture else "")


def _by(records: Sequence[Record], name: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    """Group records by name, mixture methods first."""
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(name(record), []).append(record)
    keys = sorted(groups, key=lambda key: (not str(key).startswith("GMM"), key))
    return {key: groups[key] for key in keys}


def _curve(
    ax: Any,
    members: Sequence[Record],
    place: str,
    value: Callable[[Record], float],
    name: str,
    i: int,
) -> None:
    """Draw the mean over seeds with two standard deviations against a size."""
    sizes, values = [], []
    for records in _by(members, lambda r: str(r["cell"]["settings"])).values():
        sizes.append(np.mean([r.get(place) or r["cell"]["settings"][place] for r in records]))
        values.append(np.array([value(record) for record in records]))
    order = np.argsort(sizes)
    x, values = np.array(sizes)[order], [values[k] for k in order]
    _line(ax, x, [v.mean() for v in values], [2.0 * v.std() for v in values], name, i)


def _line(ax: Any, x: Any, y: Any, error: Any, name: str, i: int) -> None:
    style = {"color": PALETTE[i % len(PALETTE)], "marker": _MARKERS[i % len(_MARKERS)]}
    ax.errorbar(x, y, yerr=error, label=name, capsize=2, linewidth=1.2, markersize=4, **style)


def _speed_name(record: Record) -> str:
    settings = record["cell"]["settings"]
    if record["cell"]["method"] == "GMMDaDiL":
        return _label(record)
    batches = -(-settings["n_points"] // settings["batch_size"])
    return f"{_label(record).replace('DaDiL-R', 'DaDiL')}, M = {batches}"


def _n_iterations(record: Record) -> Any:
    settings = record["cell"]["settings"]
    return settings.get("n_iter", settings.get("n_epochs", "all"))


def _learning_time(record: Record) -> float:
    """Return the CPU seconds of dictionary learning, scaled from wall time by those of the fit."""
    return float(record["learn_seconds"] * record["fit_cpu_seconds"] / record["fit_seconds"])


def _finish(ax: Any, records: Sequence[Record], title: str) -> None:
    cell = records[0]["cell"]
    n_seeds = len({record["cell"]["seed"] for record in records})
    words = f"{title} ({cell['data']}, target: {cell['target']}, seeds: {n_seeds})"
    ax.set_title(words, fontsize=9)
    ax.grid(alpha=0.3)
    ax.figure.legend(fontsize=8, frameon=False, ncols=3, loc="outside lower center")


def _paths(ax: Any, positions: Array, title: str) -> None:
    """Draw the path of each point, (T, K, 2), from its start (hollow) to its end (black)."""
    ax.plot(positions[:, :, 0], positions[:, :, 1], color="#999999", linewidth=0.5, zorder=1)
    for when, color in ((0, "white"), (-1, "black")):
        style = {"color": color, "edgecolors": "black", "linewidths": 0.6}
        ax.scatter(*positions[when].T, s=12, zorder=2, **style)
    ax.set_title(title, fontsize=9)


def _embed(X: Array, embedding: str | None) -> tuple[Array, str]:
    """Return positions in the plane and the name of the projection."""
    if embedding != "pca":
        try:
            from umap import UMAP
        except ImportError:
            if embedding == "umap":
                raise MixdaError(
                    "UMAP requires umap-learn. Install it with: pip install 'mixda[bench]', "
                    "or use pca."
                ) from None
        else:
            return np.asarray(UMAP(random_state=0, n_jobs=1).fit_transform(X)), "UMAP"
    from sklearn.decomposition import PCA

    words = "PCA" if embedding == "pca" else "PCA (umap-learn is not installed)"
    return PCA(2, random_state=0).fit_transform(X), words
