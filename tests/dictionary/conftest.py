"""Two labeled sources and a target."""

import numpy as np
import pytest

from ..strategies import random_mixture


@pytest.fixture
def domains():
    """Mixtures over two features and three classes; the target has no labels."""
    rng = np.random.default_rng(5)
    sources = [random_mixture(rng, k, 2, 3) for k in (5, 7)]
    return sources, random_mixture(rng, 6, 2)
