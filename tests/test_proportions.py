"""A target that differs by the shares of its classes only, told from one that has moved."""

import numpy as np
import pytest

from mixda import AutoMSDA, SourceOnly
from mixda.selection.proportions import compare_to_sources

N_CLASSES = 3


def make(rng, shares, n=150, shift=0.0):
    codes = rng.choice(N_CLASSES, size=n, p=shares)
    return rng.normal(size=(n, 6)) + 5.0 * np.eye(6)[codes] + shift, codes


@pytest.fixture(scope="module")
def sources():
    rng = np.random.default_rng(0)
    return [make(rng, np.full(N_CLASSES, 1 / 3)) for _ in range(2)]


@pytest.mark.parametrize(
    ("shares", "shift", "expected"),
    [
        ((1.0, 0.0, 0.0), 0.0, True),  # a plant without faults
        ((0.48, 0.48, 0.04), 0.0, True),  # a rare fault
        ((0.34, 0.33, 0.33), 0.0, False),  # nothing has changed: adapt as usual
        ((0.34, 0.33, 0.33), 3.0, False),  # moved
        ((1.0, 0.0, 0.0), 3.0, False),  # moved, and of one class
    ],
)
def test_only_a_change_of_proportions_is_one(sources, shares, shift, expected):
    rng = np.random.default_rng(1)
    target, _ = make(rng, shares, shift=shift)
    assert compare_to_sources(sources, target, N_CLASSES, rng).only_proportions is expected


def test_the_same_distribution_has_a_typicality_of_one_half_and_its_true_skew(sources):
    rng = np.random.default_rng(2)
    target, codes = make(rng, (0.8, 0.2, 0.0), n=600)
    likeness = compare_to_sources(sources, target, N_CLASSES, rng)
    shares = np.mean([np.bincount(c, minlength=N_CLASSES) / len(c) for _, c in sources], axis=0)
    truth = 0.5 * np.abs(np.bincount(codes, minlength=N_CLASSES) / 600 - shares).sum()
    assert likeness.typicality == pytest.approx(0.5, abs=0.08)
    assert likeness.skew == pytest.approx(truth, abs=0.03)


def test_adaptation_to_a_plant_without_faults_is_declined(sources):
    target, truth = make(np.random.default_rng(3), (1.0, 0.0, 0.0))
    X = np.vstack([*(Z for Z, _ in sources), target])
    y = np.concatenate([*(codes for _, codes in sources), np.full(len(target), -1)])
    ids = np.repeat([0, 1, -1], [len(sources[0][0]), len(sources[1][0]), len(target)])
    model = AutoMSDA(random_state=0).fit(X, y, sample_domain=ids)
    alone = SourceOnly().fit(X, y, sample_domain=ids)
    assert model.trust_.declined
    assert "proportions" in model.trust_.reason
    assert model.score(target, truth) == alone.score(target, truth) > 0.98
