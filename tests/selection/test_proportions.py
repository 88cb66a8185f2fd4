"""A target that differs by the shares of its classes only, told from one that has moved."""

import numpy as np
import pytest

from mixda import AutoMSDA, SourceOnly
from mixda.selection.proportions import diagnose_shift

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
    assert diagnose_shift(sources, target, N_CLASSES, rng).only_proportions is expected


@pytest.mark.parametrize("seed", range(3))
def test_classes_that_overlap_are_no_shift(seed):
    """Two and a half deviations apart: the classifier is unsure of its own sources, too."""
    rng = np.random.default_rng(seed)

    def draw(share, n=400, shift=0.0):
        codes = (rng.random(n) < share).astype(int)
        return rng.normal(size=(n, 3)) + np.outer(2.5 * codes + shift, [1, 0, 0]), codes

    sources = [draw(0.5), draw(0.5)]
    likeness = diagnose_shift(sources, draw(0.02)[0], 2, rng)
    assert likeness.only_proportions
    assert likeness.confidence < 0.92
    assert likeness.confidence == pytest.approx(likeness.usual, abs=0.02)
    assert not diagnose_shift(sources, draw(0.5)[0], 2, rng).only_proportions
    assert not diagnose_shift(sources, draw(0.02, shift=1.25)[0], 2, rng).only_proportions


def test_a_class_that_is_easy_does_not_set_the_measure():
    """Without it the target is all doubt, as the sources are there."""
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 40.0]])

    def draw(shares, n=400):
        codes = rng.choice(3, size=n, p=shares)
        return places[codes] + rng.normal(size=(n, 2)), codes

    sources = [draw((0.25, 0.25, 0.5)), draw((0.25, 0.25, 0.5))]
    likeness = diagnose_shift(sources, draw((0.5, 0.5, 0.0))[0], 3, rng)
    assert likeness.confidence < 0.87  # it is 0.92 on the sources
    assert likeness.only_proportions


def test_a_target_like_one_of_unequal_sources_is_typical():
    """Ranks are within the source it looks like, not among rows of a wider one."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 200)

    def draw(codes, place, spread):
        return place + spread * rng.normal(size=(len(codes), 2)) + np.outer(
            codes, [9.0, 0.0]
        ), codes

    sources = [draw(codes, 0.0, 0.5), draw(codes, 20.0, 2.0)]
    for place, spread in ((0.0, 0.5), (20.0, 2.0)):
        target, _ = draw(np.zeros(200, dtype=int), place, spread)
        likeness = diagnose_shift(sources, target, 2, rng)
        assert likeness.typicality == pytest.approx(0.5, abs=0.1)


def test_sources_of_one_row_say_nothing():
    rng = np.random.default_rng(0)
    sources = [(np.zeros((1, 2)), np.array([0])), (np.ones((1, 2)), np.array([1]))]
    assert not diagnose_shift(sources, np.zeros((9, 2)), 2, rng).only_proportions


def test_the_same_distribution_has_a_typicality_of_one_half_and_its_true_skew(sources):
    rng = np.random.default_rng(2)
    target, codes = make(rng, (0.8, 0.2, 0.0), n=600)
    likeness = diagnose_shift(sources, target, N_CLASSES, rng)
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
    assert model.score(target, truth) >= alone.score(target, truth) - 0.01 > 0.97
