"""Densities, predictions and E-steps of torch tensors: the same functions, the same numbers."""

import numpy as np
import pytest

from mixda import Mixture
from mixda._core.namespace import as_like, namespace, to_numpy
from mixda.em._steps import Parameters, e_step

from ..strategies import random_mixture
from ..tensors import DEVICES, torch


@pytest.fixture
def mixture():
    return random_mixture(np.random.default_rng(0), 6, 4, 3)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_predict(dispatch, mixture, device, gaps):
    X = 2.0 * np.random.default_rng(1).standard_normal((50, 4))
    X[::5, 1] = np.nan if gaps else 0.0
    for dtype, error in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        tensor = torch.tensor(X, dtype=dtype, device=device)
        for name in ("predict_proba", "responsibilities", "log_prob"):
            result = getattr(mixture, name)(tensor)
            assert isinstance(result, torch.Tensor)
            assert (result.dtype, result.device.type) == (dtype, device)
            expected = getattr(mixture, name)(X)
            assert np.allclose(to_numpy(result), expected, rtol=error, atol=error)
        assert np.array_equal(mixture.predict(tensor), mixture.predict(X))


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_e_step(mixture, device, gaps):
    X = np.random.default_rng(2).standard_normal((40, 4))
    X[3, 2] = np.nan if gaps else 0.0
    weight = np.random.default_rng(3).random(40)
    parameters = Parameters(np.log(mixture.weights), mixture.means, mixture.stds)
    tensor = torch.tensor(X, device=device)
    stats = e_step(tensor, as_like(weight, tensor), parameters)
    expected = e_step(X, weight, parameters)
    for name in ("n_k", "sum_x", "sum_xx"):
        assert namespace(getattr(stats, name)) is torch
        assert np.allclose(to_numpy(getattr(stats, name)), getattr(expected, name), atol=1e-12)
    assert stats.loglik == pytest.approx(expected.loglik)


def test_components_far_from_the_center(dispatch):
    m = Mixture([0.5, 0.5], [[0.0], [1e6]], [[1.0], [1e-2]], np.eye(2))
    X = np.array([[0.5], [1e6 + 0.01]])
    assert np.allclose(to_numpy(m.log_prob(torch.tensor(X))), m.log_prob(X))


def test_off_by_default(mixture):
    assert isinstance(mixture.predict_proba(torch.zeros(2, 4)), np.ndarray)


@pytest.mark.parametrize(
    "X",
    [torch.zeros(2, 3), torch.zeros(4), torch.zeros(2, 4, dtype=int), torch.full((1, 4), np.inf)],
)
def test_invalid(dispatch, mixture, X):
    with pytest.raises(ValueError, match="X"):
        mixture.predict_proba(X)
