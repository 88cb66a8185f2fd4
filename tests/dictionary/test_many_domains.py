"""Many domains: threads and linear memory change nothing but the time and the memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mixda import Mixture, barycenter, learn_dictionary


def mixtures(n, k=6, d=4, nc=3, labeled=True):
    rng = np.random.default_rng(0)
    classes, centers = np.arange(k) % nc, 3.0 * rng.standard_normal((nc, d))
    return [
        Mixture(
            rng.dirichlet(np.full(k, 20.0)),
            centers[classes] + 0.3 * rng.standard_normal((k, d)),
            rng.uniform(0.5, 1, (k, d)),
            np.eye(nc)[classes] if labeled else None,
        )
        for _ in range(n)
    ]


@pytest.mark.parametrize(("beta", "labeled"), [("auto", True), ("max", True), (0.0, False)])
def test_barycenter_without_gram_matrix(monkeypatch, beta, labeled):
    inputs = mixtures(5, labeled=labeled)
    with_matrix = barycenter(inputs, beta=beta, component_weights="start")
    monkeypatch.setattr("mixda.barycenters._barycenter._MAX_GRAM_ROWS", 0)
    without = barycenter(inputs, beta=beta, component_weights="start")
    np.testing.assert_allclose(without.mixture.means, with_matrix.mixture.means, atol=1e-10)
    np.testing.assert_allclose(without.history, with_matrix.history, rtol=1e-10)


def test_threads_do_not_change_results():
    *sources, target = mixtures(12)
    options = {"n_atoms": 2, "n_components": 6, "n_iter": 4, "random_state": 0}
    learned = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            learned.append(learn_dictionary(sources, target, **options))
    np.testing.assert_array_equal(learned[0].history.loss, learned[1].history.loss)
    np.testing.assert_array_equal(learned[0].coordinates, learned[1].coordinates)


def test_memory_is_linear_in_inputs(monkeypatch):
    monkeypatch.setattr("mixda.barycenters._barycenter._MAX_GRAM_ROWS", 0)
    peaks = []
    for n in (20, 80):
        inputs = mixtures(n, k=10, d=2)
        tracemalloc.start()
        barycenter(inputs, max_iter=2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 6 * peaks[0]  # 4 times the inputs; their inner products would take 16 times
