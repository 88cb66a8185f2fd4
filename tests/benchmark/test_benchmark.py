"""The suite of a benchmark: ablations, targets, settings, and mistakes before any work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixda import benchmark
from mixda.benchmark._cells import read_records
from mixda.benchmark._entries import parse_settings
from mixda.benchmark._experiments import interpolate, trace
from mixda.benchmark._features import make_features, read_task, write_features
from mixda.datasets import DomainDataset

from .quick_cells import cell, small_toy

# ------------------------------------------------------------------------------------ ablations


def two_sources() -> DomainDataset:
    data = small_toy(40)
    kept = data.domain != 0
    return replace(
        data,
        X=data.X[kept],
        y=data.y[kept],
        domain=data.domain[kept] - 1,
        domain_names=data.domain_names[1:],
    )


def test_interpolation_of_sources_in_the_middle_is_the_method_itself(tmp_path):
    write_features(tmp_path / "f.npz", make_features(two_sources(), "target", "raw"))
    task = read_task(tmp_path / "f.npz", 0)
    curve = interpolate(cell("GMMWBT"), task)
    assert curve.lambda0[5] == pytest.approx(0.5)
    np.testing.assert_array_equal(curve.predictions[5], curve.own)
    curve = interpolate(cell("GMMDaDiL", settings={"n_atoms": 2}), task)
    assert 0.0 <= curve.own_lambda0 <= 1.0


@pytest.mark.parametrize("method", ["GMMDaDiL", "DaDiL-R"])
def test_trajectories_begin_at_the_sources_and_move(method, tmp_path, monkeypatch):
    monkeypatch.setattr("mixda.benchmark._experiments._SNAPSHOTS", (0, 1, 3))
    write_features(tmp_path / "f.npz", make_features(two_sources(), "target", "raw"))
    task = read_task(tmp_path / "f.npz", 0)
    settings = {"n_points": 8, "batch_size": 8}
    if method == "GMMDaDiL":
        settings = {"n_iter": 3, "optimizer": "adam", "tol": -1.0}
    settings["n_atoms"] = 2
    arrays, _ = trace(cell(method, settings=settings), task)
    assert arrays["iterations"].tolist() == [0, 1, 3]
    moved = np.abs(np.diff(arrays["atoms"], axis=0)).max(axis=(1, 2, 3))
    assert (moved > 1e-6).all()
    if method == "DaDiL-R":  # its atoms start as source samples
        start = arrays["atoms"][0].reshape(-1, 2)
        sources = task.X[task.sample_domain >= 0]
        assert (np.abs(start[:, None] - sources).max(axis=2).min(axis=1) < 1e-6).all()


def test_ablations_vary_what_they_say(tmp_path):
    options = {"data": "toy", "rows": 40, "out": tmp_path}
    benchmark.run("lighter", ["GMMWBT", "WBT"], 1, **options)
    sizes: dict[str, list[int]] = {}
    for record in read_records(tmp_path):
        sizes.setdefault(record["cell"]["method"], []).append(record["size"])
    assert sorted(sizes["WBT"]) == [2, 4, 6, 8, 12, 16, 20] == sorted(sizes["GMMWBT"])
    with pytest.raises(ValueError, match=r"methods .*GMMDaDiL, GMMWBT, got WJDOT"):
        benchmark.run("better", ["WJDOT"], 1, **options)
    with pytest.raises(ValueError, match="only ablations"):
        benchmark.table(tmp_path)


# ------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"suite": "tepp"}, "suite must .*toy, cwru.*'tepp'"),
        ({"methods": ["GMM"]}, "methods must .*SourceOnly.*'GMM'"),
        ({"seeds": 0}, "seeds must be a positive integer, got 0"),
        ({"targets": ["moon"]}, "domain .*'moon'"),
        ({"features": "magic"}, "features must be one of 'raw'"),
        ({"settings": {"WBT": {"points": 3}}}, "settings of WBT .*beta.*'points'"),
        ({"settings": {"WBT": {"classifier": object}}}, "settings must .*object"),
        ({"settings": {"WBT": {"reg": float("nan")}}}, "settings must"),
        ({"settings": {"WBT": {"beta": [1.0, float("inf")]}}}, "settings must"),
        ({"features": ""}, "features must be one of 'raw'"),
        ({"out": ""}, "out is empty"),
        ({"suite": ""}, "suite must .*got ''"),
        ({"suite": "lighter", "methods": None, "data": ""}, "suite must .*got ''"),
        ({"n_jobs": 0}, "n_jobs must .*got 0"),
        ({"settings": {"WJDOT": {"n_iter": 3}}}, "settings .*WJDOT"),
        ({"head": "tree"}, "head must be one of 'logistic', 'svc'"),
        ({"data": "cwru"}, "data='cwru' .*lighter, better, .*'toy'"),
        ({"label": "state"}, "label: .*'toy'"),
        ({"columns": ["a"], "drop": ["b"]}, "columns, drop: .*'toy'"),
        ({"targets": ["target", "target"]}, "targets must .*target, target"),
        ({"targets": "target,3"}, "targets must .*target, target"),
        ({"targets": "9"}, "domain .*below 4, got 9"),
        ({"targets": ","}, "targets is empty.*source 1, source 2"),
        ({"targets": []}, "targets is empty"),
    ],
)
def test_mistakes_get_one_sentence_before_any_work(arguments, sentence, tmp_path):
    given = {"suite": "toy", "methods": ["SourceOnly", "WBT"], "out": tmp_path, **arguments}
    with pytest.raises(ValueError, match=sentence):
        benchmark.run(**given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["n_atoms=4", "GMMDaDiL.n_atoms", "GMMDaDiL.=4", "X.n_atoms=4"])
def test_settings_that_do_not_parse(text):
    with pytest.raises(ValueError, match=r"METHOD.parameter=value.*got|methods .*'X'"):
        parse_settings([text])


@pytest.mark.parametrize(
    ("suite", "settings", "setting"),
    [
        ("better", {"GMMDaDiL": {"n_atoms": 3}}, "GMMDaDiL.n_atoms"),
        ("lighter", {"WBT": {"n_points": 3}}, "WBT.n_points"),
        ("trajectories", {"GMMDaDiL": {"n_iter": 3}}, "GMMDaDiL.n_iter"),
        ("trajectories", {"DaDiL-R": {"n_epochs": 3}}, "DaDiL-R.n_epochs"),
        ("trajectories", {"DaDiL-R": {"classifier": None}}, "DaDiL-R.classifier"),
    ],
)
def test_settings_that_an_ablation_would_ignore_are_refused(suite, settings, setting, tmp_path):
    with pytest.raises(ValueError, match=rf"settings: .*'{suite}' .*{setting}"):
        benchmark.run(suite, None, 1, tmp_path, data="toy", rows=40, settings=settings)
    targets = ["source 1", "target"]
    with pytest.raises(ValueError, match=r"targets must .*got source 1, target"):
        benchmark.run(suite, None, 1, tmp_path, data="toy", rows=40, targets=targets)
