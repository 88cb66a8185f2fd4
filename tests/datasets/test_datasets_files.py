"""Loaders of the published feature sets: counts of the data's README, and files gone wrong."""

import functools
import os
from pathlib import Path

import numpy as np
import pytest

from mixda._core.errors import MixdaError
from mixda.datasets import (
    PUBLISHED,
    load_cstr,
    load_cwru,
    load_digits4,
    load_domains,
    load_gas_drift,
    load_office31,
    load_office_caltech,
    load_published,
)
from mixda.datasets.cwru import FILE as CWRU


def marks(name):
    """Marks of a test that reads a real file."""
    home = os.environ.get("MIXDA_DATA")
    here = bool(home) and (Path(home) / name).is_file()
    return [
        pytest.mark.data,
        pytest.mark.skipif(not here, reason=f"set MIXDA_DATA to a folder with {name}"),
    ]


def real(name):
    return lambda test: functools.reduce(lambda f, mark: mark(f), marks(name), test)


OFFICE = {"amazon": 958, "caltech10": 1123, "dslr": 157, "webcam": 295}
DIGITS = {"mnist": 2000, "usps": 1800, "optdigits": 1797, "semeion": 1593}
FILES = {
    "cstr": (load_cstr, {}, "cstr_acf.npz"),
    "digits4": (load_digits4, {}, "digits4_16x16.npz"),
    "gas": (load_gas_drift, {}, "gas_drift_8batches.npz"),
    "efficientnet": (load_office_caltech, {}, "office_caltech10_efflite2.npz"),
    "surf": (load_office_caltech, {"features": "surf"}, "office_caltech10_surf.npz"),
}


@pytest.mark.parametrize(
    ("load", "arguments", "n_features", "counts"),
    [
        pytest.param(
            load_office_caltech, (features,), d, OFFICE, id=features, marks=marks(f"{name}.npz")
        )
        for features, d, name in (
            ("efficientnet", 1280, "office_caltech10_efflite2"),
            ("inception", 2048, "office_caltech10_inceptionv3"),
            ("surf", 800, "office_caltech10_surf"),
        )
    ]
    + [pytest.param(load_digits4, (), 256, DIGITS, id="digits4", marks=marks(FILES["digits4"][2]))],
)
def test_real_counts(load, arguments, n_features, counts):
    data = load(*arguments)
    assert data.X.dtype == np.float64
    assert data.X.shape == (sum(counts.values()), n_features)
    assert dict(zip(data.domain_names, np.bincount(data.domain), strict=True)) == counts
    assert len(data.class_names) == 10
    for domain in data.domain_names:  # every class in every domain
        assert set(data.samples_of(domain)[1]) == set(range(10))


# rows per domain and number of classes, from the README of the data folder
PUBLISHED_COUNTS = {
    "office31_efficientnet": ([2817, 498, 795], 31),
    "heart_disease": ([303, 294, 123, 200], 2),
    "music_genre": ([1000] * 5, 10),
    "music_speech": ([128] * 5, 2),
    "hydraulic": ([732, 732, 741], 3),
    "electricity": ([1500] * 6, 2),
    "adult": ([1500, 1500, 1116, 1500, 1298, 960], 2),
    "defects": ([324, 997, 691, 1500, 1497], 2),
    "youtube_spam": ([349, 348, 340, 412, 331], 2),
    "citation": ([1500] * 3, 5),
    "sugarcane": ([180, 60, 60, 60], 3),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks(entry.file)) for name, entry in PUBLISHED.items()]
)
def test_published(name):
    data = load_published(name)
    assert np.isfinite(data.X).all()
    assert len(data.description) > 20
    assert (data.block is None) == (PUBLISHED[name].block == "")
    if name in PUBLISHED_COUNTS:
        counts, n_classes = PUBLISHED_COUNTS[name]
        assert np.bincount(data.domain).tolist() == counts
        assert len(data.class_names) == n_classes


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=marks(PUBLISHED[name].file))
        for name in ("music_genre", "music_speech", "sugarcane")
    ],
)
def test_block_is_the_sample(name):
    data = load_published(name)
    for block in np.unique(data.block):  # an object has the same class in every domain
        rows = data.block == block
        assert len(np.unique(data.y[rows])) == 1
        assert set(data.domain[rows]) == set(range(len(data.domain_names)))


@real("office31_efflite2.npz")
def test_office31_features():
    data = load_office31(features="efficientnet")
    assert data.X.shape == (4110, 1280)
    assert data.domain_names == ("amazon", "dslr", "webcam")
    np.testing.assert_array_equal(data.X, load_published("office31_efficientnet").X)


def test_published_names(tmp_path):
    with pytest.raises(MixdaError, match=r"name .*'heart_disease'.*'hearts'"):
        load_published("hearts")
    with pytest.raises(MixdaError, match=r"features .*'efficientnet'.*'resnet'"):
        load_office31(features="resnet")
    with pytest.raises(MixdaError, match=r"features='efficientnet' .*path"):
        load_office31(tmp_path, features="efficientnet")


@pytest.mark.parametrize("features", ["efficientnet", "surf"])
@real("office_caltech10_surf.npz")
def test_all_feature_sets_of_office_caltech_name_the_same_classes(features):
    data = load_office_caltech(features)
    y = data.samples_of("amazon")[1]
    # images per class of amazon in Office-Caltech10, in alphabetical order
    assert np.bincount(y).tolist() == [92, 82, 94, 99, 100, 100, 99, 100, 94, 98]
    assert data.class_names == tuple(sorted(data.class_names))
    assert data.class_names[1] == "bike"


@real(FILES["gas"][2])
def test_gases_have_the_names_and_the_counts_of_uci():
    data = load_gas_drift()
    assert data.X.shape == (6697, 128)
    counts = dict(zip(data.class_names, np.bincount(data.samples_of("batch1")[1]), strict=True))
    # first row of the table in the UCI description (Vergara et al. 2012)
    assert counts == {
        **{"ethanol": 90, "ethylene": 98, "ammonia": 83},
        **{"acetaldehyde": 30, "acetone": 70, "toluene": 74},
    }
    absent = [d for d in data.domain_names if 5 not in data.samples_of(d)[1]]
    assert absent == ["batch3", "batch4", "batch5"]


@real(FILES["cstr"][2])
def test_the_reactor_has_thirteen_balanced_classes():
    data = load_cstr()
    assert data.X.shape == (1300 + 6 * 260, 14)
    counts = [np.bincount(data.samples_of(k)[1]).tolist() for k in range(7)]
    assert counts == [[100] * 13] + [[20] * 13] * 6


@real(CWRU)
def test_real_loads_1_2_3_have_nine_faults():
    data = load_cwru(loads=(1, 2, 3))
    assert data.domain_names == ("1772 rpm", "1750 rpm", "1730 rpm")
    assert len(data.class_names) == 9
    assert "Normal" not in data.class_names
    assert len(set(np.bincount(data.domain * 9 + data.y))) == 1


# --- files gone wrong -------------------------------------------------------------------------


def _write(path, **changes):
    arrays = {
        "X": np.arange(24, dtype=np.float16).reshape(4, 2, 3),
        "y": np.array([0, 1, 0, 1], np.int8),
        "d": np.array([0, 0, 1, 1], np.int8),
        "doms": np.array(["here", "there"]),
        **changes,
    }
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize("kind", FILES)
def test_every_loader_reads_the_common_layout(kind, tmp_path):
    load, arguments, name = FILES[kind]
    _write(tmp_path / name, cls=np.array(["no", "yes"]))
    data = load(**arguments, data_home=tmp_path)
    np.testing.assert_array_equal(data.X, np.arange(24.0).reshape(4, 6))
    assert data.sample_shape == (2, 3)
    assert data.class_names == ("no", "yes")
    assert data.domain_names == ("here", "there")


@pytest.mark.parametrize("kind", FILES)
def test_missing_file(kind, tmp_path):
    load, arguments, name = FILES[kind]
    with pytest.raises(ValueError, match=f"{name} does not exist"):
        load(**arguments, data_home=tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"doms": None, "d": None}, r"lacks the array\(s\) d, doms; .*X, y"),
        ({"y": np.array([0.0, 1.0, 0.0, 1.0])}, "integer codes or names y"),
        ({"y": np.array([0, 1])}, r"y int64 \(2,\)"),
        ({"X": np.zeros(4)}, r"X float64 \(4,\)"),
        ({"d": np.array([0, 0, 1, 2])}, "domain must hold codes from 0 to 1"),
        ({"X": np.full((4, 2), np.nan)}, "X contains NaN"),
        ({"X": np.array([[object()]] * 4)}, "not a readable npz file"),
        ({"cls": np.array(["only one"])}, "y must hold codes from 0 to 0"),
    ],
)
def test_foreign_arrays_are_refused_with_the_name_of_the_file(changes, sentence, tmp_path):
    path = tmp_path / "cstr_acf.npz"
    _write(path, **changes)
    with pytest.raises(ValueError, match=sentence) as error:
        load_cstr(tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "flipped", "npy"])
@pytest.mark.parametrize(
    ("load", "name", "array"), [(load_cstr, "cstr_acf.npz", "X"), (load_cwru, CWRU, "B007_load0")]
)
def test_damaged_files_are_refused_with_a_sentence(damage, load, name, array, tmp_path):
    path = tmp_path / name
    _write(path, **{f"B007_load{hp}": np.arange(99.0) for hp in (0, 1, 3)})
    whole = path.read_bytes()
    if damage == "npy":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        middle = whole.index(f"{array}.npy".encode()) + 200
        flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
        contents = {"empty": b"", "text": b"a,b\n1,2\n", "cut": whole[:700], "flipped": flipped}
        path.write_bytes(contents[damage])
    with pytest.raises(ValueError, match="not a readable npz file") as error:
        load(data_home=tmp_path)
    assert str(path) in str(error.value)


def test_a_file_without_records_is_not_cwru(tmp_path):
    _write(tmp_path / CWRU)
    with pytest.raises(ValueError, match="has no class with a record at each of the loads"):
        load_cwru(data_home=tmp_path)


def test_unknown_features_are_answered_with_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match="features must be one of 'efficientnet', 'inception'"):
        load_office_caltech("decaf", data_home=tmp_path)


def test_a_file_of_the_plant_keeps_its_runs_and_axes_as_own_data(tmp_path):
    runs = np.array([0, 0, 1, 1])
    _write(tmp_path / "mine.npz", y=np.array([0, 6, 0, 6]), run=runs, idv_magnitude=np.ones(4))
    data = load_domains(tmp_path / "mine.npz")
    np.testing.assert_array_equal(data.block, runs)
    assert data.sample_shape == (3, 2)  # variables first, as networks take them
    np.testing.assert_array_equal(data.X[0], [0, 3, 1, 4, 2, 5])
    assert data.class_names == ("normal", "IDV 6")
    with pytest.raises(ValueError, match=r"samples of shape \(2, 3\)"):
        load_domains(tmp_path / "mine.npz", drop=["x0"])
