"""The steps that move samples, against literal loops and cases that can be done by hand."""

import numpy as np
import ot
import pytest

from mixda import Mixture
from mixda.empirical import (
    hard_barycenter,
    hard_transport,
    point_cloud,
    propagate_labels,
    send_samples,
)


def sinkhorn(cost, reg, n_iter=5000):
    """Uniform entropic plan by alternate scaling, as in Cuturi 2013."""
    kernel = np.exp(-cost / reg)
    u, v = np.ones(len(cost)), np.ones(cost.shape[1])
    for _ in range(n_iter):
        u = 1.0 / len(cost) / (kernel @ v)
        v = 1.0 / cost.shape[1] / (kernel.T @ u)
    return u[:, None] * kernel * v


def image(cost, reg, points):
    """Where a plan sends each row: the average of the points that it is matched with."""
    plan = sinkhorn(cost / cost.max(), reg)
    sums = [sum(row[j] * points[j] for j in range(len(points))) for row in plan]
    return np.array([total / sum(row) for total, row in zip(sums, plan, strict=True)])


def test_hard_barycenter_equals_literal_loop():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(7, 2)), np.array([0, 1, 0, 0, 1, 2, 2])
    second = rng.normal(size=(5, 2)) + 2.0, np.array([1, 0, 1, 0, 0])  # has no class 2
    moved = hard_barycenter([first, second], 3, 0.1, np.random.default_rng(5))
    noise = np.random.default_rng(5).standard_normal((12, 2))
    Z, codes = np.vstack([first[0], second[0]]), np.r_[first[1], second[1]]
    expected = np.zeros((12, 2))
    for code in range(3):
        rows = [i for i in range(12) if codes[i] == code]
        start = np.array([Z[rows].mean(axis=0) + noise[i] for i in rows])
        images = [
            image(ot.dist(start, X[c == code]), 0.1, X[c == code])
            for X, c in (first, second)
            if code in c
        ]
        expected[rows] = sum(images) / len(images)
    np.testing.assert_allclose(moved.means, expected, atol=1e-6)
    assert moved.labels.argmax(axis=1).tolist() == codes.tolist()


def test_hard_transport_without_class_penalty():
    rng = np.random.default_rng(0)
    cloud = point_cloud(rng.normal(size=(6, 2)), [0, 0, 1, 1, 1, 0])
    target = rng.normal(size=(9, 2)) + 1.0
    moved = hard_transport(cloud, target, 0.1, reg_class=0.0)
    expected = image(ot.dist(cloud.means, target), 0.1, target)
    np.testing.assert_allclose(moved.means, expected, atol=1e-6)
    np.testing.assert_array_equal(moved.labels, cloud.labels)


@pytest.mark.parametrize("n_sources", [1, 2])
def test_propagate_labels(n_sources):
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    codes, hidden = np.repeat([0, 1, 2], 10), np.repeat([0, 1, 2], [24, 12, 4])
    sources = [(centers[codes] + 0.3 * rng.normal(size=(30, 2)), codes) for _ in range(n_sources)]
    target = centers[hidden] + 0.3 * rng.normal(size=(40, 2))
    labels, proportions = propagate_labels(sources, target, 3, 0.01)
    assert labels.tolist() == hidden.tolist()
    np.testing.assert_allclose(proportions, [0.6, 0.3, 0.1], atol=1e-3)


def test_send_samples():
    # the first goes to x -> 10 + 2 x, the second to 10 + (x - 8) and to 20 + (x - 8) / 4
    source = Mixture([0.5, 0.5], [[0.0], [8.0]], [[1.0], [2.0]], np.eye(2))
    target = Mixture([0.6, 0.4], [[10.0], [20.0]], [[2.0], [0.5]])
    plan = np.array([[0.5, 0.0], [0.1, 0.4]])
    Z, codes = np.array([[1.0], [6.0], [-1.0]]), np.array([0, 1, 0])
    images, rows, weights = send_samples(Z, codes, source, target, plan)
    np.testing.assert_allclose(images.ravel(), [12.0, 8.0, 8.0, 19.5])
    assert rows.tolist() == [0, 2, 1, 1]
    np.testing.assert_allclose(weights, np.array([0.25, 0.25, 0.1, 0.4]) / 0.25)


def test_send_mislabeled_sample():
    # in 300 features all components of its class have a probability of zero
    means = np.array([-5.0, 5.0, 6.0])[:, None] * np.ones((3, 300))
    source = Mixture(np.full(3, 1 / 3), means, np.ones((3, 300)), np.eye(2)[[0, 1, 1]])
    shifts = np.array([[1.0], [2.0], [3.0]])
    target = Mixture(np.full(3, 1 / 3), means + shifts, np.ones((3, 300)))
    Z, codes = means[[0, 0, 1, 2]], np.array([0, 1, 1, 1])
    assert not source.responsibilities(Z)[1, 1:].any()
    images, rows, _ = send_samples(Z, codes, source, target, np.eye(3) / 3)
    assert rows.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(images, Z + shifts[[0, 1, 1, 2]])  # the nearer of its components
