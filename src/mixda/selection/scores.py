"""Scores of an adapted classifier that need no target label; higher is better.

All have one signature, ``score(estimator, X, y, sample_domain)``, fit clones of the estimator and
never read `y` on target rows. `rank` orders candidates by any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Ids
from mixda._core.validation import check_choice, check_positive_int, check_random_state

_MASK = -1  # stands for a target label wherever an array of labels needs an entry
_HELD_OUT = 0.2


class PseudoTask(NamedTuple):
    """One source in the role of the target: fit on the first three, score with the last two.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Samples of all sources; those of the real target are left out.
    codes : ndarray of shape (n,)
        Classes as integers, -1 on the rows of the held-out source.
    sample_domain : ndarray of shape (n,)
        The id of a source, -1 for the held-out one.
    held_out : int
        Its id.
    truth : ndarray of shape (n_held,)
        The classes that were masked, in the order of ``X[sample_domain < 0]``.
    """

    X: Array
    codes: Ids
    sample_domain: Ids
    held_out: int
    truth: Ids

    @property
    def X_target(self) -> Array:
        """Samples of the held-out source."""
        return self.X[self.sample_domain < 0]


def leave_one_source_out(estimator: Any, X: Any, y: Any, sample_domain: Any) -> float:
    r"""Mean accuracy over the sources, each in turn in the role of the unlabeled target.

    .. math:: \frac{1}{N} \sum_{\ell=1}^{N} \mathrm{acc}\bigl(h_{\ell' \neq \ell \to \ell};
              \; X_\ell, y_\ell\bigr)

    Every problem is of the very kind to be solved, with labels to check it. It needs at least two
    sources, and the target is not looked at.

    Parameters
    ----------
    estimator : estimator
        Any of `mixda`'s; clones of it are fitted.
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
        Classes of source rows; never read on target rows.
    sample_domain : array-like of shape (n,)
        Ids of at least 0 for sources, negative for the target.

    Returns
    -------
    float

    Examples
    --------
    >>> from mixda import SourceOnly
    >>> from mixda.datasets import make_shifted_toy
    >>> from mixda.selection import leave_one_source_out
    >>> X, y, ids, _ = make_shifted_toy(random_state=2).as_task()
    >>> leave_one_source_out(SourceOnly(scale="domain"), X, y, ids) > 0.9
    True
    """
    tasks = list(pseudo_tasks(X, y, sample_domain))
    if not tasks:
        raise MixdaError(
            "no source can be left out: none has a class that the others know; use another score, "
            "such as 'importance_weighted' or 'circular_validation'."
        )
    return float(np.mean([_accuracy(estimator, task) for task in tasks]))


def importance_weighted(
    estimator: Any, X: Any, y: Any, sample_domain: Any, random_state: Any = 0
) -> float:
    r"""Accuracy on held-out source rows, weighted by how much they look like the target.

    .. math:: \frac{\sum_i w(x_i) \, 1[h(x_i) = y_i]}{\sum_i w(x_i)}, \qquad
              w(x) \approx \frac{q_T(x)}{q_S(x)}

    with the ratio of densities from a logistic regression that tells target from source.
    Parameters are those of `leave_one_source_out`.
    """
    X, codes, ids = _problem(X, y, sample_domain)
    rng = check_random_state(random_state)
    held = (ids >= 0) & (rng.random(len(ids)) < _HELD_OUT)
    model = fitted_clone(estimator, X[~held], codes[~held], ids[~held])
    weights = _density_ratio(X, ids)[held]
    by_domain = {} if isinstance(model, DummyClassifier) else {"sample_domain": ids[held]}
    hits = model.predict(X[held], **by_domain) == codes[held]
    return float(np.average(hits, weights=weights))


def circular_validation(estimator: Any, X: Any, y: Any, sample_domain: Any) -> float:
    """Adapt back from the target's predicted labels: the accuracy on the sources' true ones.

    A classifier of the target that is right teaches the way back; one that sees a single class
    there brings back a constant, which is right for the share of that class. Parameters are those
    of `leave_one_source_out`.
    """
    X, codes, ids = _problem(X, y, sample_domain)
    answers = fitted_clone(estimator, X, codes, ids).predict(X[ids < 0])
    back = fitted_clone(estimator, X, *reversed_roles(answers, ids))
    return float(np.mean(back.predict(X[ids >= 0]) == codes[ids >= 0]))


def stability(estimator: Any, X: Any, y: Any, sample_domain: Any, n_seeds: int = 3) -> float:
    """Share of the target on which two seeds agree, on average over pairs of seeds.

    Parameters are those of `leave_one_source_out`.
    """
    X, codes, ids = _problem(X, y, sample_domain)
    seeds = range(check_positive_int(n_seeds, "n_seeds"))
    models = [
        fitted_clone(clone(estimator).set_params(random_state=k), X, codes, ids) for k in seeds
    ]
    return agreement([model.predict(X[ids < 0]) for model in models])


def confidence(estimator: Any, X: Any, y: Any, sample_domain: Any) -> float:
    """Mean probability that the classifier gives to its own answer on the target.

    Parameters are those of `leave_one_source_out`.
    """
    X, codes, ids = _problem(X, y, sample_domain)
    proba = fitted_clone(estimator, X, codes, ids).predict_proba(X[ids < 0])
    return float(proba.max(axis=1).mean())


def information(estimator: Any, X: Any, y: Any, sample_domain: Any) -> float:
    r"""Mutual information of input and answer on the target, in nats: sure and diverse answers.

    .. math:: H\Bigl(\frac{1}{n} \sum_i p(\cdot \mid x_i)\Bigr)
              - \frac{1}{n} \sum_i H\bigl(p(\cdot \mid x_i)\bigr)

    Parameters are those of `leave_one_source_out`.
    """
    X, codes, ids = _problem(X, y, sample_domain)
    proba = fitted_clone(estimator, X, codes, ids).predict_proba(X[ids < 0])
    return float(_entropy(proba.mean(axis=0)) - _entropy(proba).mean())


def likelihood(estimator: Any, X: Any, y: Any, sample_domain: Any, random_state: Any = 0) -> float:
    """Mean log-density of held-out target samples under the adapted mixture.

    Only for methods with a `target_mixture_`, and comparable only in one space: same encoder,
    same scaling. Parameters are those of `leave_one_source_out`.
    """
    X, codes, ids = _problem(X, y, sample_domain)
    held = (ids < 0) & (check_random_state(random_state).random(len(ids)) < _HELD_OUT)
    model = fitted_clone(estimator, X[~held], codes[~held], ids[~held])
    return float(_mixture_of(model).score(model.encoder_.transform(X[held])))


def reconstruction(estimator: Any, X: Any, y: Any, sample_domain: Any) -> float:
    """Minus the MW2 distance from the adapted mixture to the target's own.

    Comparable as `likelihood` is. Parameters are those of `leave_one_source_out`.
    """
    from mixda.transport import mw2

    X, codes, ids = _problem(X, y, sample_domain)
    model = fitted_clone(estimator, X, codes, ids)
    return -mw2(_mixture_of(model), model.unlabeled_mixture_)


SCORES: dict[str, Callable[..., float]] = {
    score.__name__: score
    for score in (
        leave_one_source_out,
        importance_weighted,
        circular_validation,
        stability,
        confidence,
        information,
        likelihood,
        reconstruction,
    )
}


def rank(
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    sample_domain: Any,
    score: str | Callable[..., float] = "leave_one_source_out",
) -> dict[str, float]:
    """Score every candidate without target labels; the best comes first.

    Parameters
    ----------
    candidates : mapping of str to estimator
    X, y, sample_domain : see `leave_one_source_out`
    score : name in `SCORES`, or a function with their signature

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> from mixda import SourceOnly
    >>> from mixda.datasets import make_shifted_toy
    >>> from mixda.selection import rank
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> candidates = {"as it is": SourceOnly(), "per domain": SourceOnly(scale="domain")}
    >>> list(rank(candidates, task.X, task.y, task.sample_domain))
    ['per domain', 'as it is']
    """
    if not callable(score):
        score = SCORES[str(check_choice(score, "score", tuple(SCORES)))]
    scores = {name: score(model, X, y, sample_domain) for name, model in candidates.items()}
    return dict(sorted(scores.items(), key=lambda pair: -pair[1]))


def agreement(answers: list[NDArray[Any]]) -> float:
    """Share of the rows on which two answers are the same, on average over pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection import agreement
    >>> agreement([np.array([0, 1]), np.array([0, 2])])
    0.5
    """
    if len(answers) < 2:
        return 1.0
    pairs = [np.mean(a == b) for i, a in enumerate(answers) for b in answers[i + 1 :]]
    return float(np.mean(pairs))


def pseudo_tasks(
    X: Any, y: Any, sample_domain: Any, held_out: Iterable[int] | None = None
) -> Iterator[PseudoTask]:
    """Every source in the role of the target, in the order of their ids, or those in `held_out`.

    A source with a class that no other source has is scored on what can be known, its other
    rows; a source without such rows is passed over.
    """
    X, codes, ids = _problem(X, y, sample_domain)
    X, codes, ids = X[ids >= 0], codes[ids >= 0], ids[ids >= 0]
    sources = np.unique(ids)
    if len(sources) < 2:
        raise MixdaError(
            "leaving a source out needs at least two sources, got one; use another score, such "
            "as 'importance_weighted' or 'circular_validation'."
        )
    for held in sources if held_out is None else held_out:
        known = np.unique(codes[ids != held])
        keep = (ids != held) | np.isin(codes, known)
        out = keep & (ids == held)
        if not out.any() or len(known) < 2:
            continue
        yield PseudoTask(
            X[keep],
            np.where(out, _MASK, codes)[keep],
            np.where(out, -1, ids)[keep],
            int(held),
            codes[out],
        )


def reversed_roles(answers: Ids, ids: Ids) -> tuple[Ids, Ids]:
    """Return labels and ids with which the target, as it was classified, teaches the sources.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection.scores import reversed_roles
    >>> reversed_roles(np.array([2, 0]), np.array([0, 1, -1, -1]))
    (array([-1, -1,  2,  0]), array([-1, -1,  0,  0]))
    """
    target = ids < 0
    codes = np.full(len(ids), _MASK)
    codes[target] = answers
    return codes, np.where(target, 0, -1)


def fitted_clone(estimator: Any, X: Array, y: NDArray[Any], ids: Ids) -> Any:
    """Fit a clone; from labels of a single class, which no estimator takes, a constant is learned.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import SourceOnly
    >>> from mixda.selection.scores import fitted_clone
    >>> X, ids = np.arange(3.0)[:, None], np.array([0, 0, -1])
    >>> fitted_clone(SourceOnly(), X, np.array([1, 1, -1]), ids).predict(X)
    array([1, 1, 1])
    """
    known = ids >= 0
    if len(np.unique(y[known])) == 1:
        return DummyClassifier(strategy="most_frequent").fit(X[known], y[known])
    return clone(estimator).fit(X, y, sample_domain=ids)


def _accuracy(estimator: Any, task: PseudoTask) -> float:
    model = fitted_clone(estimator, task.X, task.codes, task.sample_domain)
    return float(np.mean(model.predict(task.X_target) == task.truth))


def _problem(X: Any, y: Any, sample_domain: Any) -> tuple[Array, Ids, Ids]:
    """Return samples, classes as integers (the target's masked before all else) and ids."""
    from mixda.estimators.utils import check_domains, encode_labels

    X = np.asarray(X, dtype=np.float64)
    ids = check_domains(sample_domain, len(X), default=0)
    codes = np.full(len(X), _MASK)
    codes[ids >= 0] = encode_labels(y, ids >= 0, ids)[1]
    return X, codes, ids


def _density_ratio(X: Array, ids: Ids) -> Array:
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    target = ids < 0
    proba = LogisticRegression(max_iter=1000).fit(Z, target).predict_proba(Z)[:, 1]
    odds = proba / np.maximum(1.0 - proba, 1e-6)
    ratio: Array = odds * (~target).sum() / target.sum()
    return ratio


def _mixture_of(model: Any) -> Any:
    if not hasattr(model, "target_mixture_"):
        raise MixdaError(
            f"{type(model).__name__} has no mixture of the target; use another score, or a method "
            "such as GMMWBT or GMMDaDiL."
        )
    return model.target_mixture_


def _entropy(proba: Array) -> Array:
    entropy: Array = -(proba * np.log(np.maximum(proba, 1e-300))).sum(axis=-1)
    return entropy
