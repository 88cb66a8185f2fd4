"""Tables, ranks, tests and figures of a benchmark, against hand computation, scipy and Demšar."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import friedmanchisquare
from typer.testing import CliRunner

from mixda import benchmark
from mixda.benchmark._cells import Cell, write_error, write_result
from mixda.benchmark._paper_tables import PAPER_TABLES, paper_accuracy
from mixda.benchmark._summary import cliques
from mixda.cli._bench import app

ABOUT = {"date": "2026-01-02T03:04:05+00:00", "commit": "abc", "cores": 2}
SCORES = {  # per target (x, y), per seed
    "SourceOnly": ([0.80, 0.90], [0.60, 0.70]),
    "WBT": ([0.90, 0.90], [0.50, 0.60]),
    "GMMWBT": ([0.95, 0.85], [0.90, 0.80]),
    "TargetOnly": ([1.00, 1.00], [1.00, 1.00]),
}


def make_run(
    folder: Path, scores=SCORES, suite: str = "cwru", targets=("x", "y"), rows=None
) -> Path:
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    for method, per_target in scores.items():
        for target, values in zip(targets, per_target, strict=True):
            for seed, value in enumerate(values):
                cell = Cell(suite, suite, "mlp", rows, "f", target, method, seed)
                outcome = {"accuracy": value, "fit_seconds": 9.0, "fit_cpu_seconds": 2.0, **ABOUT}
                if method == "GMMWBT":
                    outcome["head_accuracy"] = 0.5
                write_result(folder, cell, outcome)
    return folder


def grid(text: str) -> dict[str, list[str]]:
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {line[0]: line[1:] for line in lines}


# --------------------------------------------------------------------------------------- tables


def test_table_by_hand(tmp_path):
    text = benchmark.table(make_run(tmp_path))
    lines = grid(text)
    assert lines["method"] == ["x", "y", "average", "rank", "cpu s per fit"]
    # means 85, 65, average 75; deviation 5 with division by the number of seeds
    assert lines["SourceOnly"] == [
        "<u>85.00 ± 5.00</u>",
        "<u>65.00 ± 5.00</u>",
        "<u>75.00</u>",
        "1.50",
        "2.00",
    ]
    assert lines["WBT"][:3] == ["**90.00 ± 0.00**", "55.00 ± 5.00 ▼", "72.50 ▼"]
    assert lines["GMMWBT (MAP)"][:3] == ["**90.00 ± 5.00**", "**85.00 ± 5.00**", "**87.50**"]
    assert lines["GMMWBT (logistic)"][2] == "50.00 ▼"
    assert lines["TargetOnly (oracle)"][:4] == ["100.00 ± 0.00", "100.00 ± 0.00", "100.00", "–"]
    assert "▼ below source-only" in text
    # each method once, GMMWBT by its head: x: 90, 85, 50 gives 1, 2, 3; y: 65, 55, 50 gives 1, 2, 3
    assert [lines[name][3] for name in ("GMMWBT (MAP)", "WBT", "GMMWBT (logistic)")] == [
        "–",
        "1.50",
        "3.00",
    ]
    assert "Ranks and tests include each method once" in text
    assert "Friedman test of 3 methods on 2 targets" in text
    assert "commit abc on 2 cores" in text


def test_one_decision_per_method_if_asked(tmp_path):
    make_run(tmp_path)
    by_map = grid(benchmark.table(tmp_path, score="map"))
    assert "GMMWBT (logistic)" not in by_map
    # x: 90, 90, 85 gives 1.5, 1.5, 3; y: 85, 65, 55 gives 1, 2, 3
    assert [by_map[n][3] for n in ("GMMWBT (MAP)", "WBT", "SourceOnly")] == ["1.25", "2.25", "2.50"]
    text = benchmark.table(tmp_path, score="head")
    assert "GMMWBT (MAP)" not in grid(text)
    assert "count every method once" not in text  # nothing to explain


def test_missing_and_failed_cells_do_not_shift_a_line(tmp_path):
    make_run(tmp_path, {**SCORES, "WJDOT": ([0.7], []), "JCPOT": ([], [0.6, 0.8])})
    failed = Cell("cwru", "cwru", "mlp", None, "f", "x", "JCPOT", 0)
    write_error(tmp_path, failed, {"error": "no luck", **ABOUT})
    text = benchmark.table(tmp_path)
    lines = grid(text)
    assert lines["WJDOT"][:4] == ["70.00 ± 0.00 (1 of 2) ▼", "–", "–", "–"]
    assert lines["JCPOT"][:4] == ["failed", "<u>70.00 ± 10.00</u>", "–", "–"]
    assert "JCPOT failed: no luck" in text
    assert lines["WBT"][3] == "1.50"  # incomplete lines are not ranked and move nobody


def test_csv_has_the_numbers_and_latex_its_commands(tmp_path):
    make_run(tmp_path)
    rows = list(csv.DictReader(io.StringIO(benchmark.table(tmp_path, "csv"))))
    found = {(row["method"], row["target"]): row for row in rows}
    assert float(found["WBT", "y"]["mean"]) == pytest.approx(55.0)
    assert found["WBT", "average"]["below_source_only"] == "1"
    assert found["WBT", "x"]["below_source_only"] == "0"
    assert {method for method, _ in found if "Target" in method} == {"TargetOnly (oracle)"}
    latex = benchmark.table(tmp_path, "latex")
    assert r"\textbf{90.00 $\pm$ 5.00}" in latex
    assert r"55.00 $\pm$ 5.00 $\blacktriangledown$" in latex
    body = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in body} == {5}
    make_run(tmp_path, suite="tep")
    for text in (benchmark.table(tmp_path, "latex"), benchmark.compare(tmp_path, "latex")):
        assert text.isascii()
        assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert r"WBT & 90.00 / -- & 55.00 / -- & 72.50 / 92.30 ($-$19.80)" in text


def test_different_data_or_features_are_different_tables(tmp_path):
    make_run(tmp_path)
    make_run(tmp_path, suite="tep")
    text = benchmark.table(tmp_path)
    assert text.count("| method |") == 2
    assert "All targets together (cwru, mlp; tep, mlp): Friedman test of 3 methods on 4" in text


def test_a_suite_counts_once_in_the_test_of_all_targets(tmp_path):
    """cwru whole and cut to 50 rows: the same targets, so only the whole one counts."""
    make_run(tmp_path)
    make_run(tmp_path, suite="tep")
    make_run(tmp_path, rows=50)
    text = benchmark.table(tmp_path)
    assert text.count("| method |") == 3
    assert "3 methods on 4 targets" in text
    make_run(tmp_path / "one")
    make_run(tmp_path / "one", rows=50)
    assert "All targets together" not in benchmark.table(tmp_path / "one")


def test_equal_methods_cannot_be_tested(tmp_path):
    make_run(tmp_path, {name: ([0.5], [0.6]) for name in ("SourceOnly", "WBT", "WJDOT")})
    text = benchmark.table(tmp_path)
    assert "No test: all 3 methods are equal on each of the 2 targets." in text
    assert "nan" not in text


NASTY = (r"a|b\c{d}^~$e#f%g&h_i", "new\nline")


def test_odd_names_of_domains_do_not_break_a_table(tmp_path):
    make_run(tmp_path, targets=NASTY)
    markdown = benchmark.table(tmp_path)
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}
    assert r"| a\|b\c{d}^~$e#f%g&h_i | new line |" in rows[0]
    for text in (benchmark.table(tmp_path, "latex"), benchmark.compare(tmp_path, "latex")):
        body = [line for line in text.splitlines() if line.endswith(r"\\")]
        expected = r"a|b\textbackslash{}c\{d\}\textasciicircum{}\textasciitilde{}\$e\#f\%g\&h\_i"
        assert f" & {expected} & new line & " in body[0]
        columns = {len(re.findall(r"(?<!\\)&", line)) for line in body}
        assert len(columns) == 1
        assert text.startswith("% in the preamble: \\usepackage{booktabs,amssymb}\n")
    rows = list(csv.DictReader(io.StringIO(benchmark.table(tmp_path, "csv"))))
    assert {row["target"] for row in rows} == {*NASTY, "average"}


# ---------------------------------------------------------------------------------------- tests


def test_friedman_is_scipys_and_ranks_share_ties():
    accuracies = np.random.default_rng(0).normal(size=(9, 5))
    accuracies[2, 1] = accuracies[2, 3]
    ranking = benchmark.rank_accuracies(list("abcde"), accuracies)
    expected = friedmanchisquare(*accuracies.T)
    assert ranking.statistic == pytest.approx(expected.statistic)
    assert ranking.p_value == pytest.approx(expected.pvalue)
    assert ranking.ranks.sum() == pytest.approx(15.0)  # 1 + … + 5


def test_example_of_demsar():
    """Table 6 of Demšar (2006): four variants of C4.5 on 14 data sets; ranks, test and CD."""
    auc = np.array(
        [
            [0.763, 0.768, 0.771, 0.798],
            [0.599, 0.591, 0.590, 0.569],
            [0.954, 0.971, 0.968, 0.967],
            [0.628, 0.661, 0.654, 0.657],
            [0.882, 0.888, 0.886, 0.898],
            [0.936, 0.931, 0.916, 0.931],
            [0.661, 0.668, 0.609, 0.685],
            [0.583, 0.583, 0.563, 0.625],
            [0.775, 0.838, 0.866, 0.875],
            [1.000, 1.000, 1.000, 1.000],
            [0.940, 0.962, 0.965, 0.962],
            [0.619, 0.666, 0.614, 0.669],
            [0.972, 0.981, 0.9751, 0.975],  # printed as a tie, ranked as none
            [0.957, 0.978, 0.946, 0.970],
        ]
    )
    ranking = benchmark.rank_accuracies(["C4.5", "+m", "+cf", "+m+cf"], auc)
    np.testing.assert_allclose(ranking.ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    # the paper's 9.28 has no correction for ties; with scipy's it is a little larger
    n, k = auc.shape
    plain = 12 * n / (k * (k + 1)) * ((ranking.ranks**2).sum() - k * (k + 1) ** 2 / 4)
    assert plain == pytest.approx(9.28, abs=0.005)
    assert plain < ranking.statistic < 10.5
    assert ranking.critical_difference == pytest.approx(1.25, abs=0.005)
    # section 3.2.2: at 5 % no two differ (the largest difference is 1.18)
    assert cliques(ranking) == [(0, 3)]
    # and its table 5 a, q for two to ten classifiers
    q = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for k, value in enumerate(q, 2):
        scale = np.sqrt(k * (k + 1) / (6 * 14))
        assert benchmark.critical_difference(k, 14) / scale == pytest.approx(value, abs=1.1e-3)


def test_cliques_are_the_longest_runs():
    ranking = benchmark.Ranking(tuple("abcd"), np.array([1.0, 4.0, 1.8, 2.5]), 9, 1.0, 0.1, 1.0)
    assert cliques(ranking) == [(0, 1), (1, 2)]


def test_too_few_for_a_test(tmp_path):
    make_run(tmp_path, {name: SCORES[name] for name in ("SourceOnly", "WBT")})
    assert "No test: three methods and two targets are required, got 2 and 2." in (
        benchmark.table(tmp_path)
    )


# ------------------------------------------------------------------------------------ published


def test_published_averages_are_row_means_up_to_the_known_misprints():
    """BASELINES lists the rows whose printed average is not their mean."""
    misprints = {("office-home", "GMMDaDiL"), ("office31", "SourceOnly"), ("office31", "CoMDA")}
    misprints |= {("office31", "GMMWBT"), ("cwru", "DaDiL-E"), ("tep", "CoMDA")}
    wrong = set()
    for suite in ("office-home", "office31", "cwru", "tep"):
        for method, figures in PAPER_TABLES[suite].rows.items():
            if (
                abs(np.mean(figures[:-1]) - figures[-1]) > 0.0101
            ):  # rounded means of rounded figures
                wrong.add((suite, method))
    assert wrong == misprints


def test_compare_puts_ours_beside_the_paper_tables(tmp_path):
    make_run(tmp_path, targets=("1797 rpm", "1730 rpm"))
    lines = grid(benchmark.compare(tmp_path))
    assert lines["WBT"][0] == "55.00 / 97.71 (−42.71)"  # 1730 rpm comes first
    assert lines["WBT"][1] == "90.00 / –"
    assert lines["WBT"][2] == "72.50 / 92.30 (−19.80)"
    # gain over source-only: ours 72.5 − 75, published 92.30 − 74.31
    assert lines["WBT"][3] == "−2.50 / 17.99 (−20.49)"
    rows = list(csv.DictReader(io.StringIO(benchmark.compare(tmp_path, "csv"))))
    oracle = [row["published"] for row in rows if row["method"] == "TargetOnly (oracle)"]
    assert oracle == [""] * 3
    for text in (benchmark.compare(tmp_path), benchmark.compare(tmp_path, "latex")):
        assert "TargetOnly (oracle)" in text
        assert "(oracle) is trained on target labels: an upper bound" in text
    make_run(tmp_path / "other", suite="toy")
    with pytest.raises(ValueError, match="no suite with published"):
        benchmark.compare(tmp_path / "other")


@pytest.mark.parametrize(
    ("suite", "target", "figure"),
    [
        ("tep", "mode 3", 89.68),
        ("tep", "mode3", 89.68),
        ("office-home", "Real_World", 85.32),
        ("office-home", "Art", 77.16),
        ("office31", "dslr", 100.0),
        ("cwru", "1750 rpm", 99.95),
        ("cwru", "1797 rpm", None),
        ("toy", "target", None),
    ],
)
def test_published_figure_of_a_target(suite, target, figure):
    assert paper_accuracy(suite, "GMMDaDiL", target) == figure


# -------------------------------------------------------------------------------------- drawing


def ablation(folder: Path, suite: str, method: str, seed: int, settings, outcome, **changes):
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    experiment = {"better": "interpolation", "trajectories": "trajectory"}.get(suite, "accuracy")
    cell = Cell(suite, "toy", "raw", None, "f", "t", method, seed, settings, None, experiment)
    write_result(folder, replace(cell, **changes), {**outcome, **ABOUT})


def lighter(folder: Path, method: str, values: dict[int, list[float]], more=None, **changes):
    name = "n_components" if method.startswith("GMM") else "n_points"
    for size, accuracies in values.items():
        for seed, accuracy in enumerate(accuracies):
            settings = {name: size, **(more or {})}
            outcome = {"accuracy": accuracy, "size": size}
            ablation(folder, "lighter", method, seed, settings, outcome, **changes)


def better(folder: Path, method: str, seed: int, curve: list[float], own: float | None):
    outcome = {"lambda0": [0.0, 1.0], "curve": curve, "accuracy": 0.3, "own_lambda0": own}
    ablation(folder, "better", method, seed, {}, outcome)


def trajectory(folder: Path, method: str, settings=None, **changes):
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    arrays = {"atoms": rng.normal(size=(2, 2, 3, 4)), "reconstruction": np.ones((2, 3, 4))}
    arrays |= {"labels": np.array([[0, 0, 0], [0, 1, 2]]), "target": np.eye(4)}
    np.savez(folder / "cells" / f"{method}.npz", **arrays)
    outcome = {"arrays": f"{method}.npz"}
    ablation(folder, "trajectories", method, 0, settings or {}, outcome, **changes)


def labels(ax) -> list[str]:
    return [text.get_text() for text in ax.figure.legends[0].get_texts()]


def drawn(monkeypatch, folder: Path, **options) -> dict:
    """Draw, and return the figures by the names of their files."""
    pytest.importorskip("matplotlib")
    pages = {}
    monkeypatch.setattr(
        "mixda.benchmark._figures._save", lambda page, path, _: pages.update({path.stem: page})
    )
    benchmark.figure(folder, **options)
    return pages


def test_figures_hold_what_the_run_holds(tmp_path):
    pytest.importorskip("matplotlib")
    make_run(tmp_path)
    lighter(tmp_path, "WBT", {2: [0.7], 4: [0.9]})
    better(tmp_path, "GMMDaDiL", 0, [0.2, 0.4], 0.7)
    faster = {"accuracy": 0.5, "learn_seconds": 1.0, "fit_seconds": 2.0, "fit_cpu_seconds": 2.0}
    ablation(tmp_path, "faster", "DaDiL-R", 0, {"n_points": 4, "batch_size": 2}, faster)
    trajectory(tmp_path, "GMMDaDiL")
    paths = benchmark.figure(tmp_path, embedding="pca")
    names = ["critical-difference", "lighter", "better", "faster", "trajectories"]
    assert [path.stem for path in paths] == names
    for path in paths:
        assert path.read_text().rstrip().endswith("</svg>")
    assert benchmark.figure(tmp_path, tmp_path / "png", "png", "pca")[0].read_bytes()[1:4] == b"PNG"


def test_critical_differences_are_of_the_decision_that_is_asked_for(tmp_path, monkeypatch):
    make_run(tmp_path)
    for score, name in (("both", "logistic"), ("head", "logistic"), ("map", "MAP")):
        (page,) = drawn(monkeypatch, tmp_path, score=score).values()
        texts = [text.get_text() for text in page.axes[0].texts]
        assert sum(text.startswith("GMMWBT") for text in texts) == 1
        assert any(text.startswith(f"GMMWBT ({name})") for text in texts)


def test_lighter_draws_means_and_two_deviations_against_sizes(tmp_path, monkeypatch):
    lighter(tmp_path, "WBT", {2: [0.5, 0.7], 4: [0.9, 0.9]})
    lighter(tmp_path, "GMMWBT", {2: [0.8, 1.0]})
    ax = drawn(monkeypatch, tmp_path)["lighter"].axes[0]
    assert labels(ax) == ["GMMWBT (MAP)", "WBT"]
    curve, _, (bars,) = ax.containers[1].lines
    np.testing.assert_allclose(curve.get_xydata(), [[2, 60], [4, 90]])
    # 60 ± 2 · 10, 90 ± 0
    np.testing.assert_allclose(bars.get_segments(), [[[2, 40], [2, 80]], [[4, 90], [4, 90]]])


def test_other_data_are_another_figure_and_other_settings_another_curve(tmp_path, monkeypatch):
    lighter(tmp_path, "WBT", {2: [0.5]})
    lighter(tmp_path, "WBT", {2: [0.9]}, more={"reg": 0.5})
    pages = drawn(monkeypatch, tmp_path)
    assert list(pages) == ["lighter"]
    assert labels(pages["lighter"].axes[0]) == ["WBT", "WBT reg=0.5"]
    assert [c.lines[0].get_ydata().tolist() for c in pages["lighter"].axes[0].containers] == [
        [50.0],
        [90.0],
    ]
    for changes in ({"target": "u"}, {"rows": 9}, {"fingerprint": "g"}, {"data": "cwru"}):
        lighter(tmp_path, "WBT", {2: [0.1]}, **changes)
    pages = drawn(monkeypatch, tmp_path)
    assert len(pages) == 5
    assert all(re.match(r"lighter-(toy|cwru)-(t|u)-[0-9a-f]{4}$", name) for name in pages)
    assert sorted(len(page.axes[0].containers) for page in pages.values()) == [1, 1, 1, 1, 2]


def test_better_draws_the_mean_curve_and_stars_at_what_was_learned(tmp_path, monkeypatch):
    better(tmp_path, "GMMDaDiL", 0, [0.4, 0.2], 0.3)  # the same with the atoms in the other order
    better(tmp_path, "GMMDaDiL", 1, [0.4, 0.4], 0.6)
    better(tmp_path, "GMMWBT", 0, [0.1, 0.3], None)
    ax = drawn(monkeypatch, tmp_path)["better"].axes[0]
    assert labels(ax) == [
        "learned λ*",
        "atoms (GMMDaDiL)",
        "sources, then transport (GMMWBT)",
    ]
    assert ax.get_ylabel() == "accuracy (MAP) on the target in %, ± 2 std"
    curves = [container.lines[0].get_xydata().tolist() for container in ax.containers]
    np.testing.assert_allclose(curves, [[[0, 30], [1, 40]], [[0, 10], [1, 30]]])
    stars = next(c for c in ax.collections if c.get_label() == "learned λ*")
    np.testing.assert_allclose(sorted(stars.get_offsets().tolist()), [[0.6, 30], [0.7, 30]])


def test_trajectories_share_a_plane_and_leave_no_empty_frame(tmp_path, monkeypatch):
    trajectory(tmp_path, "GMMDaDiL")
    for methods in (1, 2):
        page = drawn(monkeypatch, tmp_path, embedding="pca")["trajectories"]
        assert len(page.axes) == 4 * methods
        assert all(ax.get_title() for ax in page.axes)
        assert len({ax.get_xlim() + ax.get_ylim() for ax in page.axes}) == 1
        trajectory(tmp_path, "DaDiL-R")
    top = [ax.get_title() for ax in page.axes[:4]]
    assert top == ["GMMDaDiL: atom 1", "GMMDaDiL: atom 2", "DaDiL-R: atom 1", "DaDiL-R: atom 2"]
    path = page.axes[0]
    assert len(path.lines) == 3  # one way per component
    start, end = path.collections
    assert start.get_facecolors()[0].tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(start.get_offsets()[0], path.lines[0].get_xydata()[0])
    np.testing.assert_allclose(end.get_offsets()[0], path.lines[0].get_xydata()[-1])
    by_class = page.axes[5].collections[1].get_facecolors()
    assert len({tuple(color) for color in by_class}) == 3
    trajectory(tmp_path, "DaDiL-R", {"beta": 2.0})
    assert len(drawn(monkeypatch, tmp_path, embedding="pca")["trajectories"].axes) == 12


def test_faster_draws_batch_size_and_number_of_batches():
    from mixda.benchmark._figures import draw_faster

    figure = pytest.importorskip("matplotlib.figure").Figure()
    cells = [
        {
            **{"method": "DaDiL-R", "suite": "faster", "seed": 0},
            "settings": {"n_points": M * n, "batch_size": n, "n_epochs": 7},
        }
        for M in (1, 4)
        for n in (10, 20)
    ]
    records = [
        {
            "cell": {**cell, "target": "t", "data": "toy"},
            "size": 99,
            "learn_seconds": 3.0,
            "fit_seconds": 4.0,
            "fit_cpu_seconds": 2.0,
        }
        for cell in cells
    ]
    ax = figure.subplots()
    draw_faster(ax, records)
    assert labels(ax) == ["DaDiL n_epochs=7, M = 1", "DaDiL n_epochs=7, M = 4"]
    assert ax.get_ylabel() == "CPU seconds of 7 iterations"
    assert ax.lines[0].get_xdata().tolist() == [10, 20]
    assert ax.lines[0].get_ydata().tolist() == [1.5, 1.5]  # half of the wall time was its own


# --------------------------------------------------------------------------------- command line


def test_command_line_from_run_to_figure(tmp_path):
    runner, out = CliRunner(), str(tmp_path / "run")
    run = ["run", "toy", "--methods", "source-only,GMMOTDA", "--seeds", "2", "--rows", "60"]
    result = runner.invoke(app, [*run, "--out", out, "--set", "GMMOTDA.n_components=2"])
    assert result.exit_code == 0, result.output
    assert "4 cells run, 0 found finished, 0 failed" in result.output
    record = json.loads(next((tmp_path / "run" / "cells").glob("*GMMOTDA*")).read_text())
    assert record["cell"]["settings"] == {"n_components": 2}
    table = runner.invoke(app, ["table", out])
    assert "| GMMOTDA n_components=2 (MAP) |" in table.output
    written = tmp_path / "table.tex"
    assert (
        runner.invoke(app, ["table", out, "--format", "latex", "-o", str(written)]).exit_code == 0
    )
    assert written.read_text().count(r"\begin{table}") == 1
    for command in ("compare", "figure"):
        error = runner.invoke(app, [command, out]).exception
        assert isinstance(error, ValueError)


def test_command_line_has_a_folder_by_default_and_points_the_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    run = ["run", "toy", "--methods", "SourceOnly", "--seeds", "1", "--rows", "60"]
    assert "see: mixda bench table bench" in runner.invoke(app, run).output
    assert "| SourceOnly |" in runner.invoke(app, ["table"]).output
    assert runner.invoke(app, [*run, "--quiet"]).output == ""
    run = ["run", "lighter", "--methods", "GMMWBT", "--seeds", "1", "--rows", "40"]
    assert "mixda bench figure bench" in runner.invoke(app, [*run, "--data", "toy"]).output


def test_command_line_reads_own_data_as_adapt_does(tmp_path):
    rows = [f"{x},{i},{x % 2}" for i, x in enumerate(range(20))]
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,id,state", *rows, ",99,1"]))
    run = ["run", str(tmp_path), "--methods", "SourceOnly", "--seeds", "1", "--label", "state"]
    error = CliRunner().invoke(app, [*run, "--out", str(tmp_path / "out")]).exception
    assert "is inside the data folder" in str(error)
    run += ["--out", str(tmp_path.with_name(f"{tmp_path.name}-out"))]
    result = CliRunner().invoke(app, [*run, "--drop", "id", "--missing", "drop"])
    assert result.exit_code == 0, result.output
    assert "40 rows\n  1 features: a\n  2 domains: north, south\n  2 classes: 0, 1" in result.output
    result = CliRunner().invoke(app, [*run, "--columns", "id, a", "--missing", "drop"])
    assert "2 features: id, a" in result.output


def test_command_line_says_that_cells_failed(tmp_path):
    arguments = ["run", "toy", "--methods", "GMMWBT", "--seeds", "1", "--rows", "60"]
    arguments += ["--out", str(tmp_path), "--set", "GMMWBT.n_components=0"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 3
    assert "failed: n_components must be" in result.output


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--out", ""], "out is empty"),
        (["--features", ""], "features must be one of"),
        (["--columns", ""], "--columns names no column"),
        (["--drop", ","], "--drop names no column"),
        (["--label", ""], "label: options"),
        (["--targets", ","], "targets is empty"),
        (["--jobs", "0"], "n_jobs must"),
        (["--set", "JCPOT.reg=NaN"], "settings must"),
    ],
)
def test_command_line_refuses_empty_options_and_makes_nothing(
    option, sentence, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run = ["run", "toy", "--methods", "JCPOT", "--seeds", "1", "--rows", "60", *option]
    error = CliRunner().invoke(app, run).exception
    assert isinstance(error, ValueError)
    assert str(error).startswith(sentence)
    assert not list(tmp_path.iterdir())
