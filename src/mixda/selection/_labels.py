"""A few labels of the target: reading those that are there, and suggesting the next ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mixda._core.errors import MixdaError
from mixda._core.validation import Array
from mixda.estimators.utils import check_domains

_POOL_PER_LABEL = 5  # uncertain rows from which one is taken, far from the others
_MAX_SUGGESTIONS = 200


def given_labels(y: Any, sample_domain: Any) -> list[Any]:
    """Return the label of each target row, None where it is missing.

    Examples
    --------
    >>> from mixda.selection._labels import given_labels
    >>> given_labels(["ok", "worn", "ok", None], [0, 0, -1, -1])
    ['ok', None]
    """
    labels = list(y)
    ids = check_domains(sample_domain, len(labels), default=0)
    has_minus_one = any(_is_minus_one(labels[i]) for i in np.flatnonzero(ids >= 0))
    return [
        None
        if _is_missing(labels[i]) or (_is_minus_one(labels[i]) and not has_minus_one)
        else labels[i]
        for i in np.flatnonzero(ids < 0)
    ]


def encode_target_labels(labels: list[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of each label among the classes, -1 where it is missing."""
    places = {_plain(name): k for k, name in enumerate(classes.tolist())}
    codes = np.full(len(labels), -1)
    for i, label in enumerate(labels):
        if label is None:
            continue
        if _plain(label) not in places:
            raise MixdaError(
                f"a target row has the label {label!r}, but the classes of the sources are "
                f"{', '.join(map(repr, classes.tolist()))}; correct the label or empty it."
            )
        codes[i] = places[_plain(label)]
    return codes


def most_informative(logs: Array, weights: Array, Z: Array) -> NDArray[np.intp]:
    """Return rows on which the members disagree, far from each other, most useful first.

    Disagreement is the entropy of the pool's answer beyond that of its members (mutual
    information between answer and member).

    Parameters
    ----------
    logs : ndarray of shape (n_members, n, nc)
    weights : ndarray of shape (n_members,)
    Z : ndarray of shape (n, d)
        Where the rows are.
    """
    share = weights / weights.sum()
    proba = softmax(logs, axis=2)
    mean = np.tensordot(share, proba, 1)
    disagreement = _entropy(mean) - np.tensordot(share, _entropy(proba), 1)
    n = min(_MAX_SUGGESTIONS, len(Z))
    candidates = np.argsort(-disagreement, kind="stable")[: _POOL_PER_LABEL * n]
    chosen = [int(candidates[0])]
    distance = np.full(len(candidates), np.inf)
    score = np.maximum(disagreement[candidates], 1e-12)
    while len(chosen) < min(n, len(candidates)):
        step = ((Z[candidates] - Z[chosen[-1]]) ** 2).mean(axis=1)
        distance = np.minimum(distance, step)
        chosen.append(int(candidates[(score * np.sqrt(distance)).argmax()]))
        if distance.max() == 0:
            break
    return np.array(list(dict.fromkeys(chosen)))


def _entropy(proba: Array) -> Array:
    entropy: Array = -(proba * np.log(np.maximum(proba, 1e-12))).sum(axis=-1)
    return entropy


def _is_missing(label: Any) -> bool:
    return label is None or label != label or (isinstance(label, str) and not label.strip())


def _is_minus_one(label: Any) -> bool:
    return not isinstance(label, str) and label == -1


def _plain(label: Any) -> Any:
    """Return a label such that 1, 1.0 and numpy's 1 are the same."""
    return label.item() if isinstance(label, np.generic) else label
