"""Figures of a run: the critical-difference diagram and the ablations of the paper's section 4.3.

Every function draws on axes it is given; `figure` makes the files.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixda._files import write_atomically
from mixda._validation import Array, check_choice
from mixda.benchmark._cells import Record, read_records
from mixda.benchmark._summary import Ranking, cliques, rank_methods, summarize
from mixda.plot import PALETTE

FORMATS = ("svg", "png", "pdf")
EMBEDDINGS = ("umap", "pca")
_MARKERS = "osD^v<>P"


def figure(
    folder: str | Path,
    out: str | Path | None = None,
    format: str = "svg",
    embedding: str | None = None,
) -> list[Path]:
    """Draw what a run allows: critical differences, lighter, better, faster, trajectories.

    Parameters
    ----------
    folder : str or Path
        The ``out`` of `run`.
    out : str or Path, optional
        Folder of the figures; by default ``figures`` in that of the run.
    format : {"svg", "png", "pdf"}
    embedding : {"umap", "pca"}, optional
        Of the trajectories, by default UMAP where umap-learn is installed.

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
    home = folder / "figures" if out is None else Path(out)
    records = [record for record in read_records(folder) if "error" not in record]
    drawn = {}
    ranking = rank_methods(summarize(records))
    if np.isfinite(ranking.critical_difference):
        height = 1.2 + 0.22 * len(ranking.names)
        drawn["critical-difference"] = _page((8.0, height), 1, 1, draw_ranking, ranking)
    for suite, draw in _LINES.items():
        members = _of(records, suite)
        if members:
            drawn[suite] = _page((5.2, 3.8), 1, 1, draw, members)
    members = [record for record in _of(records, "trajectories") if record["cell"]["seed"] == 0]
    if members:
        drawn["trajectories"] = _page(
            (13.0, 6.6), 2, 4, draw_trajectories, members, folder, embedding
        )
    if not drawn:
        raise ValueError(
            f"{folder} has nothing to draw; run an ablation, or three methods on two targets."
        )
    home.mkdir(parents=True, exist_ok=True)
    return [_save(page, home / f"{name}.{format}", format) for name, page in drawn.items()]


def draw_ranking(axes: Any, ranking: Ranking) -> None:
    """Draw average ranks on a line; a bar joins methods that Nemenyi's test cannot tell apart."""
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
    for i, (method, members) in enumerate(_by(records, lambda r: r["cell"]["method"]).items()):
        _curve(ax, members, "size", lambda r: 100.0 * r["accuracy"], method, i)
    ax.set_xlabel("components K (GMM-…), points n (DaDiL, WBT)")
    ax.set_ylabel("accuracy on the target in %")
    _finish(ax, records, "Lighter")


def draw_better(ax: Any, records: Sequence[Record]) -> None:
    """Draw accuracy along λ0, and a star at the learned λ* (figure 5, better)."""
    words = {"GMMDaDiL": "atoms (GMMDaDiL)", "GMMWBT": "sources, then transport (GMMWBT)"}
    for i, (method, members) in enumerate(_by(records, lambda r: r["cell"]["method"]).items()):
        x = np.array(members[0]["lambda0"])
        curves = 100.0 * np.array([record["curve"] for record in members])
        _line(ax, x, curves.mean(axis=0), 2.0 * curves.std(axis=0), words[method], i)
        stars = [(r["own_lambda0"], r["accuracy"]) for r in members if r["own_lambda0"] is not None]
        if stars:
            own: Array = np.array(stars)
            style = {"marker": "*", "s": 110, "color": PALETTE[i], "edgecolor": "black"}
            ax.scatter(own[:, 0], 100.0 * own[:, 1], label="learned λ*", zorder=4, **style)
    ax.set_xlabel("λ0")
    ax.set_ylabel("accuracy on the target in %")
    _finish(ax, records, "Better")


def draw_faster(ax: Any, records: Sequence[Record]) -> None:
    """Draw processor time of learning against K = n_b, a line per M (figure 5, faster)."""
    for i, (name, members) in enumerate(_by(records, _speed_name).items()):
        place = "size" if members[0]["cell"]["method"] == "GMMDaDiL" else "batch_size"
        _curve(ax, members, place, _learning_time, name, i)
    ax.set_yscale("log")
    ax.set_xlabel("components K (GMMDaDiL), batch n_b (DaDiL)")
    ax.set_ylabel("processor seconds of 50 iterations")
    _finish(ax, records, "Faster")


def draw_trajectories(
    axes: Any, records: Sequence[Record], folder: Path, embedding: str | None
) -> None:
    """Draw atoms and reconstructions over the iterations, GMM-DaDiL beside DaDiL (figure 6)."""
    stored = {}
    for record in records:
        with np.load(folder / "cells" / record["arrays"]) as arrays:
            stored[record["cell"]["method"]] = dict(arrays)
    names = [name for name in ("GMMDaDiL", "DaDiL-R") if name in stored]
    moving = [stored[name][part] for name in names for part in ("atoms", "reconstruction")]
    clouds = [array.reshape(-1, array.shape[-1]) for array in moving]
    clouds.append(stored[names[0]]["target"])
    plane, method = _embed(np.concatenate(clouds), embedding)
    ends = np.cumsum([len(cloud) for cloud in clouds])[:-1]
    *pieces, target = np.split(plane, ends)
    for i, name in enumerate(names):
        atoms = pieces[2 * i].reshape(*stored[name]["atoms"].shape[:-1], 2)
        made = pieces[2 * i + 1].reshape(*stored[name]["reconstruction"].shape[:-1], 2)
        for c in range(2):
            _paths(axes[0, 2 * i + c], atoms[:, c], f"{name}: atom {c + 1}")
        _paths(axes[1, i], made, f"{name}: reconstruction of the target")
        ax = axes[1, 2 + i]
        ax.scatter(*target.T, s=5, color="#bbbbbb", linewidths=0, label="target samples")
        labels = stored[name]["labels"][-1]
        colors = [PALETTE[label % len(PALETTE)] for label in labels]
        ax.scatter(*made[-1].T, s=16, color=colors, linewidths=0)
        ax.set_title(f"{name}: reconstruction at the end, by class", fontsize=9)
    for ax in axes.flat:
        ax.set_xticks([])
        ax.set_yticks([])
    cell = records[0]["cell"]
    axes[0, 0].figure.suptitle(
        f"{method} of all positions ({cell['data']}, target: {cell['target']}). "
        "Blue: start, orange: end.",
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
        raise ValueError("figures need matplotlib; pip install 'mixda[report]'.") from None
    page = Figure(figsize=size, layout="constrained")
    draw(page.subplots(n_rows, n_columns), *what)
    return page


def _save(page: Any, path: Path, format: str) -> Path:
    buffer = io.BytesIO()
    page.savefig(buffer, format=format, dpi=150)
    write_atomically(path, buffer.getvalue())
    return path


def _of(records: Sequence[Record], suite: str) -> list[Record]:
    return [r for r in records if r["cell"]["suite"] == suite and r["cell"]["data"] != suite]


def _by(records: Sequence[Record], name: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    """Group records by a name of theirs, those of mixtures first."""
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
    points = _by(members, lambda r: r.get(place) or r["cell"]["settings"][place])
    x = np.array(sorted(points))
    values = [np.array([value(record) for record in points[size]]) for size in x]
    _line(ax, x, [v.mean() for v in values], [2.0 * v.std() for v in values], name, i)


def _line(ax: Any, x: Any, y: Any, error: Any, name: str, i: int) -> None:
    style = {"color": PALETTE[i % len(PALETTE)], "marker": _MARKERS[i % len(_MARKERS)]}
    ax.errorbar(x, y, yerr=error, label=name, capsize=2, linewidth=1.2, markersize=4, **style)


def _speed_name(record: Record) -> str:
    settings = record["cell"]["settings"]
    if record["cell"]["method"] == "GMMDaDiL":
        return "GMMDaDiL"
    return f"DaDiL, M = {-(-settings['n_points'] // settings['batch_size'])}"


def _learning_time(record: Record) -> float:
    """Processor seconds of the learning, of whose fit both clocks are known."""
    return float(record["learn_seconds"] * record["fit_cpu_seconds"] / record["fit_seconds"])


def _finish(ax: Any, records: Sequence[Record], title: str) -> None:
    cell = records[0]["cell"]
    n_seeds = len({record["cell"]["seed"] for record in records})
    words = f"{title} ({cell['data']}, target: {cell['target']}, seeds: {n_seeds})"
    ax.set_title(words, fontsize=9)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)


def _paths(ax: Any, positions: Array, title: str) -> None:
    """Draw the way of every point, (T, K, 2), from its start (blue) to its end (orange)."""
    ax.plot(positions[:, :, 0], positions[:, :, 1], color="#bbbbbb", linewidth=0.5, zorder=1)
    for when, color in ((0, PALETTE[0]), (-1, PALETTE[1])):
        ax.scatter(*positions[when].T, s=10, color=color, linewidths=0, zorder=2)
    ax.set_title(title, fontsize=9)


def _embed(X: Array, embedding: str | None) -> tuple[Array, str]:
    """Return positions in the plane, and how they were found."""
    if embedding != "pca":
        try:
            from umap import UMAP
        except ImportError:
            if embedding == "umap":
                raise ValueError(
                    "UMAP needs umap-learn; pip install 'mixda[bench]', or choose pca."
                ) from None
        else:
            return np.asarray(UMAP(random_state=0, n_jobs=1).fit_transform(X)), "UMAP"
    from sklearn.decomposition import PCA

    words = "PCA" if embedding == "pca" else "PCA (umap-learn is not installed)"
    return PCA(2, random_state=0).fit_transform(X), words
