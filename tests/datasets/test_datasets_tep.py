"""Tennessee Eastman: the loader on a file that a test can check by hand, and the simulator."""

import functools
import os
from pathlib import Path

import joblib
import numpy as np
import pytest

from mixda._core.errors import MixdaError
from mixda.datasets import generate_tep, join_tep, load_tep, tep_simulation
from mixda.datasets.tep import FILE


def real(test):
    home = os.environ.get("MIXDA_DATA")
    here = bool(home) and (Path(home) / FILE).is_file()
    reason = f"set MIXDA_DATA to a folder with {FILE}"
    return pytest.mark.data(pytest.mark.skipif(not here, reason=reason)(test))


@pytest.fixture
def small(tmp_path):
    """Two modes, two faults, three runs; three variables of five steps, the second constant."""
    shape = (2, 3, 2)
    d, run, y = (index.ravel() for index in np.indices(shape))
    X = np.arange(12 * 5 * 3, dtype=np.float16).reshape(12, 5, 3)
    X[:, :, 1] = 7.0
    arrays = {"X": X, "y": 4 * y, "d": d, "run": run, "doms": np.array(["mode1", "mode3"])}
    np.savez(tmp_path / FILE, **arrays)
    return tmp_path, arrays


def test_series_are_rows_with_variables_first(small):
    home, arrays = small
    data = load_tep(data_home=home)
    assert data.sample_shape == (3, 5)
    series = data.X.reshape(12, 3, 5)
    np.testing.assert_array_equal(series[7, 2], arrays["X"][7, :, 2])
    assert data.class_names == ("normal", "IDV 4")
    np.testing.assert_array_equal(data.y, arrays["y"] // 4)
    np.testing.assert_array_equal(data.block, arrays["run"])
    np.testing.assert_array_equal(data.domain, arrays["d"])


def test_moments_are_means_then_deviations_of_what_changes(small):
    home, arrays = small
    data = load_tep("moments", data_home=home)
    kept = arrays["X"].astype(float)[:, :, [0, 2]]
    np.testing.assert_allclose(data.X[:, :2], kept.mean(axis=1))
    # five values at distance 3 have variance 3² · 2
    np.testing.assert_allclose(data.X[:, 2:], np.sqrt(18.0))


def test_modes_and_runs_can_be_chosen(small):
    home, arrays = small
    data = load_tep(modes=[3], n_runs=2, data_home=home)
    rows = (arrays["d"] == 1) & (arrays["run"] < 2)
    np.testing.assert_array_equal(data.X.reshape(-1, 3, 5)[:, 0], arrays["X"][rows][:, :, 0])
    assert data.domain_names == ("mode3",)
    turned = load_tep(modes=[3, 1], data_home=home)
    assert turned.domain_names == ("mode3", "mode1")
    np.testing.assert_array_equal(turned.samples_of("mode1")[0], load_tep(data_home=home).X[:6])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"modes": [2]}, "mode1, mode3"),
        ({"modes": [1, 1]}, "modes must"),
        ({"modes": []}, "modes must"),
        ({"n_runs": 0}, "n_runs must be a positive integer"),
        ({"representation": "spectrum"}, "representation must be one of 'series', 'moments'"),
        ({"path": "no.npz"}, "no.npz does not exist.*generate_tep"),
    ],
)
def test_wrong_arguments(small, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        load_tep(**arguments, data_home=small[0])


def test_a_foreign_file_is_refused(tmp_path):
    np.savez(tmp_path / FILE, X=np.zeros((2, 3)), y=[0, 1], d=[0, 1], run=[0, 0], doms=["a", "b"])
    with pytest.raises(ValueError, match="\\(2, 3\\)"):
        load_tep(data_home=tmp_path)
    with pytest.raises(ValueError, match=f"{FILE} does not exist"):
        load_tep(data_home=tmp_path / "elsewhere")


@real
def test_the_real_runs_are_balanced_and_split_by_run():
    data = load_tep("moments")
    assert data.X.shape == (1566, 2 * 31)  # variables 26, 30 and 33 are constant
    assert data.domain_names == tuple(f"mode{k}" for k in range(1, 7))
    assert set(np.bincount(data.domain * 29 + data.y)) == {9}
    assert set(data.block) == set(range(9))
    assert data.class_names[:2] == ("normal", "IDV 1")


@real
def test_the_fully_convolutional_network_takes_the_real_series():
    torch = pytest.importorskip("torch", reason="needs torch")
    from mixda.deep import FCNBackbone

    data = load_tep(modes=[1], n_runs=1)
    assert data.sample_shape == (34, 300)
    inputs = torch.tensor(data.X[:2].reshape(-1, *data.sample_shape), dtype=torch.float32)
    assert FCNBackbone(34)(inputs).shape == (2, 128)
    # z-scores over the whole file: one mode has about that size
    assert 0.5 < data.X.std() < 1.5


# --- the simulator ----------------------------------------------------------------------------


@pytest.fixture
def generate(tmp_path):
    pytest.importorskip("tep_studio", reason="needs the tep extra")
    settings = {"n_runs": 1, "modes": [1], "faults": [0, 7], "hours": 0.5, "burn_in": 0.2}
    return functools.partial(generate_tep, tmp_path / "new" / "tep.npz", **settings)


def test_generated_runs_have_the_layout_of_the_real_file(generate):
    path = generate()
    data = load_tep(path=path)
    assert data.sample_shape == (34, 5)
    assert (data.domain_names, data.class_names) == (("mode1",), ("normal", "IDV 7"))
    with np.load(path) as file:
        keys = {"X", "mu", "sd", "y", "d", "run", "idv_magnitude", "doms"}
        assert set(file.files) == keys
        assert file["idv_magnitude"].tolist() == [0.0, 1.0]
        raw = file["X"] * file["sd"] + file["mu"]
    # at the base case the reactor is at 2705 kPa and 120.4 °C (Downs and Vogel 1993)
    np.testing.assert_allclose(raw[0, :, 6], 2705.0, atol=15.0)
    np.testing.assert_allclose(raw[0, :, 8], 120.4, atol=0.5)
    # IDV 7, less pressure of C: the controller opens the valve of stream 4, at 61 % without fault
    assert raw[0, 0, 25] < 65.0 < 70.0 < raw[1, 0, 25]
    assert raw.std(axis=1)[0, 0] > 0.0  # the noise is on


def test_an_interrupted_generation_continues_and_repeats_nothing(generate):
    path = generate()
    cells = sorted((path.parent / "tep-cells").glob("*_idv*"))
    assert len(cells) == 2
    whole, kept = path.read_bytes(), cells[0].stat().st_mtime_ns
    cells[1].unlink()
    path.unlink()
    generate()
    assert cells[0].stat().st_mtime_ns == kept
    # a run is a function of its settings alone: made again, apart from the other, it is the same
    assert path.read_bytes() == whole
    assert cells[1].exists()


def test_more_runs_are_added_in_parallel_and_all_differ(generate):
    one = load_tep(path=generate(hours=0.1, burn_in=0.0))
    assert one.block.tolist() == [0, 0]
    with joblib.parallel_config("threading"):  # processes would take seconds to start
        two = load_tep(path=generate(hours=0.1, burn_in=0.0, n_runs=2, n_jobs=2))
    assert two.block.tolist() == [0, 0, 1, 1]
    assert len(np.unique(two.X, axis=0)) == 4


def test_a_fault_that_trips_the_plant_is_made_weaker(generate, monkeypatch):
    # without any A feed (IDV 6 at full size) mode 3 trips after some nine hours
    monkeypatch.setitem(tep_simulation.FIRST_MAGNITUDE, 6, 1.0)
    path = generate(modes=[3], faults=[6], hours=12, burn_in=0)
    with np.load(path) as file:
        assert file["idv_magnitude"].tolist() == [0.25]
        assert file["X"].shape == (1, 120, 34)


def test_a_weak_fault_is_still_a_fault(generate):
    """IDV 6 has magnitude 0.25, which the simulator rounds to 0 unless it is told not to."""
    path = generate(modes=[1], faults=[0, 6], hours=1, burn_in=0)
    with np.load(path) as file:
        assert file["idv_magnitude"].tolist() == [0.0, 0.25]
        assert not np.array_equal(file["X"][0], file["X"][1])


def test_hours_before_the_fault_are_shared_and_not_simulated_again(generate, monkeypatch):
    without = load_tep(path=generate()).X.reshape(2, 34, 5)
    monkeypatch.setattr(tep_simulation, "_simulate", None)  # the burn-in was stored
    path = generate(before=0.2)
    with np.load(path) as file:
        raw = file["X"] * file["sd"] + file["mu"]
    assert raw.shape == (2, 7, 34)
    np.testing.assert_array_equal(raw[0, :2], raw[1, :2])
    assert not np.array_equal(raw[0, 2:], raw[1, 2:])
    with np.load(generate()) as file:
        np.testing.assert_array_equal(file["X"].transpose(0, 2, 1), without)
    with pytest.raises(ValueError, match="before must"):
        generate(before=0.3)


def test_a_fault_without_effect_is_reported(generate, monkeypatch):
    # the plant's own case, IDV 14 in modes 2 and 5, needs 70 hours: here IDV 7 has no effect
    advance = tep_simulation._Plant.advance
    monkeypatch.setattr(
        tep_simulation._Plant,
        "advance",
        lambda plant, hours, fault, magnitude: advance(
            plant, hours, 0 if fault == 7 else fault, 1.0
        ),
    )
    with pytest.warns(UserWarning, match=r"IDV 7 in mode 1 \(1 of 1 runs\)") as caught:
        generate(faults=[0, 3, 7])
    assert "IDV 3" not in str(caught[0].message)


def test_a_plant_that_always_trips_is_given_up(generate, monkeypatch):
    advance = tep_simulation._Plant.advance
    monkeypatch.setattr(
        tep_simulation._Plant,
        "advance",
        lambda plant, hours, fault, magnitude: (
            advance(plant, hours, 0, 0.0) if hours == 0 else None
        ),
    )
    with pytest.raises(ValueError, match=r"mode 1, run 0, .*fault 0"):
        generate(burn_in=0.0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"modes": [0]}, "modes must .*1 to 6"),
        ({"faults": [29]}, "faults must .*0 to 28"),
        ({"faults": []}, "faults must"),
        ({"hours": 0}, "hours must be a positive number of at least 0.1"),
        ({"n_runs": 0}, "n_runs must be a positive integer"),
    ],
)
def test_wrong_settings(generate, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        generate(**arguments)


def test_a_file_from_elsewhere_is_never_overwritten(small):
    path = small[0] / FILE
    before = path.read_bytes()
    with pytest.raises(ValueError, match="generate_tep did not"):
        generate_tep(path, n_runs=1, modes=[1], faults=[0], hours=0.1, burn_in=0)
    assert path.read_bytes() == before


def test_joined_files(tmp_path):
    """The original units come back, and runs are numbered on."""
    rng = np.random.default_rng(0)
    raw, files = [], []
    for k, (n, offset) in enumerate(((4, 0.0), (6, 20.0))):
        X = (offset + rng.normal(size=(n, 5, 3))).astype(np.float32)
        X[:, :, 2] = 7.0  # constant
        y, run = np.tile([0, 6], n // 2), np.repeat(np.arange(n // 2), 2)
        arrays = {"y": y, "d": np.zeros(n), "run": run, "idv_magnitude": np.ones(n)}
        files.append(tmp_path / f"{k}.npz")
        tep_simulation._write_runs(files[k], X, doms=np.array(["mode1"]), **arrays)
        raw.append(X)
    path = join_tep(tmp_path / "new" / FILE, files)
    with np.load(path) as file:
        joined = file["X"] * file["sd"] + file["mu"]
        assert file["run"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
        assert file["sd"][2] == 1.0
    np.testing.assert_allclose(joined, np.concatenate(raw), atol=0.02)  # X is float16
    assert load_tep(path=path).class_names == ("normal", "IDV 6")
    tep_simulation._write_runs(files[1], raw[1], doms=np.array(["mode2"]), **arrays)
    with pytest.raises(MixdaError, match="same modes"):
        join_tep(path, files)
    with pytest.raises(MixdaError, match="files"):
        join_tep(path, [])
