"""Image benchmarks in the layouts that people have: every layout is made here, tiny, and read."""

import shutil

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from mixda.datasets import load_office31, load_office_home
from mixda.datasets.office import OFFICE31, OFFICE_HOME

Image = pytest.importorskip("PIL.Image", reason="images need Pillow")

CLASSES = ("bike", "mug")
COLORS = {"amazon": (255, 0, 0), "dslr": (0, 255, 0), "webcam": (0, 0, 255)}


def _image(path, color, size=(12, 8)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).save(path)


@pytest.fixture
def photos(tmp_path):
    """Two classes of two images; a mug is half as bright as a bike."""
    for domain, color in COLORS.items():
        for k in range(2):
            _image(tmp_path / domain / "bike" / f"{k}.png", color)
            _image(tmp_path / domain / "mug" / f"{k}.png", tuple(c // 2 for c in color))
    return tmp_path


def _features(domain, labels=(0, 0, 1)):
    """Three samples that say which domain they are from."""
    rng = np.random.default_rng(OFFICE31.index(domain))
    return 100.0 * OFFICE31.index(domain) + rng.random((len(labels), 4)), np.array(labels)


def _check(data, classes=("0", "1")):
    assert data.domain_names == OFFICE31
    assert data.class_names == classes
    for domain in OFFICE31:
        X, y = _features(domain)
        got, codes = data.samples_of(domain)
        np.testing.assert_allclose(got, X, rtol=1e-6)
        np.testing.assert_array_equal(codes, y)


# --- images -----------------------------------------------------------------------------------


def test_pixels_are_channels_first_in_zero_one(photos):
    data = load_office31(photos, image_size=5)
    assert data.domain_names == OFFICE31
    assert data.class_names == CLASSES
    assert data.sample_shape == (3, 5, 5)
    for k, domain in enumerate(OFFICE31):
        X, y = data.samples_of(domain)
        assert y.tolist() == [0, 0, 1, 1]
        pixels = X.reshape(4, 3, 5, 5)
        expected = np.zeros((4, 3))
        expected[:, k] = [1.0, 1.0, 127 / 255, 127 / 255]
        np.testing.assert_allclose(pixels.mean(axis=(2, 3)), expected, atol=1e-6)


def test_gray_pixels_and_the_published_middle_folder(photos):
    for domain in OFFICE31:
        shutil.move(photos / domain, photos / "moved")
        shutil.move(photos / "moved", photos / domain / "images")
    data = load_office31(photos, image_size=4, gray=True)
    assert data.sample_shape == (1, 4, 4)
    # luma of pure red, green and blue (ITU-R 601): 0.299, 0.587, 0.114
    firsts = [data.samples_of(domain)[0][0, 0] for domain in OFFICE31]
    np.testing.assert_allclose(firsts, [0.299, 0.587, 0.114], atol=2 / 255)


def test_extract_sees_batches_of_pixels_and_gives_the_features(photos):
    shapes = []

    def extract(pixels):
        shapes.append((pixels.shape, pixels.dtype))
        return pixels.mean(axis=(2, 3))

    data = load_office31(photos, extract=extract, image_size=6)
    assert set(shapes) == {((4, 3, 6, 6), np.dtype(np.float32))}
    assert data.X.shape == (12, 3)
    np.testing.assert_allclose(data.samples_of("dslr")[0][0], [0.0, 1.0, 0.0])


def test_the_image_backbone_is_an_extractor(photos):
    torch = pytest.importorskip("torch", reason="needs torch")
    from mixda.deep import ImageBackbone

    network = ImageBackbone("random").eval().requires_grad_(False)
    data = load_office31(
        photos, extract=lambda pixels: network(torch.from_numpy(pixels)), image_size=32
    )
    assert data.X.shape == (12, 1280)


def test_extract_must_keep_the_number_of_images(photos):
    with pytest.raises(ValueError, match=r"extract .*1 rows for 4 images"):
        load_office31(photos, extract=lambda pixels: pixels[:1])


def test_a_broken_image_and_an_empty_domain_are_named(photos):
    broken = photos / "dslr" / "mug" / "0.png"
    broken.write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"mug/0\.png is not a readable image"):
        load_office31(photos)
    shutil.rmtree(photos / "dslr")
    (photos / "dslr").mkdir()
    with pytest.raises(ValueError, match=r"dslr has no images.*<class>/"):
        load_office31(photos)


def test_domains_of_office_home_match_in_any_spelling(tmp_path):
    for domain in ("art", "Clipart", "PRODUCT", "Real_World"):
        _image(tmp_path / domain / "Alarm_Clock" / "1.jpg", (9, 9, 9))
    data = load_office_home(tmp_path, image_size=2)
    assert data.domain_names == OFFICE_HOME
    assert data.class_names == ("Alarm_Clock",)


# --- features ---------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["X", "feas", "fts", "features"])
@pytest.mark.parametrize("label", ["y", "labels", "label", "gnd"])
def test_npz_per_domain(tmp_path, key, label):
    for domain in OFFICE31:
        X, y = _features(domain)
        np.savez(tmp_path / f"{domain}.npz", **{key: X.astype(np.float32), label: y})
    _check(load_office31(tmp_path))


@pytest.mark.parametrize("shape", ["column", "transposed", "sparse"])
def test_mat_per_domain(tmp_path, shape):
    for domain in OFFICE31:
        X, y = _features(domain)
        feas = {"column": X, "transposed": X.T, "sparse": sparse.csc_matrix(X)}[shape]
        savemat(tmp_path / f"{domain}_decaf.mat", {"feas": feas, "labels": y[:, None] + 1.0})
    # MATLAB counts classes from one, in double precision
    _check(load_office31(tmp_path), classes=("1", "2"))


def test_names_of_classes_in_an_npz_are_kept(tmp_path):
    for domain in OFFICE31:
        X, y = _features(domain)
        np.savez(tmp_path / f"{domain}.npz", X=X, y=y, cls=CLASSES)
    _check(load_office31(tmp_path), classes=CLASSES)


def test_csv_without_header_has_the_label_last(tmp_path):
    for domain in OFFICE31:
        X, y = _features(domain)
        np.savetxt(tmp_path / f"{domain}_{domain}.csv", np.c_[X, y], delimiter=",")
        for other in set(OFFICE31) - {domain}:  # of a network tuned on another domain
            np.savetxt(tmp_path / f"{other}_{domain}.csv", np.c_[-X, y], delimiter=",")
    _check(load_office31(tmp_path))


@pytest.mark.parametrize("name", ["label", "Class", "y"])
def test_csv_with_header_names_the_label(tmp_path, name):
    pytest.importorskip("pyarrow", reason="tables need pyarrow")
    for domain in OFFICE31:
        X, y = _features(domain)
        rows = [
            f"{CLASSES[c]},{','.join(map(repr, x.tolist()))}" for x, c in zip(X, y, strict=True)
        ]
        text = "\n".join([f"{name},a,b,c,d", *rows])
        (tmp_path / f"{domain}.csv").write_text(text)
    _check(load_office31(tmp_path), classes=CLASSES)


def test_one_csv_with_a_domain_column(tmp_path):
    pytest.importorskip("pyarrow", reason="tables need pyarrow")
    lines = ["domain,a,b,c,d,label"]
    for domain in OFFICE31:
        for x, c in zip(*_features(domain), strict=True):
            lines.append(f"{domain},{','.join(map(repr, x.tolist()))},{CLASSES[c]}")
    (tmp_path / "office31.csv").write_text("\n".join(lines))
    _check(load_office31(data_home=tmp_path), classes=CLASSES)


def test_one_npz_in_the_layout_of_the_data_folder(tmp_path, monkeypatch):
    X, y = (np.concatenate(parts) for parts in zip(*map(_features, OFFICE31), strict=True))
    d = np.repeat(np.arange(3), 3)
    np.savez(tmp_path / "office31.npz", X=X, y=y, d=d, doms=OFFICE31, cls=CLASSES)
    monkeypatch.setenv("MIXDA_DATA", str(tmp_path))
    _check(load_office31(), classes=CLASSES)


def test_classes_are_united_over_the_domains_in_the_order_of_numbers(tmp_path):
    for domain, labels in zip(OFFICE31, ([2, 10], [10, 11], [2, 2]), strict=True):
        np.savez(tmp_path / f"{domain}.npz", X=np.eye(2), y=labels)
    data = load_office31(tmp_path)
    assert data.class_names == ("2", "10", "11")
    assert data.y.tolist() == [0, 1, 1, 2, 0, 0]


# --- mistakes ---------------------------------------------------------------------------------


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"office31 does not exist"):
        load_office31(data_home=tmp_path)
    with pytest.raises(ValueError, match="no/where does not exist"):
        load_office_home("no/where")
    monkeypatch.delenv("MIXDA_DATA", raising=False)
    with pytest.raises(ValueError, match="set the environment variable MIXDA_DATA"):
        load_office_home()
    (tmp_path / "office31").mkdir()
    np.savez(tmp_path / "office31" / "amazon.npz", X=np.eye(2), y=[0, 1])
    with pytest.raises(ValueError, match=r"domain 'dslr'.* dslr/"):
        load_office31(data_home=tmp_path)


def test_two_files_for_one_domain_are_not_chosen_between(tmp_path):
    for domain in OFFICE31:
        np.savez(tmp_path / f"{domain}_a.npz", X=np.eye(2), y=[0, 1])
    np.savez(tmp_path / "webcam_b.npz", X=np.eye(2), y=[0, 1])
    with pytest.raises(ValueError, match=r"several entries for the domain 'webcam': webcam_a\.npz"):
        load_office31(tmp_path)
    np.savez(tmp_path / "webcam.npz", X=np.eye(2), y=[1, 1])  # the plain name is the better match
    assert load_office31(tmp_path).samples_of("webcam")[1].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": np.eye(2)}, "labels named label, .* x"),
        ({"X": np.eye(3), "y": [0, 1]}, r"\(3, 3\) and 2 labels"),
        ({"X": np.full((2, 2), np.nan), "y": [0, 1]}, "contains NaN"),
        ({"X": np.eye(3)[:2], "y": [0, 1]}, "different numbers of features .amazon 3, dslr 2"),
    ],
)
def test_wrong_features_are_refused(tmp_path, arrays, sentence):
    for domain in OFFICE31:
        np.savez(tmp_path / f"{domain}.npz", X=np.eye(2), y=[0, 1])
    np.savez(tmp_path / "amazon.npz", **arrays)
    with pytest.raises(ValueError, match=sentence):
        load_office31(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("amazon.mat", b"no matlab here at all" * 20, "amazon.mat is not a readable MATLAB file"),
        ("amazon.npz", b"PK\x03\x04broken", "amazon.npz is not a readable npz file"),
        ("amazon.csv", b"1,2,3\n1,x,3\n", "amazon.csv has no header"),
        ("amazon.csv", b"1\n2\n", "amazon.csv .*label column"),
        ("amazon.csv", b"a,b\n1,2\n", "no column named label or"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, content, sentence):
    for domain in OFFICE31[1:]:
        np.savez(tmp_path / f"{domain}.npz", X=np.eye(2), y=[0, 1])
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        load_office31(tmp_path)
