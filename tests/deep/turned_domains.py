"""Domains that are turned against each other."""

import numpy as np


def rotated(angles, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X, y, ids = [], [], []
    for k, angle in angles.items():
        a = np.deg2rad(angle)
        turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        for c in range(4):
            center = [2 * np.cos(np.pi / 2 * c), 2 * np.sin(np.pi / 2 * c)]
            X.append(rng.normal(center, 0.35, (n, 2)) @ turn.T + angle / 60)
            y += [c] * n
            ids += [k] * n
    order = rng.permutation(len(y))
    return np.concatenate(X)[order], np.array(y)[order], np.array(ids)[order]
