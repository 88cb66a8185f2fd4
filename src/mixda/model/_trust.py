"""How far to trust a model whose target has no labels: an estimate, its interval, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from mixda._core.archive import check_json
from mixda._core.errors import MixdaError
from mixda._core.notebook import summary_table
from mixda._core.text import plural

FormatShare = Callable[[float], str]

_MAX_OUTLIER_SHARE = 0.1  # rows with more outliers are not the target that the estimate is for


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


@dataclass(frozen=True)
class Trust:
    """What is known about a classifier of the target without the labels of the target.

    Attributes
    ----------
    accuracy : float or None
        Estimated accuracy on the target. None if there was nothing to estimate it from (a single
        source, or no source that shares its classes with others), or if the estimate would be
        unreliable; `reason` says why.
    low, high : float or None
        Interval of the accuracy.
    level : float or None
        Probability with which the interval should contain the true accuracy.
    declined : bool
        Whether adaptation was declined, so that the model is the classifier of the sources.
    reason : str
        Why, in a sentence.
    candidates : tuple of dict
        ``{"name", "score", "chosen"}``. The score is the mean accuracy on held-out sources, None
        if it is not known; if `folds` is empty, it comes from reverse validation.
    folds : dict of str to float
        Accuracy of the chosen candidate on each held-out source.
    n_labels : int
        Labeled rows of the target that the estimate takes into account.

    Examples
    --------
    >>> from mixda.model import Trust
    >>> trust = Trust(0.88, 0.8, 0.96, 0.8, reason="It was best on held-out sources.")
    >>> print(trust)
    Estimated accuracy 88 % (80 % interval: 80–96 %), without target labels. It was best on \
held-out sources.
    """

    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    declined: bool = False
    reason: str = ""
    candidates: tuple[dict[str, Any], ...] = ()
    folds: dict[str, float] = field(default_factory=dict)
    n_labels: int = 0

    def __post_init__(self) -> None:
        for name in ("accuracy", "low", "high", "level"):
            _check_share(getattr(self, name), name)
        for name, kind in (
            *(("declined", bool), ("reason", str)),
            *(("folds", dict), ("n_labels", int)),
        ):
            if not isinstance(getattr(self, name), kind):
                raise MixdaError(
                    f"{name} of a trust must be a {kind.__name__}, got {getattr(self, name)!r}."
                )
        candidates = tuple(self.candidates)
        if not all(isinstance(candidate, dict) for candidate in candidates):
            raise MixdaError(f"candidates of a trust must be dictionaries, got {candidates!r}.")
        object.__setattr__(self, "candidates", candidates)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Trust:
        """Return what `to_json` wrote, by this or another version of mixda.

        Fields that are missing get their defaults. Fields that this version does not know are
        ignored, so that files of a newer version can be read.

        Examples
        --------
        >>> from mixda.model import Trust
        >>> Trust.from_json({"accuracy": 0.9, "color": "red"}).accuracy
        0.9
        """
        known = {known.name for known in fields(cls)}
        given = check_json(dict(value), "trust")
        return cls(**{k: part for k, part in given.items() if k in known and part is not None})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values."""
        return {**asdict(self), "candidates": list(self.candidates)}

    @staticmethod
    def holds_for(outlier_share: float) -> bool:
        """Whether an estimate for the target can hold for rows with this share of outliers."""
        return outlier_share <= _MAX_OUTLIER_SHARE

    def numbers(self, outlier_share: float = 0.0) -> dict[str, Any]:
        """Return accuracy, low, high, level and declined; None where the estimate does not hold.

        Examples
        --------
        >>> from mixda.model import Trust
        >>> Trust(0.9).numbers(outlier_share=0.4)
        {'accuracy': None, 'low': None, 'high': None, 'level': None, 'declined': False}
        """
        names = ("accuracy", "low", "high", "level")
        holds = self.holds_for(outlier_share)
        values = {name: getattr(self, name) if holds else None for name in names}
        return {**values, "declined": self.declined}

    def interval(self, percent: FormatShare = _percent) -> str:
        """Return the interval in words; empty if there is none.

        Examples
        --------
        >>> from mixda.model import Trust
        >>> Trust(0.9, low=0.8, high=0.96, level=0.8).interval()
        '80 % interval: 80–96 %'
        """
        if self.low is None or self.high is None:
            return ""
        level = "" if self.level is None else f"{percent(self.level)} "
        return f"{level}interval: {percent(self.low).rstrip('%').rstrip()}–{percent(self.high)}"

    @property
    def evidence(self) -> str:
        """How many target labels the estimate uses, in words."""
        if not self.n_labels:
            return "without target labels"
        return f"with {plural(self.n_labels, 'target label')}"

    @property
    def explanation(self) -> str:
        """The reason as a sentence; empty if there is none."""
        reason = self.reason.strip().rstrip(".")
        if not reason and self.declined:
            reason = "Adaptation was declined"
        return reason and f"{reason}."

    def sentence(self, percent: FormatShare = _percent) -> str:
        """Return the estimate and the reason in words.

        Examples
        --------
        >>> from mixda.model import Trust
        >>> Trust(declined=True).sentence()
        'The accuracy on the target was not estimated. Adaptation was declined.'
        """
        estimate = "The accuracy on the target was not estimated"
        if self.accuracy is not None:
            interval = self.interval(percent)
            interval = interval and f" ({interval})"
            estimate = f"Estimated accuracy {percent(self.accuracy)}{interval}, {self.evidence}"
        return f"{estimate}. {self.explanation}".rstrip()

    def sentence_for(
        self, target: str, outlier_share: float, percent: FormatShare = _percent
    ) -> str:
        """Return `sentence` for rows that may not be those of the target.

        Parameters
        ----------
        target : str
            Name of the target that the model was adapted to.
        outlier_share : float
            Share of outliers among the rows, see `mixda.AdaptedModel.outliers`.
        percent : callable
            How to write a share.

        Examples
        --------
        >>> from mixda.model import Trust
        >>> print(Trust(0.9).sentence_for("plant", outlier_share=0.01))
        Estimated accuracy 90 %, without target labels. The estimate is for plant, the target of \
this model, not for other data.
        >>> print(Trust(0.9).sentence_for("plant", outlier_share=0.4))
        The accuracy estimated for plant, the target of this model, does not hold for these rows: \
40 % of them are outliers, far from all data of the model.
        """
        if self.accuracy is None:
            return self.sentence(percent)
        who = f"{target}, the target of this model,"
        if self.holds_for(outlier_share):
            return f"{self.sentence(percent)} The estimate is for {who} not for other data."
        return (
            f"The accuracy estimated for {who} does not hold for these rows: "
            f"{percent(outlier_share)} of them are outliers, far from all data of the model."
        )

    def __str__(self) -> str:
        return self.sentence()

    def _repr_html_(self) -> str:
        estimate = "not estimated" if self.accuracy is None else _percent(self.accuracy)
        rows = [
            ("estimated accuracy", estimate),
            ("interval", self.interval()),
            ("adaptation", "declined" if self.declined else "done"),
            ("reason", self.explanation),
        ]
        rows += [(f"on held-out {name}", _percent(share)) for name, share in self.folds.items()]
        return summary_table("Trust", rows)


def _check_share(value: Any, name: str) -> None:
    if value is None:
        return
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not 0.0 <= value <= 1.0:
        raise MixdaError(f"{name} of a trust must be None or from 0 to 1, got {value!r}.")
