"""A user's own tables: the same four samples in every layout."""

import numpy as np
import pytest

from mixda import MixdaError
from mixda.datasets import load_domains
from mixda.workflow import fit_files

pytest.importorskip("pyarrow", reason="tables need pyarrow")

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
STATES = np.array(["ok", "worn", "worn", "ok"])
PLACES = np.array(["lab", "lab", "plant", "plant"])


def _csv(path, rows, columns=("speed", "load", "state", "place")):
    table = {"speed": X[:, 0], "load": X[:, 1], "state": STATES, "place": PLACES}
    lines = [",".join(str(table[name][row]) for name in columns) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")


def _check(data):
    np.testing.assert_array_equal(data.X, X)
    assert data.domain_names == ("lab", "plant")
    assert data.class_names == ("ok", "worn")
    np.testing.assert_array_equal(data.y, [0, 1, 1, 0])
    np.testing.assert_array_equal(data.domain, [0, 0, 1, 1])


def test_a_csv_per_domain_even_with_columns_in_another_order(tmp_path):
    _csv(tmp_path / "lab.csv", [0, 1], ("speed", "load", "state"))
    _csv(tmp_path / "plant.csv", [2, 3], ("state", "load", "speed"))
    _check(load_domains(tmp_path, label="state"))


def test_a_folder_of_files_per_domain(tmp_path):
    _csv(tmp_path / "lab" / "monday.csv", [0], ("speed", "load", "state"))
    _csv(tmp_path / "lab" / "tuesday.csv", [1], ("speed", "load", "state"))
    _csv(tmp_path / "plant" / "1.csv", [2, 3], ("speed", "load", "state"))
    _check(load_domains(tmp_path, label="state"))


def test_one_csv_or_several_with_a_domain_column(tmp_path):
    _csv(tmp_path / "all.csv", range(4))
    _check(load_domains(tmp_path / "all.csv", label="state", domain="place"))
    _csv(tmp_path / "parts" / "1.csv", [0, 1, 2])
    _csv(tmp_path / "parts" / "2.csv", [3])
    _check(load_domains(tmp_path / "parts", label="state", domain="place"))


def test_usual_names_are_found(tmp_path):
    rows = [f"{a},{b},{s},{p}" for (a, b), s, p in zip(X, STATES, PLACES, strict=True)]
    (tmp_path / "all.csv").write_text("\n".join(["speed,load,Class,Domain", *rows]))
    _check(load_domains(tmp_path / "all.csv"))


def test_parquet(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = {"speed": X[:, 0], "load": X[:, 1], "label": STATES, "domain": PLACES}
    parquet.write_table(pa.table(table), tmp_path / "all.parquet")
    _check(load_domains(tmp_path / "all.parquet"))


def test_npz_alone_or_one_per_domain(tmp_path):
    codes, places = np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
    names = {"doms": ["lab", "plant"], "cls": ["ok", "worn"]}
    np.savez(tmp_path / "codes.npz", X=X, y=codes, d=places, **names)
    _check(load_domains(tmp_path / "codes.npz"))
    np.savez(tmp_path / "names.npz", X=X, y=STATES, d=PLACES)
    _check(load_domains(tmp_path / "names.npz"))
    (tmp_path / "each").mkdir()
    for place in ("lab", "plant"):
        rows = place == PLACES
        np.savez(tmp_path / "each" / f"{place}.npz", X=X[rows], y=STATES[rows])
    _check(load_domains(tmp_path / "each"))


def _npz(path, **changes):
    codes, places = np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
    names = {"doms": ["lab", "plant"], "cls": ["ok", "worn"]}
    np.savez(path, **{"X": X, "y": codes, "d": places, **names, **changes})
    return path


def test_npz_with_names_of_domains_may_hold_names_of_classes(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=STATES, d=[0, 0, 1, 1], doms=["lab", "plant"])
    _check(load_domains(tmp_path / "a.npz"))
    _check(load_domains(_npz(tmp_path / "b.npz", d=PLACES)))
    with pytest.raises(ValueError, match=r"c\.npz: 'moon' .*lab, plant"):
        load_domains(_npz(tmp_path / "c.npz", d=["lab", "lab", "plant", "moon"]))


def test_npz_takes_the_options_of_a_table(tmp_path):
    path = _npz(tmp_path / "a.npz", X=np.where(X == 6.0, np.nan, X), feature_names=["a", "b"])
    with pytest.raises(ValueError, match=r"a\.npz: X .*NaN"):
        load_domains(path)
    left = load_domains(path, missing="drop")
    np.testing.assert_array_equal(left.X, X[:3])
    assert (left.domain.tolist(), left.y.tolist()) == ([0, 0, 1], [0, 1, 1])
    for options in ({"drop": ["a"]}, {"features": ["b"]}):
        data = load_domains(path, **options)
        np.testing.assert_array_equal(data.X, X[:, 1:])
        assert (data.domain_names, data.feature_names) == (("lab", "plant"), ("b",))
    with pytest.raises(ValueError, match=r"a\.npz has no column 'c'.* a, b"):
        load_domains(path, drop=["c"])
    series = _npz(tmp_path / "b.npz", X=np.zeros((4, 3, 5)))
    with pytest.raises(ValueError, match=r"samples of shape \(3, 5\)"):
        load_domains(series, drop=["x0"])


def test_features_keep_their_names(tmp_path):
    _csv(tmp_path / "all.csv", range(4))
    data = load_domains(tmp_path / "all.csv", label="state", domain="place")
    assert data.feature_names == ("speed", "load")
    _csv(tmp_path / "each" / "lab.csv", [0, 1], ("speed", "load", "state"))
    _csv(tmp_path / "each" / "plant.csv", [2, 3], ("load", "speed", "state"))
    assert load_domains(tmp_path / "each", label="state").feature_names == ("speed", "load")


def test_features_are_chosen_or_dropped(tmp_path):
    _csv(tmp_path / "all.csv", range(4))
    options = {"label": "state", "domain": "place"}
    chosen = load_domains(tmp_path / "all.csv", **options, features=["load"])
    dropped = load_domains(tmp_path / "all.csv", **options, drop=["speed"])
    np.testing.assert_array_equal(chosen.X, X[:, 1:])
    np.testing.assert_array_equal(dropped.X, X[:, 1:])


def test_rows_with_a_missing_value_are_refused_or_left_out(tmp_path):
    for name in ("lab", "plant"):
        (tmp_path / f"{name}.csv").write_text("a,label\n1,x\n,y\n2,y\n")
    with pytest.raises(ValueError, match=r"lab\.csv: column 'a' has no value in row 2"):
        load_domains(tmp_path)
    with pytest.warns(UserWarning, match=r"left out because a value is missing: 1 of .*lab\.csv"):
        kept = load_domains(tmp_path, missing="drop")
    assert kept.X.ravel().tolist() == [1, 2, 1, 2]


def test_dots_in_a_name_belong_to_the_domain(tmp_path):
    for name in ("v1.5", "v1.6"):
        (tmp_path / f"{name}.csv").write_text("a,label\n1,x\n")
    assert load_domains(tmp_path).domain_names == ("v1.5", "v1.6")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, r"all\.csv has no column named label or .*\(label=… in Python, --label"),
        ({"label": "state"}, r"all\.csv has no column named domain or domains"),
        ({"label": "condition", "domain": "place"}, "has no column 'condition'"),
    ],
)
def test_columns_that_are_not_there(tmp_path, options, sentence):
    _csv(tmp_path / "all.csv", range(4))
    with pytest.raises(ValueError, match=sentence):
        load_domains(tmp_path / "all.csv", **options)


def test_files_that_do_not_fit_together(tmp_path):
    _csv(tmp_path / "lab.csv", [0, 1], ("speed", "load", "state"))
    _csv(tmp_path / "plant.csv", [2, 3], ("speed", "state"))
    with pytest.raises(ValueError, match=r"plant\.csv has no column 'load'"):
        load_domains(tmp_path, label="state")
    (tmp_path / "plant.csv").unlink()
    np.savez(tmp_path / "lab.npz", speed=1)
    with pytest.raises(ValueError, match=r"lab\.npz has no array X"):
        load_domains(tmp_path, label="state")
    with pytest.raises(ValueError, match=r"path .*nothing does not exist"):
        load_domains(tmp_path / "nothing")


def test_two_tables_of_one_name_are_refused(tmp_path):
    _csv(tmp_path / "lab.csv", [0, 1], ("speed", "load", "state"))
    _csv(tmp_path / "lab.txt", [2, 3], ("speed", "load", "state"))
    with pytest.raises(ValueError, match=r"same name \(lab\.csv, lab\.txt\)"):
        load_domains(tmp_path, label="state")


def test_classes_whose_rows_become_components_are_noted(tmp_path):
    path = tmp_path / "lab.csv"
    rows = [f"{0.1 * i},{i % 3},ok" for i in range(9)] + ["9,9,worn"]
    path.write_text("\n".join(["a,b,state", *rows]))
    with pytest.raises(MixdaError, match=r"worn.*min_component_rows"):
        fit_files(path, "state")
    found = fit_files(path, "state", allow_exposed_rows=True)["lab"]
    assert (found.means == [9.0, 9.0]).all(axis=1).any()  # the very row
