"""Files of mixda: the same value to the bit, or one sentence that names the file. Never code."""

import hashlib
import io
import json
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mixda
from mixda import AdaptedModel, GMMDaDiL, Mixture
from mixda._core import archive as _archive
from mixda._core.archive import pack, read_archive, write_archive
from mixda.datasets import make_toy
from mixda.model._model import _KINDS

from ..strategies import mixtures, random_mixture

FUZZ = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
DOCS = Path(__file__).parents[2] / "docs" / "file_formats.rst"


def small_mixture():
    p = random_mixture(np.random.default_rng(0), 5, 3, 2)
    info = {"name": "plant 1", "n_samples": 70, "preprocessing": ["log"]}
    return Mixture(p.weights, p.means, p.stds, p.labels, ["ok", "défaut"], ["u", "v", "w"], info)


def small_model():
    task = make_toy(30, random_state=0).as_task()
    estimator = GMMDaDiL(2, n_iter=3, encoder="lda", random_state=0)
    return estimator.fit(task.X, task.y, sample_domain=task.sample_domain).to_model()


@pytest.fixture(scope="module")
def wholes(tmp_path_factory):
    """A file of each kind: its bytes, and the value that is in it."""
    folder = tmp_path_factory.mktemp("wholes")
    found = {}
    for name, value in (("p.gmm", small_mixture()), ("m.mixda", small_model())):
        value.save(folder / name, allow_exposed_rows=True)
        found[name] = (folder / name).read_bytes(), value
    return found


def opened(path):
    """Return what is in a file, or the sentence that refuses it."""
    try:
        return mixda.load(path), None
    except ValueError as error:
        return None, str(error)


def assert_opens_the_same_or_is_refused(path, value):
    before = path.read_bytes()
    found, sentence = opened(path)
    if sentence is not None:
        assert str(path) in sentence
        assert "\n" not in sentence
        assert len(sentence) < 400 + len(str(path))
    else:  # a bit that nothing depends on, such as a date in the archive
        (tree, arrays), (other, others) = pack(found, _KINDS), pack(value, _KINDS)
        assert json.dumps(tree) == json.dumps(other)
        assert all(array.tobytes() == others[name].tobytes() for name, array in arrays.items())
    assert path.read_bytes() == before


@settings(max_examples=25)
@given(
    p=mixtures(nc=2),
    classes=st.sampled_from([None, ["ok", "défaut"], [3, -1], [0.5, 2.0], [False, True]]),
    named=st.booleans(),
)
def test_round_trip_is_bit_exact(tmp_path_factory, p, classes, named):
    names = [f"café {i}" for i in range(p.n_features)] if named else None
    p = Mixture(p.weights, p.means, p.stds, p.labels, classes, names, {"n_samples": 7})
    path = tmp_path_factory.mktemp("files") / "p.gmm"
    p.save(path)
    again = Mixture.load(path)
    assert again == p
    assert again.info == p.info
    assert again.means.tobytes() == p.means.tobytes()
    assert again.classes.dtype == p.classes.dtype
    with np.load(path, allow_pickle=False) as archive:
        assert np.array_equal(archive["means"], p.means)
        header = json.loads(str(archive["header"]))
    assert header["format"] == "mixda.mixture"
    assert header["mixda"] == mixda.__version__
    assert header["feature_names"] == names


def test_load_opens_both_kinds(tmp_path):
    small_mixture().save(tmp_path / "a.mixda")
    small_model().save(tmp_path / "b.gmm", allow_exposed_rows=True)
    assert isinstance(mixda.load(tmp_path / "a.mixda"), Mixture)
    assert isinstance(mixda.load(tmp_path / "b.gmm"), AdaptedModel)
    with pytest.raises(ValueError, match=r"a\.mixda holds 'mixda\.mixture', not 'mixda\.model'"):
        AdaptedModel.load(tmp_path / "a.mixda")
    with pytest.raises(ValueError, match=r"b\.gmm holds 'mixda\.model', not 'mixda\.mixture'"):
        Mixture.load(tmp_path / "b.gmm")


@pytest.mark.parametrize("name", ["p.gmm", "m.mixda"])
@FUZZ
@given(data=st.data())
def test_damaged_files_are_refused(wholes, name, data, tmp_path):
    whole, value = wholes[name]
    kind = data.draw(st.sampled_from(["cut", "bit", "bytes", "zeros", "twice"]))
    at = data.draw(st.integers(0, len(whole) - 1))
    if kind == "cut":
        damaged = whole[:at]
    elif kind == "bit":
        flipped = whole[at] ^ (1 << data.draw(st.integers(0, 7)))
        damaged = whole[:at] + bytes([flipped]) + whole[at + 1 :]
    elif kind == "bytes":
        damaged = whole[:at] + data.draw(st.binary(min_size=1, max_size=20)) + whole[at:]
    elif kind == "zeros":
        damaged = whole[:at] + bytes(len(whole) - at)
    else:
        damaged = whole[at:] + whole[:at]
    (tmp_path / name).write_bytes(damaged)
    assert_opens_the_same_or_is_refused(tmp_path / name, value)


def test_every_cut_is_noticed(wholes, tmp_path):
    whole, _ = wholes["p.gmm"]
    for size in range(0, len(whole), 7):
        (tmp_path / "p.gmm").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"p\.gmm"):
            Mixture.load(tmp_path / "p.gmm")


@FUZZ
@given(data=st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
def test_random_bytes_are_refused(data, tmp_path):
    (tmp_path / "a.gmm").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.gmm is not a file of mixda"):
        mixda.load(tmp_path / "a.gmm")


def zipped(**entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


class Bomb:
    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


ABSURD = npy(np.zeros(1)).replace(b"(1,), }", b"(1099511627776,), }"[:19])
FOREIGN = {
    "text": b"weights,means\n1,2\n",
    "png": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "pickle": pickle.dumps(Bomb()),
    "lone array": npy(np.ones(3)),
    "other zip": zipped(**{"word/document.xml": b"<xml/>"}),
    "empty zip": zipped(),
    "other npz": npz(X=np.ones(3)),
    "npz of objects": npz(header=np.array([Bomb()], dtype=object)),
    "npz of records": npz(header=np.zeros(2, dtype=[("a", "f8")])),
    "header of numbers": npz(header=np.ones(2)),
    "header that is a list": npz(header=np.array("[1, 2]")),
    "header without a version": npz(header=np.array('{"format": "mixda.mixture"}')),
    "header of another": npz(header=np.array('{"format": "b", "version": 1, "sha256": ""}')),
    "deep header": npz(header=np.array("[" * 100_000)),
    "version in words": npz(
        header=np.array('{"format": "mixda.model", "version": "one", "sha256": ""}')
    ),
    "bomb": zipped(**{"header.npy": bytes(_archive._MAX_COMPRESSED_BYTES + 1)}),
    "absurd shape": zipped(**{"header.npy": ABSURD}),
    "negative shape": zipped(
        **{"header.npy": npy(np.zeros(1)).replace(b"(1,), }  ", b"(-1,), } ")}
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("load", [mixda.load, Mixture.load, AdaptedModel.load])
def test_foreign_files_are_refused(kind, load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "thing.gmm"
    path.write_bytes(FOREIGN[kind])
    with pytest.raises(ValueError, match=r"thing\.gmm (is|was) .*") as error:
        load(path)
    assert "\n" not in str(error.value)
    assert [f.name for f in tmp_path.iterdir()] == ["thing.gmm"]


def test_messages_name_the_cause(tmp_path):
    path = tmp_path / "a.gmm"

    def sentence(data):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"a\.gmm") as error:
            mixda.load(path)
        return str(error.value)

    assert "would unpack to 67108865" in sentence(FOREIGN["bomb"])
    assert "values" in sentence(FOREIGN["absurd shape"])
    assert "dtype object" in sentence(FOREIGN["npz of objects"])
    assert "it holds 'word/document.xml'" in sentence(FOREIGN["other zip"])
    assert "was not written by mixda" in sentence(FOREIGN["other npz"])
    with pytest.raises(ValueError, match="does not exist"):
        mixda.load(tmp_path / "nothing.gmm")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        mixda.load(tmp_path)


def test_checksum(tmp_path):
    p = small_mixture()
    p.save(tmp_path / "p.gmm")
    with np.load(tmp_path / "p.gmm") as archive:
        entries = {name: archive[name] for name in archive.files}
    other = {**entries, "means": entries["means"] + 1.0}
    renamed = str(entries["header"]).replace('"u"', '"U"')
    for forged in (other, {**entries, "header": np.array(renamed)}):
        (tmp_path / "p.gmm").write_bytes(npz(**forged))
        with pytest.raises(ValueError, match="checksum does not match"):
            Mixture.load(tmp_path / "p.gmm")


@pytest.mark.parametrize(
    ("written_by", "advice"),
    [("3.1.4", r"pip install 'mixda>=3\.1\.4'"), ("; rm -rf /", "upgrade mixda to open it")],
)
@pytest.mark.parametrize("form", ["mixda.mixture", "mixda.model"])
def test_newer_files(form, written_by, advice, tmp_path):
    header = {"format": form, "version": 99, "mixda": written_by, "sha256": "of another kind"}
    (tmp_path / "a.gmm").write_bytes(npz(header=np.array(json.dumps(header))))
    with pytest.raises(ValueError, match=f"version 99 of its format.*{advice}"):
        mixda.load(tmp_path / "a.gmm")


def test_version_1_opens(tmp_path):
    arrays = {"weights": np.ones(1), "means": np.zeros((1, 2)), "stds": np.ones((1, 2))}
    digest = hashlib.sha256()  # as version 1 wrote it
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    header = {"format": "mixda.mixture", "version": 1, "sha256": digest.hexdigest()}
    (tmp_path / "old.gmm").write_bytes(npz(header=np.array(json.dumps(header)), **arrays))
    old = Mixture.load(tmp_path / "old.gmm")
    assert old == Mixture(**arrays)
    assert (old.feature_names, old.info) == (None, {})


NODES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.builds(lambda name: {"array": name}, st.sampled_from(["classes", "plan", "nothing"]))
        | st.builds(
            lambda kind, parts: {"kind": kind, "fields": parts},
            st.sampled_from([kind.__name__ for kind in _KINDS] + ["System"]),
            st.dictionaries(st.sampled_from(["steps", "mixture", "weights", "rules"]), inner),
        )
    ),
    max_leaves=4,
)


@FUZZ
@given(data=st.data())
def test_forged_models(wholes, data, tmp_path):
    """Whoever can write a checksum can write anything: a model must still work, or not open."""
    tree, arrays = pack(wholes["m.mixda"][1], _KINDS)
    tree = json.loads(json.dumps(tree))
    node = tree["fields"]
    while True:
        key = data.draw(
            st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))
        )
        inner = node[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            break
        node = inner
    node[key] = data.draw(NODES)
    path = tmp_path / "forged.mixda"
    write_archive(path, {"format": "mixda.model", "version": 1, "model": tree}, arrays)
    model, sentence = opened(path)
    if sentence is not None:
        assert "forged.mixda does not hold a valid model" in sentence
    else:
        rows = np.ones((2, len(model.feature_names)))
        assert model.predict_proba(rows).shape == (2, len(model.classes))
        assert model.novelty(rows).shape == (2,)


def test_large_files_are_not_compressed(tmp_path, monkeypatch):
    p = Mixture(np.full(500, 0.002), np.zeros((500, 9)), np.ones((500, 9)))  # packs well
    p.save(tmp_path / "packed.gmm")
    monkeypatch.setattr(_archive, "_MAX_COMPRESSED_BYTES", 1000)
    p.save(tmp_path / "stored.gmm")
    assert (tmp_path / "stored.gmm").stat().st_size > 2 * 500 * 9 * 8
    assert Mixture.load(tmp_path / "stored.gmm") == p
    monkeypatch.setattr(_archive, "_MAX_COMPRESSION_RATIO", 2)
    with pytest.raises(ValueError, match="would unpack to"):
        Mixture.load(tmp_path / "packed.gmm")


@pytest.mark.parametrize("step", ["os.fsync", "os.replace", "tempfile.mkstemp"])
@pytest.mark.parametrize("name", ["p.gmm", "m.mixda"])
def test_failed_write_keeps_old_file(wholes, name, step, tmp_path, monkeypatch):
    whole, value = wholes[name]
    (tmp_path / name).write_bytes(whole)

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(step, full)
    with pytest.raises(ValueError, match=rf"{re.escape(name)} cannot be written: No space left"):
        value.save(tmp_path / name, allow_exposed_rows=True)
    assert (tmp_path / name).read_bytes() == whole
    assert [f.name for f in tmp_path.iterdir()] == [name]


def test_missing_folder(tmp_path):
    with pytest.raises(ValueError, match="cannot be written: No such file"):
        small_mixture().save(tmp_path / "missing" / "p.gmm")


def test_wrong_arrays(tmp_path):
    header = {"format": "mixda.mixture", "version": 2}
    write_archive(tmp_path / "a.gmm", header, {"weights": np.ones(1)})
    with pytest.raises(ValueError, match=r"a\.gmm does not hold a valid mixture"):
        mixda.load(tmp_path / "a.gmm")


def test_array_layouts(tmp_path):
    arrays = {"empty": np.zeros((0, 3)), "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3))}
    write_archive(tmp_path / "a", {"format": "mixda.a", "version": 1}, arrays)
    _, found = read_archive(tmp_path / "a", {"mixda.a": 1})
    assert found["empty"].shape == (0, 3)
    assert np.array_equal(found["columns"], arrays["columns"])


def test_reading_with_numpy_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    p = small_mixture()
    p.save("plant.gmm")
    block = re.search(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", DOCS.read_text("utf-8"))
    code = re.sub("^    ", "", block.group(1), flags=re.M)
    assert "mixda" not in re.sub(r"#.*", "", code)
    names = {}
    exec(code, names)
    X = np.random.default_rng(0).normal(size=(6, 3))
    np.testing.assert_allclose(names["log_density"](X), p.log_prob(X))
    np.testing.assert_allclose(names["class_probabilities"](X), p.predict_proba(X))
    assert names["header"]["feature_names"] == ["u", "v", "w"]
