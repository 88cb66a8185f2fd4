"""What all deep methods must do: repeat, pickle, accept any network, reject mistakes, adapt."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.base import clone  # noqa: E402
from torch import nn  # noqa: E402

from mixda.deep import KD3A, M3SDA, CoMDA, LtCMSDA  # noqa: E402

from .quick_methods import METHODS, every, quick  # noqa: E402
from .turned_domains import rotated  # noqa: E402

# what all of them must do


@every
def test_same_seed_same_model_and_pickles_and_clones_agree(task, make):
    X, y, ids = task
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), X.copy()  # noqa: NPY002
    model = quick(make).fit(X, y, sample_domain=ids)
    proba = model.predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1.0)
    torch.manual_seed(7)  # the global generator decides nothing
    for other in (clone(model).fit(X, y, sample_domain=ids), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict_proba(X), proba)
    torch.set_rng_state(before[0])
    clone(model).fit(X, y, sample_domain=ids)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert np.array_equal(X, before[2])
    assert not np.array_equal(quick(make, random_state=1).fit(X, y, ids).predict_proba(X), proba)


@every
def test_a_prediction_does_not_depend_on_its_batch_mates(task, make):
    X, y, ids = task
    model = quick(make).fit(X, y, sample_domain=ids)
    alone = np.vstack([model.predict_proba(row[None]) for row in X[:20]])
    assert np.allclose(alone, model.predict_proba(X)[:20], atol=1e-12)


@every
def test_all_start_from_the_same_source_only_network(task, make):
    X, y, ids = task
    model = quick(make).fit(X, y, sample_domain=ids)
    start = quick(M3SDA, epochs=0).fit(X, y, sample_domain=ids)
    mine, theirs = (m.source_network_.state_dict() for m in (model, start))
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
    adapted = any(
        not torch.equal(a, b)
        for a, b in zip(
            model.network_.parameters(), model.source_network_.parameters(), strict=False
        )
    )
    assert adapted
    assert len(model.history_) == 3


@every
def test_without_a_target_or_without_epochs_it_is_the_source_only_network(task, make):
    X, y, ids = task
    source = ids >= 0
    model = quick(make).fit(X[source], y[source])
    assert np.array_equal(
        model.network_.proba(torch.zeros(1, 2).double()),
        model.source_network_.proba(torch.zeros(1, 2).double()),
    )
    assert model.history_.size == 0
    idle = quick(make, epochs=0).fit(X, y, sample_domain=ids)
    logits = idle.source_network_(torch.tensor(idle.encoder_.transform(X)))
    assert np.allclose(idle.predict_proba(X), logits.softmax(dim=1).numpy())


@every
def test_the_last_epoch_predicts(task, make, monkeypatch):
    """The network of the estimator is what the adaptation returned after its last epoch."""
    X, y, ids = task
    model = quick(make)
    seen = {}
    adapt = type(model)._adapt

    def spy(self, network, sources, target, report):
        seen["network"] = adapt(self, network, sources, target, report)
        return seen["network"]

    monkeypatch.setattr(type(model), "_adapt", spy)
    model.fit(X, y, sample_domain=ids)
    last = {name: value.double() for name, value in seen["network"].state_dict().items()}
    for name, value in model.network_.state_dict().items():
        assert torch.equal(value.double(), last[name])


@every
def test_names_of_classes_a_missing_class_and_tiny_domains(task, make):
    X, y, ids = task
    names = np.array(["b", "a", "d", "c"])[y]
    kept = ~((ids == 0) & (y == 1)) & ~((ids == 1) & (np.cumsum(ids == 1) > 1))
    kept &= ~((ids < 0) & (np.cumsum(ids < 0) > 3))
    model = quick(make).fit(X[kept], names[kept], sample_domain=ids[kept])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert set(model.predict(X)) <= set(model.classes_)
    assert np.isfinite(model.predict_proba(X)).all()


@every
def test_one_source_is_enough(task, make):
    X, y, ids = task
    rows = (ids < 0) | (ids == 0)
    model = quick(make).fit(X[rows], y[rows], sample_domain=ids[rows])
    assert np.isfinite(model.predict_proba(X)).all()


@every
def test_end_to_end_with_any_network(make):
    """Series whose class is a frequency; the backbone is copied, and trained."""
    rng = np.random.default_rng(0)
    n, steps = 60, 16
    y, ids = rng.integers(2, size=n), np.repeat([0, 1, -1], n // 3)
    phase = rng.uniform(0, 2 * np.pi, (n, 1, 1))
    X = np.sin(phase + (1 + 2 * y)[:, None, None] * np.linspace(0, 6, steps)) * np.ones((1, 2, 1))
    backbone = nn.Sequential(
        nn.Conv1d(2, 8, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()
    )
    before = [p.clone() for p in backbone.parameters()]
    options = {"backbone": backbone, "input_shape": (2, steps), "scale": None}
    model = quick(make, **options).fit(X.reshape(n, -1), y, sample_domain=ids)
    assert all(torch.equal(a, b) for a, b in zip(before, backbone.parameters(), strict=True))
    encoder = model.source_network_.encoder
    assert not all(torch.equal(a, b) for a, b in zip(before, encoder.parameters(), strict=True))
    again = clone(model).fit(X.reshape(n, -1), y, sample_domain=ids)
    flat = X.reshape(n, -1)
    assert np.array_equal(again.predict_proba(flat), model.predict_proba(flat))
    assert np.array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(flat), model.predict_proba(flat)
    )


@every
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"device": "gpu"}, "device must be one of 'auto', 'cpu', 'cuda', got 'gpu'"),
        ({"epochs": -1}, "epochs must be a positive integer"),
        ({"steps_per_epoch": 0}, "steps_per_epoch must be a positive integer"),
        ({"batch_size": 0}, "batch_size must be a positive integer"),
        ({"learning_rate": 0.0}, "learning_rate must be a positive number"),
        ({"weight_decay": -1.0}, "weight_decay must be a non-negative number"),
        ({"input_shape": (3, 5)}, r"product is the number of features \(2\)"),
        ({"backbone": "resnet"}, "backbone must be a torch.nn.Module"),
        ({"backbone": nn.Unflatten(1, (1, 2))}, "one row of features per input"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters_get_a_sentence(task, make, parameters, message):
    X, y, ids = task
    with pytest.raises(ValueError, match=message):
        quick(make, **parameters).fit(X, y, sample_domain=ids)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (M3SDA(variant="gamma"), "variant must be one of"),
        (M3SDA(moment_weight=-1.0), "moment_weight must be"),
        (M3SDA(n_moments=0), "n_moments must be a positive integer"),
        (LtCMSDA(sigma="mean"), "sigma must be 'median' or a positive number"),
        (LtCMSDA(sigma=0.0), "sigma must be a positive number"),
        (KD3A(consensus="firm"), "consensus must be one of"),
        (KD3A(gate=0.9), "gate must hold two numbers"),
        (KD3A(gate=(0.9, 1.5)), "gate must be a non-negative number of at most 1"),
        (CoMDA(forget_rate=2.0), "forget_rate must be a non-negative number of at most 1"),
    ],
)
def test_bad_parameters_of_one_method_get_a_sentence(task, model, message):
    X, y, ids = task
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_domain=ids)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_without_a_device_is_said(task):
    X, y, ids = task
    with pytest.raises(ValueError, match=r"device='cuda.*device='auto'"):
        M3SDA(device="cuda").fit(X, y, sample_domain=ids)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@every
def test_on_a_gpu(task, make):
    X, y, ids = task
    model = quick(make, device="cuda").fit(X, y, sample_domain=ids)
    assert np.isfinite(model.predict_proba(X)).all()
    opened = pickle.loads(pickle.dumps(model)).set_params(device="cpu")
    assert np.allclose(opened.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_without_torch_one_sentence_names_the_extra():
    script = """
        import sys

        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name == "torch" or name.startswith("torch."):
                    raise ImportError("No module named 'torch'")

        sys.meta_path.insert(0, Blocker())
        import mixda

        mixda.Mixture
        try:
            import mixda.deep
        except ImportError as error:
            print(error)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert "mixda[deep]" in result.stdout
    assert len(result.stdout.strip().splitlines()) == 1


# what they reach

REACHED = {  # on this problem, when written; source-only 0.872
    "M3SDA": 0.895,
    "M3SDA beta": 0.910,
    "LtCMSDA": 0.895,
    "KD3A": 0.877,
    "CoMDA": 1.000,
}


@pytest.mark.parametrize("name", METHODS)
def test_not_below_source_only_on_a_turned_target(name):
    X, y, ids = rotated({0: 0, 1: 15, 2: -15, -4: 25}, n=150)
    target = ids < 0
    model = METHODS[name](random_state=0, epochs=15)
    model.fit(X, np.where(target, -1, y), sample_domain=ids)
    logits = model.source_network_(torch.tensor(model.encoder_.transform(X[target])))
    source_only = (logits.argmax(dim=1).numpy() == y[target]).mean()
    assert source_only <= 0.90
    score = model.score(X[target], y[target])
    assert score >= source_only - 0.01  # six of the 600 samples
    assert score == pytest.approx(REACHED[name], abs=0.03)
