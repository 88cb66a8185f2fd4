"""Small domains for the tests of choices."""

import numpy as np

CENTERS = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [0.0, 4.0, -1.0]])


def make_domain(seed, shift=0.0, classes=(0, 1, 2), n=24, spread=0.6):
    """Gaussian classes around CENTERS, all moved by the same shift."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(classes, n))
    return CENTERS[y] + shift + spread * rng.normal(size=(len(y), 3)), y


def stacked(*domains, target):
    """Samples, classes (the target's masked), ids 1, 2, … and -1, and the target's classes."""
    parts = [*domains, target]
    ids = np.repeat([*range(1, len(parts)), -1], [len(y) for _, y in parts])
    y = np.concatenate([y for _, y in parts])
    return np.vstack([X for X, _ in parts]), np.where(ids < 0, -1, y), ids, target[1]
