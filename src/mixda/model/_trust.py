"""How far to trust a model whose target has no labels, as a value and in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixda.model._model import AdaptedModel

Percent = Callable[[float], str]  # how a share is written

_OTHER_DATA = 0.1  # of the rows: such data are not the target that the estimate is for
_NUMBERS = ("accuracy", "low", "high", "level")


@dataclass(frozen=True)
class Trust:
    """What can be said about a classifier of the target without its labels.

    Attributes
    ----------
    accuracy : float or None
        Estimated share of the target that is classified correctly; None where there was nothing
        to learn an estimate from: a single source, or none with a class that others know.
    low, high : float or None
        Interval that should hold the true accuracy with probability `level`.
    level : float
    declined : bool
        Whether adaptation was declined: the answer is the sources' own classifier.
    reason : str
        Why, in a sentence.
    candidates : tuple of dict
        ``{"name", "score", "chosen"}``, the score being the mean accuracy on left-out sources;
        where `folds` is empty, on the way back to the sources from the answers on the target.
    folds : dict of str to float
        Accuracy of the chosen candidate on each left-out source.

    Examples
    --------
    >>> from mixda.selection import Trust
    >>> print(  # doctest: +NORMALIZE_WHITESPACE
    ...     Trust(0.93, 0.88, 0.97, 0.8, False, "It did better on left-out sources.")
    ... )
    Estimated without any label of the target: right for 93% of its samples (between 88% and 97%,
    meant to hold 80% of the time). It did better on left-out sources.
    """

    accuracy: float | None
    low: float | None
    high: float | None
    level: float
    declined: bool
    reason: str
    candidates: tuple[dict[str, Any], ...] = ()
    folds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dict that a model's file can hold."""
        return {**asdict(self), "candidates": list(self.candidates)}

    def __str__(self) -> str:
        return describe_trust(self.to_json()) or ""


def trust_sentence(model: AdaptedModel, far: float | None = None) -> str | None:
    """Say how far to trust a model and whether adaptation was declined, if it has an opinion.

    Given `far`, the share of some rows that are far from all that is known, say whether the
    estimate holds for them.

    Examples
    --------
    >>> from mixda import GMMWBT
    >>> from mixda.model import trust_sentence
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> estimator = GMMWBT(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> trust_sentence(estimator.to_model()) is None
    True
    """
    trust = model.trust or {}
    if far is None:
        return describe_trust(trust)
    return describe_trust_in_rows(trust, model.target.name, far)


def trust_numbers(model: AdaptedModel, far: float = 0.0) -> dict[str, Any] | None:
    """Return the numbers of `trust_sentence`: accuracy, low, high, level, and declined.

    The accuracy is None where there is no estimate, or none that holds for the rows.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from mixda import SourceOnly
    >>> from mixda.model import trust_numbers
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = SourceOnly().fit(task.X, task.y, sample_domain=task.sample_domain).to_model()
    >>> trust_numbers(model) is None
    True
    >>> trust_numbers(replace(model, trust={"accuracy": 0.9}))
    {'accuracy': 0.9, 'low': None, 'high': None, 'level': None, 'declined': False}
    """
    trust = model.trust
    if not trust:
        return None
    numbers = {name: trust.get(name) if estimate_holds(far) else None for name in _NUMBERS}
    return {**numbers, "declined": bool(trust.get("declined"))}


def estimate_holds(far: float) -> bool:
    """Whether an estimate for the target can hold for rows of which this share is far."""
    return far <= _OTHER_DATA


def describe_trust_in_rows(
    trust: Mapping[str, Any], target: str, far: float, percent: Percent = "{:.0%}".format
) -> str | None:
    """Say what `describe_trust` says to rows that may not be those that the estimate is for.

    Examples
    --------
    >>> from mixda.model import describe_trust_in_rows
    >>> print(describe_trust_in_rows({"accuracy": 0.9}, "plant", far=0.01))
    Estimated without any label of the target: right for 90% of its samples. The estimate is \
for plant, the target that the model was adapted to, not for other data.
    >>> print(describe_trust_in_rows({"accuracy": 0.9}, "plant", far=0.4))
    The accuracy estimated for plant, the target that the model was adapted to, does not hold \
here: 40% of the rows are far from everything the model knows.
    """
    if trust.get("accuracy") is None:
        return describe_trust(trust, percent)
    who = f"{target}, the target that the model was adapted to,"
    if estimate_holds(far):
        return f"{describe_trust(trust, percent)} The estimate is for {who} not for other data."
    return (
        f"The accuracy estimated for {who} does not hold here: {percent(far)} of the rows are far "
        "from everything the model knows."
    )


def describe_trust(trust: Mapping[str, Any], percent: Percent = "{:.0%}".format) -> str | None:
    """Say in a sentence or two what `AdaptedModel.trust` or `Trust.to_json()` holds.

    Examples
    --------
    >>> from mixda.model import describe_trust
    >>> describe_trust({"accuracy": 0.9, "reason": "Methods agree."})
    'Estimated without any label of the target: right for 90% of its samples. Methods agree.'
    >>> describe_trust({"accuracy": None, "declined": True})
    'Accuracy on the target not estimated. Adaptation was declined.'
    """
    if not trust:
        return None
    estimate = "Accuracy on the target not estimated"
    if trust.get("accuracy") is not None:
        span = trust_range(trust, percent)
        estimate = (
            f"Estimated without any label of the target: right for {percent(trust['accuracy'])} "
            f"of its samples{f' ({span})' if span else ''}"
        )
    return f"{estimate}. {trust_reason(trust)}".rstrip()


def trust_reason(trust: Mapping[str, Any]) -> str:
    """Return the reason as a sentence; empty if there is none."""
    reason = str(trust.get("reason") or "").strip().rstrip(".")
    if not reason and trust.get("declined"):
        reason = "Adaptation was declined"
    return reason and f"{reason}."


def trust_range(trust: Mapping[str, Any], percent: Percent = "{:.0%}".format) -> str:
    """Say between what the accuracy is estimated to be; empty if there is no interval.

    Examples
    --------
    >>> from mixda.model import trust_range
    >>> trust_range({"low": 0.88, "high": 0.97, "level": 0.8})
    'between 88% and 97%, meant to hold 80% of the time'
    """
    low, high, level = trust.get("low"), trust.get("high"), trust.get("level")
    if low is None or high is None:
        return ""
    sure = "" if level is None else f", meant to hold {percent(level)} of the time"
    return f"between {percent(low)} and {percent(high)}{sure}"
