"""The formulas of the papers of the deep methods, and the parts that these share."""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mixda.deep import KD3A, M3SDA, CoMDA  # noqa: E402
from mixda.deep import comda as comda_module  # noqa: E402
from mixda.deep import kd3a as kd3a_module  # noqa: E402
from mixda.deep import ltc as ltc_module  # noqa: E402
from mixda.deep._training import Batches, Network, encode_together, mixup  # noqa: E402
from mixda.deep.m3sda import HeadVote, moment_distance  # noqa: E402

from .quick_methods import quick  # noqa: E402

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
