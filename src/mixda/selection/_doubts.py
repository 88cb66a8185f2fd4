"""Reasons for which no accuracy may be promised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cdist

from mixda._core.typing import Array, Codes
from mixda.selection._verdict import CLEAR_STRENGTH, Verdict

_MIN_SKILL = 0.02  # share of the labels' entropy explained; less is chance
_MAX_CONFOUNDING = 0.8  # share of the classes' entropy that the source alone explains
_MIN_TARGET_ROWS = 5
_MIN_EXCESS = 0.03  # of accuracy, beyond one standard error, that betrays repeated objects
_MAX_COMPARED_ROWS = 200  # of each source


def doubts(
    verdict: Verdict,
    n_target: int,
    sources: Sequence[Array],
    codes: Sequence[Codes],
) -> list[str]:
    """Return the reasons for which no accuracy may be promised; empty if there are none.

    Parameters
    ----------
    verdict : Verdict
    n_target : int
        Number of target rows.
    sources : sequence of ndarray of shape (n, d)
        Rows of each source on their own scale.
    codes : sequence of ndarray of shape (n,)
        Their classes.
    """
    reasons = []
    confounded = confounding(codes) > _MAX_CONFOUNDING
    if verdict.left_out is None:
        reasons.append(
            "no source could be left out, so nothing shows how well the sources teach a new domain"
        )
    elif verdict.skill < _MIN_SKILL and not confounded:
        reasons.append(
            "on held-out sources the committee is no better than chance: the features say nothing "
            "about the classes of another domain"
        )
    elif verdict.strength >= CLEAR_STRENGTH and not verdict.given:
        reasons.append(
            "class proportions seem to differ, and held-out sources cannot show how well the "
            "committee does at proportions that are unknown"
        )
    elif has_repeated_objects(sources, codes):
        reasons.append(
            "the sources seem to measure the same objects (rows of another source predict a class "
            "better than rows of the same source), so held-out sources look easier than new objects"
        )
    if n_target < _MIN_TARGET_ROWS:
        reasons.append(f"the target has only {n_target} row{'s' if n_target > 1 else ''}")
    if confounded:
        reasons.append(
            "source and class are confounded (most sources have a class of their own), so a model "
            "that tells sources apart looks as if it told classes apart"
        )
    return reasons


def confounding(codes: Sequence[Codes]) -> float:
    """Share of the entropy of the classes that the source explains, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._doubts import confounding
    >>> confounding([np.zeros(5, int), np.ones(5, int)])
    1.0
    """
    n_classes = max(int(c.max()) for c in codes) + 1
    counts = np.array([np.bincount(c, minlength=n_classes) / len(c) for c in codes])
    pooled = counts.mean(axis=0)
    total = _entropy(pooled)
    if total == 0:
        return 0.0
    return float(1.0 - np.mean([_entropy(row) for row in counts]) / total)


def has_repeated_objects(sources: Sequence[Array], codes: Sequence[Codes]) -> bool:
    """Whether nearest neighbors in other sources know classes better than those in the same source.

    Between different objects, the nearest row of another domain cannot be the better teacher. If it
    is, it probably is the same object, measured again.

    Parameters
    ----------
    sources : sequence of ndarray of shape (n, d)
        Rows of each source on their own scale.
    codes : sequence of ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._doubts import has_repeated_objects
    >>> rng = np.random.default_rng(0)
    >>> X, codes = rng.normal(size=(100, 5)), rng.integers(0, 2, 100)
    >>> has_repeated_objects([X, X + 0.01 * rng.normal(size=X.shape)], [codes, codes])
    True
    >>> has_repeated_objects([X, rng.normal(size=X.shape)], [codes, codes])
    False
    """
    few = [np.linspace(0, len(c) - 1, min(len(c), _MAX_COMPARED_ROWS)).astype(int) for c in codes]
    parts = [(X[rows], c[rows]) for X, c, rows in zip(sources, codes, few, strict=True)]
    gains, hits, n_rows = [], [], 0
    for k, (X, own) in enumerate(parts):
        apart = cdist(X, X)
        np.fill_diagonal(apart, np.inf)
        within = float((own[apart.argmin(axis=1)] == own).mean())
        n_rows += len(own)
        for j, (other, theirs) in enumerate(parts):
            if j != k and len(own) > 1:
                rows = np.linspace(0, len(theirs) - 1, min(len(theirs), len(own))).astype(int)
                nearest = cdist(X, other[rows]).argmin(axis=1)
                across = float((theirs[rows][nearest] == own).mean())
                gains.append(across - within)
                hits.append(across)
    if not gains:
        return False
    p = float(np.mean(hits))
    error = np.sqrt(2.0 * p * (1.0 - p) / n_rows)
    return bool(np.mean(gains) > _MIN_EXCESS + error)


def _entropy(shares: Array) -> float:
    return float(-(shares * np.log(np.maximum(shares, 1e-12))).sum())
