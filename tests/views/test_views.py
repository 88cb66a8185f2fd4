import numpy as np
import pytest

from mixda import Mixture
from mixda.views import (
    certainty_bins,
    common_plane,
    confusion,
    ellipse_axes,
    embed_distances,
    order_plan,
    wilson_interval,
)


def test_plane_separates_classes():
    means = np.random.default_rng(0).normal(size=(8, 50))
    labels = np.repeat(np.eye(2), 4, axis=0)
    means[:, 17] += 30 * labels[:, 0]
    p = Mixture(np.full(8, 1 / 8), means, np.ones((8, 50)), labels)
    centers = common_plane([p]).place(p)[0]
    assert (
        centers[:4, 0].min() > centers[4:, 0].max() or centers[:4, 0].max() < centers[4:, 0].min()
    )


@pytest.mark.parametrize(("n_correct", "n"), [(0, 5), (8, 10), (449, 449)])
def test_wilson_closed_form(n_correct, n):
    z, p = 1.959964, n_correct / n
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    np.testing.assert_allclose(
        wilson_interval(n_correct, n), (middle - half, middle + half), atol=1e-6
    )


def test_confusion_unknown_labels():
    shown = confusion(np.array([1, 0, 7, 7]), np.array([1, 1, 0, 1]), np.array([0, 1]))
    np.testing.assert_array_equal(shown.counts, [[0, 1], [0, 1], [1, 1]])
    np.testing.assert_allclose(shown.row_shares, [[0, 1], [0, 1], [0.5, 0.5]])
    assert shown.unknown == (7,)
    np.testing.assert_array_equal(shown.codes, [1, 0, 2, 2])


def test_certainty_bins_partition():
    proba = np.array([0.0, 0.5, 0.6, 1.0, 1.0 + 1e-12])
    bins = certainty_bins(proba, (0.0, 0.5, 0.6, 1.0))
    assert [b.n_samples for b in bins] == [1, 1, 3]
    assert [b.accuracy for b in bins] == [None] * 3


def test_ellipse_axes_rebuild_the_roots():
    roots = np.array([[[2.0, 0.6], [0.6, 1.0]], [[1.0, -0.4], [-0.4, 3.0]]])
    half_axes, angles = ellipse_axes(roots)
    assert (np.abs(angles) <= 45).all()
    c, s = np.cos(np.radians(angles)), np.sin(np.radians(angles))
    rotation = np.stack([np.stack([c, -s], axis=1), np.stack([s, c], axis=1)], axis=1)
    rebuilt = np.einsum("kij,kj,klj->kil", rotation, half_axes, rotation)
    np.testing.assert_allclose(rebuilt, roots, atol=1e-12)


def test_embedding_error_of_a_simplex():
    # four points at distance 1 do not fit in the plane
    points, error = embed_distances(1.0 - np.eye(4))
    assert points.shape == (4, 2)
    assert error > 0.1


def test_plan_ordered_by_labels():
    plan = np.arange(6.0).reshape(3, 2)
    ordered = order_plan(plan, np.eye(2)[[1, 0, 1]], np.eye(2)[[1, 0]])
    np.testing.assert_array_equal(ordered.rows, [1, 0, 2])
    np.testing.assert_array_equal(ordered.columns, [1, 0])
    np.testing.assert_array_equal(ordered.mass, plan[[1, 0, 2]][:, [1, 0]])
    np.testing.assert_array_equal(ordered.row_classes, [0, 1, 1])
