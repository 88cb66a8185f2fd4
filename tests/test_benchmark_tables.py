"""Tables, ranks, tests and figures of a benchmark, against hand computation, scipy and Demšar."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import friedmanchisquare
from typer.testing import CliRunner

from mixda import benchmark
from mixda.benchmark._cells import Cell, write_error, write_result
from mixda.benchmark._published import PUBLISHED, find_figure
from mixda.benchmark._summary import cliques
from mixda.cli.bench import app

ABOUT = {"date": "2026-01-02T03:04:05+00:00", "commit": "abc", "cores": 2}
SCORES = {  # per target (x, y), per seed
    "SourceOnly": ([0.80, 0.90], [0.60, 0.70]),
    "WBT": ([0.90, 0.90], [0.50, 0.60]),
    "GMMWBT": ([0.95, 0.85], [0.90, 0.80]),
    "TargetOnly": ([1.00, 1.00], [1.00, 1.00]),
}


def make_run(folder: Path, scores=SCORES, suite: str = "cwru", targets=("x", "y")) -> Path:
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    for method, per_target in scores.items():
        for target, values in zip(targets, per_target, strict=True):
            for seed, value in enumerate(values):
                cell = Cell(suite, suite, "mlp", None, "f", target, method, seed)
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
        "2.50",
        "2.00",
    ]
    assert lines["WBT"][:3] == ["**90.00 ± 0.00**", "55.00 ± 5.00 ▼", "72.50 ▼"]
    assert lines["GMMWBT (MAP)"][:3] == ["**90.00 ± 5.00**", "**85.00 ± 5.00**", "**87.50**"]
    assert lines["GMMWBT (logistic)"][2] == "50.00 ▼"
    assert lines["TargetOnly (oracle)"][:4] == ["100.00 ± 0.00", "100.00 ± 0.00", "100.00", "–"]
    assert "▼ below source-only: adapting did harm there." in text
    # x: 90, 90, 85, 50 gives ranks 1.5, 1.5, 3, 4; y: 85, 65, 55, 50 gives 1, 2, 3, 4
    assert [lines[name][3] for name in ("GMMWBT (MAP)", "WBT", "GMMWBT (logistic)")] == [
        "1.25",
        "2.25",
        "4.00",
    ]
    assert "by commit abc, 2 cores" in text


def test_one_decision_per_method_if_asked(tmp_path):
    make_run(tmp_path)
    assert "GMMWBT (logistic)" not in grid(benchmark.table(tmp_path, score="map"))
    assert "GMMWBT (MAP)" not in grid(benchmark.table(tmp_path, score="head"))


def test_missing_and_failed_cells_do_not_shift_a_line(tmp_path):
    make_run(tmp_path, {**SCORES, "WJDOT": ([0.7], []), "JCPOT": ([], [0.6, 0.8])})
    failed = Cell("cwru", "cwru", "mlp", None, "f", "x", "JCPOT", 0)
    write_error(tmp_path, failed, {"error": "no luck", **ABOUT})
    text = benchmark.table(tmp_path)
    lines = grid(text)
    assert lines["WJDOT"][:4] == ["70.00 ± 0.00 (1 of 2) ▼", "–", "–", "–"]
    assert lines["JCPOT"][:4] == ["failed", "<u>70.00 ± 10.00</u>", "–", "–"]
    assert "JCPOT failed: no luck" in text
    assert lines["WBT"][3] == "2.25"  # incomplete lines are not ranked and move nobody


def test_csv_has_the_numbers_and_latex_its_commands(tmp_path):
    make_run(tmp_path)
    rows = list(csv.DictReader(io.StringIO(benchmark.table(tmp_path, "csv"))))
    found = {(row["method"], row["target"]): row for row in rows}
    assert float(found["WBT", "y"]["mean"]) == pytest.approx(55.0)
    assert found["WBT", "average"]["below_source_only"] == "1"
    assert found["WBT", "x"]["below_source_only"] == "0"
    latex = benchmark.table(tmp_path, "latex")
    assert r"\textbf{90.00 $\pm$ 5.00}" in latex
    assert r"55.00 $\pm$ 5.00 $\blacktriangledown$" in latex
    body = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in body} == {5}
    assert not set(latex) & set("▼±χ²–")


def test_different_data_or_features_are_different_tables(tmp_path):
    make_run(tmp_path)
    make_run(tmp_path, suite="tep")
    text = benchmark.table(tmp_path)
    assert text.count("| method |") == 2
    assert "All targets together: Friedman test of 4 methods on 4 targets" in text


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
    assert "No test: it needs three methods and two targets, there are 2 and 2." in (
        benchmark.table(tmp_path)
    )


# ------------------------------------------------------------------------------------ published


def test_published_averages_are_row_means_up_to_the_known_misprints():
    """BASELINES lists the rows whose printed average is not their mean."""
    misprints = {("office-home", "GMMDaDiL"), ("office31", "SourceOnly"), ("office31", "CoMDA")}
    misprints |= {("office31", "GMMWBT"), ("cwru", "DaDiL-E"), ("tep", "CoMDA")}
    wrong = set()
    for suite in ("office-home", "office31", "cwru", "tep"):
        for method, figures in PUBLISHED[suite].rows.items():
            if (
                abs(np.mean(figures[:-1]) - figures[-1]) > 0.0101
            ):  # rounded means of rounded figures
                wrong.add((suite, method))
    assert wrong == misprints


def test_compare_puts_ours_beside_the_published(tmp_path):
    make_run(tmp_path, targets=("1797 rpm", "1730 rpm"))
    lines = grid(benchmark.compare(tmp_path))
    assert lines["WBT"][0] == "55.00 / 97.71 (−42.71)"  # 1730 rpm comes first
    assert lines["WBT"][1] == "90.00 / –"
    assert lines["WBT"][2] == "72.50 / 92.30 (−19.80)"
    # gain over source-only: ours 72.5 − 75, published 92.30 − 74.31
    assert lines["WBT"][3] == "−2.50 / 17.99 (−20.49)"
    rows = list(csv.DictReader(io.StringIO(benchmark.compare(tmp_path, "csv"))))
    assert {row["published"] for row in rows if row["method"] == "TargetOnly"} == {""}
    make_run(tmp_path / "other", suite="toy")
    with pytest.raises(ValueError, match="no suite with published figures"):
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
    assert find_figure(suite, "GMMDaDiL", target) == figure


# -------------------------------------------------------------------------------------- drawing


def ablation(folder: Path, suite: str, method: str, seed: int, settings, experiment, outcome):
    cell = Cell(suite, "toy", "raw", None, "f", "t", method, seed, settings, "logistic", experiment)
    write_result(folder, cell, {**outcome, **ABOUT})


def test_figures_hold_what_the_run_holds(tmp_path):
    pytest.importorskip("matplotlib")
    make_run(tmp_path)
    for seed in (0, 1):
        for K in (2, 4):
            ablation(
                *(tmp_path, "lighter", "WBT", seed, {"n_points": K}, "accuracy"),
                {"accuracy": 0.5 + K / 10, "size": K},
            )
            faster = {"learn_seconds": 1.0, "fit_seconds": 2.0, "fit_cpu_seconds": 2.0}
            settings = {"n_points": 2 * K, "batch_size": K}
            ablation(tmp_path, "faster", "DaDiL-R", seed, settings, "accuracy", faster)
        curve = {"lambda0": [0.0, 1.0], "curve": [0.2, 0.4], "accuracy": 0.3, "own_lambda0": 0.7}
        ablation(tmp_path, "better", "GMMDaDiL", seed, {}, "interpolation", curve)
    arrays = {"atoms": np.zeros((2, 2, 3, 4)), "reconstruction": np.ones((2, 3, 4))}
    arrays |= {"labels": np.zeros((2, 3), int), "target": np.eye(4)}
    np.savez(tmp_path / "cells" / "a.npz", **arrays)
    ablation(tmp_path, "trajectories", "GMMDaDiL", 0, {}, "trajectory", {"arrays": "a.npz"})
    paths = benchmark.figure(tmp_path, embedding="pca")
    names = ["critical-difference", "lighter", "better", "faster", "trajectories"]
    assert [path.stem for path in paths] == names
    for path in paths:
        assert path.read_text().rstrip().endswith("</svg>")
    assert benchmark.figure(tmp_path, tmp_path / "png", "png", "pca")[0].read_bytes()[1:4] == b"PNG"


def test_faster_draws_batch_size_and_number_of_batches():
    from mixda.benchmark._figures import draw_faster

    figure = pytest.importorskip("matplotlib.figure").Figure()
    cells = [
        {"method": "DaDiL-R", "settings": {"n_points": M * n, "batch_size": n}, "seed": 0}
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
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "DaDiL, M = 1",
        "DaDiL, M = 4",
    ]
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
    assert written.read_text().startswith(r"\begin{table}")
    for command in ("compare", "figure"):
        error = runner.invoke(app, [command, out]).exception
        assert isinstance(error, ValueError)


def test_command_line_says_that_cells_failed(tmp_path):
    arguments = ["run", "toy", "--methods", "GMMWBT", "--seeds", "1", "--rows", "60"]
    arguments += ["--out", str(tmp_path), "--set", "GMMWBT.n_components=0"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "failed: n_components must be" in result.output
