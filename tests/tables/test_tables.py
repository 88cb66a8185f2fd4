"""Tables: pandas writes the files and is the oracle; errors name the file, column and row."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from mixda import MixdaError
from mixda.tables import class_names, expand_paths, open_table, write_table
from mixda.workflow import check
from mixda.workflow._inputs import Reading, open_inputs
from mixda.workflow._labels import LabelColumns

from ..strategies import damaged


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "speed": rng.normal(size=50),
            "load": rng.integers(0, 9, 50),
            "on": rng.random(50) > 0.5,
            "state": rng.choice(["ok", "worn", "broken"], 50),
            "site": rng.choice([3, 7], 50),
        }
    )


def write(frame, path, **options):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".npz":
        X = frame[["speed", "load", "on"]].to_numpy(np.float64)
        names = np.array(["speed", "load", "on"])
        arrays = {"y": frame["state"].to_numpy(str), "d": frame["site"].to_numpy()}
        np.savez(path, X=X, feature_names=names, **arrays)
    else:
        frame.to_csv(path, index=False, **options)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("rows", [7, 1000])
def test_reads_what_pandas_wrote(tmp_path, frame, suffix, rows):
    path = write(frame, tmp_path / f"a{suffix}")
    label, domain = ("y", "d") if suffix == ".npz" else ("state", "site")
    samples = open_table(path).read(label=label, domain=domain, rows=rows)
    assert samples.feature_names == ("speed", "load", "on")
    np.testing.assert_array_equal(
        samples.X, frame[["speed", "load", "on"]].to_numpy(np.float64)
    )  # csv too: both sides write and read the shortest decimal that is exact
    assert samples.y.tolist() == frame["state"].tolist()
    assert samples.domain.tolist() == frame["site"].astype(str).tolist()
    assert samples.rows.tolist() == list(range(1, 51))
    assert samples.dropped == {}


@pytest.mark.parametrize(
    "options",
    [
        {"sep": ";"},
        {"sep": ";", "decimal": ","},
        {"sep": "\t"},
        {"sep": "|"},
        {"encoding": "utf-8-sig"},
        {"encoding": "latin-1"},
        {"encoding": "utf-16"},
        {"sep": ";", "encoding": "utf-16", "decimal": ","},
        {"lineterminator": "\r\n"},
        {"quoting": 1},
    ],
    ids=str,
)
def test_csv_dialects(tmp_path, frame, options):
    frame = frame.rename(columns={"state": "état"}).replace({"worn": "usé, très"})
    path = write(frame, tmp_path / "a.csv", **options)
    samples = open_table(path).read(features=["load", "speed"], label="état")
    np.testing.assert_array_equal(samples.X, frame[["load", "speed"]].to_numpy(np.float64))
    assert samples.y.tolist() == frame["état"].tolist()


def test_gzip_and_pandas_index(tmp_path, frame):
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wt") as file:
        frame.to_csv(file)  # writes the index as a column without a name
    assert open_table(path).columns == tuple(frame.columns)


def test_whitespace_is_stripped(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a , b,state \n1, 2, ok\n3,4 ,worn\n")
    samples = open_table(path).read(label="state")
    assert samples.feature_names == ("a", "b")
    assert samples.y.tolist() == ["ok", "worn"]


def test_decimal_sign_of_the_majority(tmp_path):
    path = tmp_path / "a.csv"
    late = "1;2;2.1\n" * 500 + "1,5;2,5;2.1\n" * 1000
    path.write_text("a;b;firmware\n" + late)
    with pytest.warns(UserWarning, match=r"'firmware' .*'2\.1' in row 1.*','"):
        samples = open_table(path).read()
    assert samples.feature_names == ("a", "b")
    np.testing.assert_array_equal(samples.X[-1], [1.5, 2.5])
    path.write_text("a;b;code\n" + "1.5;2.5;2,1\n" * 3)
    with pytest.warns(UserWarning, match="'code'"):
        assert open_table(path).read().X.tolist() == [[1.5, 2.5]] * 3


SLIPS = {
    "ERR": "'ERR' in row 3.*--missing drop.*--drop",
    "0.5 g": "'0.5 g' in row 3",
    '"7,665.4"': r"'7,665\.4' in row 3.*'\.'.*thousands",
    "1 070": "'1 070' in row 3.*thousands",
    "1'070": "in row 3.*thousands",
    '"1,5"': r"'1,5' in row 3.*'\.'",
}


@pytest.mark.parametrize("cell", SLIPS)
def test_mistyped_cell(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text(f"a,b\n1.5,2\n2.5,3\n{cell},4\n3.5,5\n")
    with pytest.raises(MixdaError, match=f"a.csv: column 'a' .*{SLIPS[cell]}"):
        open_table(path).read()
    assert open_table(path).read(drop=["a"]).feature_names == ("b",)
    assert open_table(path).read(["b"]).feature_names == ("b",)


def test_mistyped_cell_in_parquet_or_far_down(tmp_path):
    frame = pd.DataFrame({"a": ["1.5", "2.5", None, "ERR"], "b": 1.0, "id": ["07", "08", "9", "9"]})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(MixdaError, match=r"column 'a' .*'ERR' in row 4"):
        open_table(tmp_path / "a.parquet").read()
    frame.assign(a=["1.5"] * 4).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(MixdaError, match=r"'a' .*store it as numbers"):
        open_table(tmp_path / "a.parquet").read()
    with pytest.warns(UserWarning, match="'id' .*--drop"):
        assert open_table(tmp_path / "a.parquet").read(drop=["a"]).feature_names == ("b",)
    (tmp_path / "a.csv").write_text("a,b\n" + "1,2\n" * 100_000 + "ERR,2\n")
    with pytest.raises(MixdaError, match=r"column 'a' .*'ERR' in row 100001"):
        open_table(tmp_path / "a.csv").read()


def test_number_sign_in_names_and_cells(tmp_path):
    for text in ("#a,b\n1,2\n", "#a,b\n#1,2\n", "a,b\n#1,2\n"):
        (tmp_path / "a.csv").write_text(text)
        assert open_table(tmp_path / "a.csv").read().X[0, -1] == 2


def test_sources_of_one_name(tmp_path):
    folders = [tmp_path / "site1", tmp_path / "site2"]
    for folder in (*folders, tmp_path / "goal"):
        folder.mkdir()
        (folder / "data.csv").write_text("x,state\n1.5,ok\n2.5,no\n3.5,ok\n")
    reading, target = Reading(LabelColumns("state")), tmp_path / "goal"
    with pytest.raises(MixdaError, match=r"'data'.*folder"):
        open_inputs([folder / "data.csv" for folder in folders], target, reading)
    assert list(open_inputs(folders, target, reading).sources) == ["site1", "site2"]


def test_mistyped_cell_in_every_domain(tmp_path):
    for name in "abt":
        (tmp_path / f"{name}.csv").write_text("x,y,state\n1,2,ok\nERR,3,no\n2,4,ok\n")
    sources, target = [tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "t.csv"
    with pytest.raises(MixdaError, match=r"a.csv: column 'x' .*'ERR' in row 2"):
        check(sources, target, "state").raise_for_blockers()
    report = check(sources, target, "state", drop=["x"])
    assert report.encoding.feature_names == ("y",)


def test_text_does_not_warn(tmp_path, recwarn):
    path = tmp_path / "a.csv"
    row = "1.5,A17,2024-01-01 00:00:00,01.02.2024,12:30,1.2.3,ok,\n"
    path.write_text("x,id,time,date,clock,version,note,void\n" + row * 4 + row.replace("ok", "7"))
    assert open_table(path).read().feature_names == ("x",)
    assert not recwarn.list


def test_late_decimal(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 1_500_000 + "0.5,2\n")
    X = open_table(path).read().X
    assert X[0, 0] == 1.0
    assert X[-1, 0] == 0.5


def test_late_word(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 1_500_000 + "1,oops\n")
    with pytest.raises(MixdaError, match=r"'b' has 'oops' in row 1500001"):
        open_table(path).read()


def test_several_files(tmp_path, frame):
    write(frame[:20], tmp_path / "a.csv")
    write(frame[20:][frame.columns[::-1]], tmp_path / "b.parquet")  # another order of the columns
    for paths in (tmp_path, [tmp_path / "a.csv", tmp_path / "b.parquet"], str(tmp_path / "[ab].*")):
        table = open_table(paths)
        samples = table.read(label="state", drop=["site"])
        assert table.n_rows == 50
        np.testing.assert_array_equal(samples.X, frame[list(samples.feature_names)].to_numpy(float))
        assert samples.y.tolist() == frame["state"].tolist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_batches(tmp_path, frame, suffix):
    paths = [write(frame, tmp_path / f"{name}{suffix}") for name in "ab"]
    batches = list(open_table(paths).batches(["load", "state"], rows=15))
    assert [(b.file.stem, b.first_row, len(b)) for b in batches] == [
        (name, first, n) for name in "ab" for first, n in ((0, 15), (15, 15), (30, 15), (45, 5))
    ]
    assert np.concatenate([b.values("load") for b in batches]).dtype == np.float64
    states = np.concatenate([b.values("state") for b in batches])
    assert states.tolist() == 2 * frame["state"].tolist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_missing_drop(tmp_path, frame, suffix):
    frame = frame.astype({"speed": float, "state": object})
    frame.loc[3, "speed"], frame.loc[5, "state"], frame.loc[8, "speed"] = np.nan, None, np.inf
    table = open_table(write(frame, tmp_path / f"a{suffix}"))
    samples = table.read(label="state", missing="drop")
    kept = [k for k in range(50) if k not in (3, 5, 8)]
    assert samples.dropped == {str(tmp_path / f"a{suffix}"): 3}
    assert samples.rows.tolist() == [k + 1 for k in kept]
    assert samples.y.tolist() == frame["state"][kept].tolist()
    with pytest.raises(MixdaError, match=r"column 'speed' has no value in row 4"):
        table.read(label="state")
    with pytest.raises(MixdaError, match=r"column 'state' has no value in row 6"):
        table.read(["load"], label="state")


def test_row_numbers_of_several_files(tmp_path, frame):
    frame.loc[[1, 30], "speed"] = np.nan
    files = [write(frame[:20], tmp_path / "a.csv"), write(frame[20:], tmp_path / "b.parquet")]
    samples = open_table(files).read(missing="drop", drop=["site"], rows=7)
    assert samples.dropped == {str(file): 1 for file in files}
    np.testing.assert_array_equal(samples.X[:, 0], frame["speed"].to_numpy()[samples.rows - 1])


@pytest.mark.parametrize("word", ["n/a", "-", "None", "NA", ""])
def test_missing_numbers(tmp_path, word):
    path = tmp_path / "a.csv"
    path.write_text(f"a,b,state\n1,2,ok\n3,{word},ok\n")
    table = open_table(path)
    assert table.kinds == {"a": "number", "b": "number", "state": "text"}
    assert table.read(label="state", missing="drop").X.tolist() == [[1.0, 2.0]]


def test_missing_classes(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,state\n1,-\n3,None\n5,NA\n")
    table = open_table(path)
    assert table.read(label="state", missing="drop").y.tolist() == ["-", "None"]
    with pytest.raises(MixdaError, match=r"'state' has 'NA'.* in row 3"):
        table.read(["a"], label="state")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_read_some_domains(tmp_path, frame, suffix):
    frame = frame.astype({"state": object})
    frame.loc[frame["site"] == 7, "state"] = None
    table = open_table(write(frame, tmp_path / f"a{suffix}"))
    assert table.distinct("site") == ["3", "7"]
    samples = table.read(["speed"], "state", "site", domains=["3"])
    here = frame[frame["site"] == 3]
    np.testing.assert_array_equal(samples.X[:, 0], here["speed"])
    assert samples.y.tolist() == here["state"].tolist()


def test_as_written_keeps_type(tmp_path):
    exact = 2**60 + 1  # would be another number as a float64
    frame = pd.DataFrame({"id": [exact, 5], "a": [1.0, 2.0]})
    for path in (write(frame, tmp_path / "a.csv"), write(frame, tmp_path / "a.parquet")):
        (batch,) = open_table(path).batches(["id"], as_written=["id"])
        assert [int(v) for v in batch.values("id")] == [exact, 5]


def test_class_names():
    assert class_names(np.array([1.0, 3.0])).tolist() == [1, 3]
    assert class_names(np.array([0.5, 3.0])).tolist() == ["0.5", "3"]
    assert class_names(np.array(["+1", "-1", "0.0"])).tolist() == [1, -1, 0]
    assert class_names(np.array(["001", "10"])).tolist() == ["001", "10"]
    assert class_names(np.array(["1", "00"])).tolist() == ["1", "00"]
    assert class_names(np.array(["9" * 30])).tolist() == ["9" * 30]
    assert class_names(np.array([True, False])).tolist() == ["True", "False"]
    assert class_names(np.array(["nan", "1"])).tolist() == ["nan", "1"]


MISTAKES = {
    "empty.csv": ("", "is empty"),
    "names.csv": ("a,b\n", "column names but no rows"),
    "twice.csv": ("a,a\n1,2\n", "more than one column 'a'"),
    "unnamed.csv": ("a,,b\n1,2,3\n", "column 2 has no name"),
    "numbers.csv": ("1.5,2\n3,4\n", "first line"),
    "remarks.csv": ("# Lab\n\n# 12 kHz\na,b\n1,2\n", "2 comment lines"),
    "remark.csv": ("# Lab 3, Bench 1, noon\na;b\n1;2\n", "1 comment line"),
    "ragged.csv": ("a,b\n1,2\n1,2,3\n", "Expected 2 columns, got 3"),
    "words.csv": ("a,b\nx,y\n", "no column of numbers"),
    "infinite.csv": ("a,b\n1,2\ninf,2\n", "column 'a' has an infinite value in row 2"),
    "hole.csv": ("a,b\n1,2\n,2\n", "column 'a' has no value in row 2"),
    "holes.csv": ("a,b\n,\n,\n", "no column of numbers"),
    "book.xlsx": ("PK", "save spreadsheets as csv"),
    "binary.csv": ("a\0b", "is not a text file"),
    "text.parquet": ("a,b\n1,2\n", "cannot be read as a table"),
    "text.npz": ("a,b\n1,2\n", "cannot be read as a table"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(tmp_path, name):
    text, message = MISTAKES[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(MixdaError, match=message) as caught:
        open_table(tmp_path / name).read()
    assert name in str(caught.value)


def test_column_checks(tmp_path, frame):
    table = open_table(write(frame, tmp_path / "a.csv"))
    with pytest.raises(MixdaError, match=r"no column 'sped'; did you mean 'speed'\? its columns"):
        table.read(["sped"])
    with pytest.raises(MixdaError, match=r"'state' .*\('\w+' in row 1\)"):
        table.read(["speed", "state"])
    with pytest.raises(MixdaError, match="no column 'class'"):
        table.read(label="class")
    with pytest.raises(MixdaError, match=r"'state' .*two different"):
        table.read(label="state", domain="state")
    frame["load"] = "heavy"
    both = open_table([tmp_path / "a.csv", write(frame, tmp_path / "b.csv")])
    with pytest.raises(MixdaError, match=r"b\.csv: column 'load' .* \('heavy' in row 1\)"):
        both.read(label="state")
    write(frame.drop(columns="site"), tmp_path / "c.csv")
    with pytest.raises(MixdaError, match=r"c\.csv has no column 'site', which .*a\.csv has"):
        open_table([tmp_path / "a.csv", tmp_path / "c.csv"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": np.zeros(3)}, "has no array X"),
        ({"X": np.zeros(3)}, r"numbers of shape \(n, d\)"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(4)}, r"y has shape \(4,\), but X has 3 rows"),
        ({"X": np.zeros((3, 2)), "feature_names": np.array(["a"])}, "1 feature_names for 2"),
        ({"X": np.array([[None]], dtype=object)}, r"X is .*objects.*X\.astype\(float\)"),
        (
            {"X": np.eye(2), "y": np.array(["ok", "worn"], dtype=object)},
            r"y is .*objects.*y\.astype\(str\)",
        ),
    ],
)
def test_npz_mistakes(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(MixdaError, match=message):
        open_table(tmp_path / "a.npz")


def test_paths(tmp_path):
    for paths, message in (
        ("nowhere.csv", "does not exist"),
        (str(tmp_path / "*.csv"), "matches no file"),
        (tmp_path, "is a folder without"),
        ([], "paths is empty"),
    ):
        with pytest.raises(MixdaError, match=message):
            expand_paths(paths)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_write_round_trip(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    labels = ["a,b", 'say "x"', None]
    batches = [{"label": labels, "p": [0.1, 1e-300, 1 / 3]}, {"label": ["é"], "p": [2.0]}]
    assert write_table(path, batches) == 4
    back = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    assert back["p"].tolist() == [0.1, 1e-300, 1 / 3, 2.0]
    assert back["label"].fillna("none").tolist() == ["a,b", 'say "x"', "none", "é"]


def test_errors_of_batches_pass_through(tmp_path):
    import pyarrow

    def batches():
        yield {"p": [1.0]}
        pyarrow.array(["word"]).cast(pyarrow.int8())

    with pytest.raises(pyarrow.ArrowInvalid):
        write_table(tmp_path / "out.csv", batches())
    with pytest.raises(MixdaError, match="cannot be written"):
        write_table(tmp_path / "out.csv", [{"p": [1.0]}, {"p": ["word"]}])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_failed_write_keeps_old_file(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old")

    def batches():
        yield {"p": [1.0]}
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_table(path, batches())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_output_checks(tmp_path):
    with pytest.raises(MixdaError, match=r"must end in \.csv or \.parquet"):
        write_table(tmp_path / "out.xlsx", [{"p": [1.0]}])
    with pytest.raises(MixdaError, match="nowhere is not a folder"):
        write_table(tmp_path / "nowhere" / "out.csv", [{"p": [1.0]}])
    with pytest.raises(MixdaError, match="nothing to write"):
        write_table(tmp_path / "out.csv", [])


@pytest.fixture(scope="module")
def good_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame["state"] = rng.choice(["ok", "worn"], 40)
    frame.to_csv(folder / "g.csv", index=False)
    frame.to_parquet(folder / "g.parquet")
    np.savez_compressed(folder / "g.npz", X=frame[list("abc")], y=frame["state"].to_numpy(str))
    np.save(folder / "g.npy", frame[list("abc")].to_numpy())
    return {path.suffix: path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_files(good_files, tmp_path_factory, data):
    suffix = data.draw(st.sampled_from(sorted(good_files)))
    content = data.draw(damaged(good_files[suffix]))
    path = Path(tmp_path_factory.getbasetemp()) / f"damaged{suffix}"
    path.write_bytes(content)
    message = ""
    try:
        samples = open_table(path).read()
    except MixdaError as error:
        message = str(error)
    else:
        assert np.isfinite(samples.X).all()
    assert "\n" not in message
    assert not message or "damaged" in message  # the name of the file
