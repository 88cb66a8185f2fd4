"""A few labels of the target: reading those that are there, and suggesting the next ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_positive_int
from mixda.estimators.utils import check_domains
from mixda.model import AdaptedModel
from mixda.rules import Pool

_POOL_PER_LABEL = 5  # uncertain rows from which one is taken, far from the others
_MAX_SUGGESTIONS = 200
_ROWS_PER_BATCH = 1 << 14


def given_labels(y: Any, sample_domain: Any) -> list[Any]:
    """Return the label of each target row, None where it is missing.

    Examples
    --------
    >>> from mixda.selection._labels import given_labels
    >>> given_labels(["ok", "worn", "ok", None], [0, 0, -1, -1])
    ['ok', None]
    """
    labels = list(np.asarray(y)[:, 0] if np.ndim(y) == 2 else y)
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


def suggest_rows(model: AdaptedModel, X: Any, n: int = 20) -> NDArray[np.intp]:
    r"""Return the rows whose labels would tell a model most, most useful first.

    The members of a committee (`AutoMSDA`) should disagree on these rows: the entropy of their
    weighted mean exceeds the mean of their entropies,

    .. math:: H\Bigl(\sum_e a_e p_e(y \mid x)\Bigr) - \sum_e a_e H\bigl(p_e(y \mid x)\bigr),
              \qquad \sum_e a_e = 1.

    For other models, it is the entropy of their own answer. Among the rows with the largest values,
    those are taken that are far from the ones before.

    Parameters
    ----------
    model : AdaptedModel
    X : array-like of shape (m, d) or DataFrame
        Unlabeled rows, as in `AdaptedModel.predict_proba`.
    n : int

    Returns
    -------
    ndarray of shape (min(n, m),)
        Positions in `X`.

    Examples
    --------
    >>> from mixda import GMMWBT
    >>> from mixda.datasets import make_shifted_toy
    >>> from mixda.selection import suggest_rows
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = GMMWBT(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> len(suggest_rows(model.to_model(), task.X_target, 5))
    5
    """
    n = check_positive_int(n, "n")
    X = model.impute(model.samples(X))
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    batches = [X[i : i + _ROWS_PER_BATCH] for i in range(0, len(X), _ROWS_PER_BATCH)]
    return spread_out(np.concatenate([_uncertainty(model, rows) for rows in batches]), Z, n)


def most_informative(logs: Array, weights: Array, Z: Array) -> NDArray[np.intp]:
    """Return rows on which the members disagree, far from each other, most useful first.

    Parameters
    ----------
    logs : ndarray of shape (n_members, n, nc)
    weights : ndarray of shape (n_members,)
    Z : ndarray of shape (n, d)
        Where the rows are.
    """
    return spread_out(disagreement(logs, weights), Z, _MAX_SUGGESTIONS)


def disagreement(logs: Array, weights: Array) -> Array:
    """Return the entropy of the mean answer beyond that of the members, shape (n,).

    This is the mutual information between answer and member.
    """
    share = weights / weights.sum()
    proba = softmax(logs, axis=2)
    mean = np.tensordot(share, proba, 1)
    excess: Array = _entropy(mean) - np.tensordot(share, _entropy(proba), 1)
    return excess


def spread_out(score: Array, Z: Array, n: int) -> NDArray[np.intp]:
    """Return the positions of `n` rows of high score that are far from each other.

    Each row is the one with the largest product of its score and its distance to the rows before,
    among the rows of the highest scores.
    """
    n = min(n, len(Z))
    candidates = np.argsort(-score, kind="stable")[: _POOL_PER_LABEL * n]
    chosen = [0]  # positions among the candidates
    distance = np.full(len(candidates), np.inf)
    score = np.maximum(score[candidates], 1e-12)
    while len(chosen) < n:
        step = ((Z[candidates] - Z[candidates[chosen[-1]]]) ** 2).mean(axis=1)
        distance = np.minimum(distance, step)
        gain = score * np.sqrt(distance)
        gain[chosen] = -1.0  # rows that equal a chosen one come last, by score
        chosen.append(int(gain.argmax()))
    return candidates[chosen]


def _uncertainty(model: AdaptedModel, X: Array) -> Array:
    if not isinstance(model.rule, Pool):
        return _entropy(model.predict_proba(X))
    weights, logs = zip(*model.rule.answers(X), strict=True)
    if len(weights) == 1:
        return _entropy(model.predict_proba(X))
    return disagreement(np.array(logs), np.array(weights))


def _entropy(proba: Array) -> Array:
    entropy: Array = -(proba * np.log(np.maximum(proba, 1e-12))).sum(axis=-1)
    return entropy


def _is_missing(label: Any) -> bool:
    if isinstance(label, str):
        return not label.strip()
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither equal to itself nor not
        return True


def _is_minus_one(label: Any) -> bool:
    return not isinstance(label, str) and label == -1


def _plain(label: Any) -> Any:
    """Return a label such that 1, 1.0 and numpy's 1 are the same."""
    return label.item() if isinstance(label, np.generic) else label
