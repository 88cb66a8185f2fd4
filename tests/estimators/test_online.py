"""The online variant: a memory that merges in W2, and a dictionary that goes on."""

import numpy as np
import pytest

from mixda import GMMWBT, GMMDaDiL, Mixture, datasets, mw2
from mixda.barycenters._merge import merge_mixtures

from ..strategies import random_mixture


def test_merging_two_gaussians_is_their_barycenter():
    p = Mixture([1.0], [[0.0]], [[1.0]])
    q = Mixture([1.0], [[4.0]], [[3.0]])
    m = merge_mixtures(p, q, share=0.25, max_components=1)
    assert m.means[0, 0] == pytest.approx(1.0)
    assert m.stds[0, 0] == pytest.approx(1.5)


def test_room_for_all_is_concatenation_and_the_mean_is_kept_by_every_merge():
    rng = np.random.default_rng(0)
    p, q = random_mixture(rng, 6, 3), random_mixture(rng, 5, 3)
    whole = merge_mixtures(p, q, share=0.3, max_components=20)
    assert whole.n_components == 11
    assert whole.weights[:6].sum() == pytest.approx(0.7)
    for K in (1, 2, 5, 10):
        m = merge_mixtures(p, q, share=0.3, max_components=K)
        assert m.n_components == K
        assert np.allclose(m.weights @ m.means, whole.weights @ whole.means)
    far = [mw2(merge_mixtures(p, q, share=0.3, max_components=K), whole) for K in (2, 5, 10)]
    assert far[0] > far[1] > far[2]


def test_the_closest_pair_goes_first():
    p = Mixture([0.5, 0.5], [[0.0], [9.0]], [[1.0], [1.0]])
    q = Mixture([1.0], [[8.5]], [[1.0]])
    m = merge_mixtures(p, q, share=0.5, max_components=2)
    assert sorted(m.means.ravel().round(2).tolist()) == [0.0, 8.67]


@pytest.mark.parametrize("share", [0.0, 1.5, np.nan])
def test_a_bad_share_gets_a_sentence(share):
    p = Mixture([1.0], [[0.0]], [[1.0]])
    with pytest.raises(ValueError, match="share must be"):
        merge_mixtures(p, p, share=share, max_components=1)


def test_a_stream_reaches_what_all_the_data_at_once_reach():
    task = datasets.make_shifted_toy(random_state=2).as_task()
    rng = np.random.default_rng(0)
    stream = np.array_split(rng.permutation(len(task.X_target)), 20)
    source = task.sample_domain > 0
    first = stream[0]
    X = np.vstack([task.X[source], task.X_target[first]])
    y = np.concatenate([task.y[source], np.full(len(first), -1)])
    ids = np.concatenate([task.sample_domain[source], np.full(len(first), -4)])
    model = GMMDaDiL(random_state=0).fit(X, y, sample_domain=ids)
    for rows in stream[1:]:
        model.partial_fit(task.X_target[rows])
    assert model.n_target_seen_ == len(task.X_target)
    assert model.score(task.X_target, task.y_target) >= 0.99
    again = GMMDaDiL(random_state=0).fit(X, y, sample_domain=ids)
    for rows in stream[1:]:
        again.partial_fit(task.X_target[rows], y=np.full(len(rows), 7))  # labels are not read
    assert again.target_mixture_ == model.target_mixture_


@pytest.mark.parametrize(
    ("preset", "drift"), [("default", (0.6, 0.0)), ("default", (0.4, -0.4)), ("paper", (0.0, -0.6))]
)
def test_a_target_that_drifts_is_followed(preset, drift):
    """Drifts that a model which stays still does not survive in the space where it works."""
    task = datasets.make_shifted_toy(random_state=2).as_task()
    model = GMMDaDiL(forgetting=0.3, classifier="map", preset=preset, random_state=0)
    model.fit(task.X, task.y, sample_domain=task.sample_domain)
    rng = np.random.default_rng(0)
    drift = np.array(drift)
    for step in range(1, 16):
        rows = rng.permutation(len(task.X_target))[:100]
        model.partial_fit(task.X_target[rows] + step * drift)
    moved = task.X_target + 15 * drift
    still = GMMDaDiL(preset=preset, random_state=0)
    still.fit(task.X, task.y, sample_domain=task.sample_domain)
    assert still.score(moved, task.y_target) < 0.9
    assert model.score(moved, task.y_target) >= 0.97


def test_partial_fit_before_fit_gets_a_sentence():
    with pytest.raises(ValueError, match="call fit"):
        GMMDaDiL().partial_fit(np.zeros((3, 2)))
    assert not hasattr(GMMWBT(), "partial_fit")


def test_partial_fit_with_labels_before_any_target_is_a_fit():
    task = datasets.make_shifted_toy(random_state=2).as_task()
    streamed = GMMDaDiL(random_state=0).partial_fit(task.X, task.y, task.sample_domain)
    fitted = GMMDaDiL(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    assert streamed.target_mixture_ == fitted.target_mixture_


def test_rows_of_sources_and_a_wrong_forgetting_are_refused_without_a_trace():
    task = datasets.make_shifted_toy(random_state=2).as_task()
    model = GMMDaDiL(n_iter=2, random_state=0).fit(task.X, task.y, task.sample_domain)
    seen = model.n_target_seen_
    with pytest.raises(ValueError, match="target rows only"):
        model.partial_fit(task.X, sample_domain=task.sample_domain)
    with pytest.raises(ValueError, match="forgetting"):
        model.set_params(forgetting=2.0).partial_fit(task.X_target)
    assert model.n_target_seen_ == seen
