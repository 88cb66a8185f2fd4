"""Random mixtures of every kind, and damaged files, for hypothesis and plain tests."""

import numpy as np
from hypothesis import strategies as st

from mixda import Mixture


def random_mixture(rng, K, d, nc=None, *, uniform=False, classes=None, spread=2.0):
    weights = np.full(K, 1.0 / K) if uniform else rng.dirichlet(np.ones(K))
    labels = None if nc is None else rng.dirichlet(np.ones(nc), K)
    means = spread * rng.standard_normal((K, d))
    return Mixture(weights, means, rng.uniform(0.1, 2.0, (K, d)), labels, classes)


@st.composite
def mixtures(draw, d=None, nc=None, uniform=False, max_components=6):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    K = draw(st.integers(1, max_components))
    d = draw(st.integers(1, 4)) if d is None else d
    return random_mixture(rng, K, d, nc, uniform=uniform)


@st.composite
def families(draw, size, nc=None, uniform=False, same_size=False):
    """Return `size` mixtures over the same features."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, 4))
    K = draw(st.integers(1, 6))
    sizes = [K if same_size else draw(st.integers(1, 6)) for _ in range(size)]
    return [random_mixture(rng, K, d, nc, uniform=uniform) for K in sizes]


def permuted(p, order):
    labels = None if p.labels is None else p.labels[order]
    return Mixture(p.weights[order], p.means[order], p.stds[order], labels, p.classes)


@st.composite
def damaged(draw, content):
    """Truncated, with flipped bits, or foreign bytes altogether."""
    kind = draw(st.sampled_from(["cut", "flip", "foreign"]))
    if kind == "foreign":
        return draw(st.binary(max_size=200))
    if kind == "cut":
        return content[: draw(st.integers(0, len(content) - 1))]
    broken = bytearray(content)
    for _ in range(draw(st.integers(1, 8))):
        broken[draw(st.integers(0, len(content) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(broken)
