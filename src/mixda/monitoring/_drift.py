"""The value `Drift`: how new rows differ from those a model was adapted to, and the verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from mixda._core.text import listed


@dataclass(frozen=True)
class Change:
    """One quantity in the rows that the model was adapted to, and in new rows.

    Attributes
    ----------
    name : str
        A column, a class, "outliers" or "confidence".
    before, now : float
        Mean of a column, share of a class, rate of outliers, mean confidence.
    size : float
        Of a column: how far its values moved (1-Wasserstein distance of the quantiles), in
        standard deviations of the reference. Of the others: ``now - before``.
    p_value : float
        Adjusted for all tests of the run, so it can be compared with the level directly.
    alarm : bool
        Whether the change is significant and large enough to matter.
    """

    name: str
    before: float
    now: float
    size: float
    p_value: float
    alarm: bool


@dataclass(frozen=True)
class Drift:
    """What `monitor` returns.

    Attributes
    ----------
    alarm : bool
        Whether any check raised an alarm.
    columns : tuple of Change
        One for each column, the largest change first.
    level : float
        Probability of a false alarm, at most.
    n_rows, n_reference : int
    basis : {"rows", "mixture"}
        What the new rows were compared with: a summary of the rows that the model was adapted to,
        or the mixture of them. In the second case only the means of columns are compared, and the
        fields below are empty.
    classes : tuple of Change
        One for each class: its share among the predictions.
    outliers, confidence : Change or None
    accuracy_before, accuracy : float or None
        Estimated accuracy on the target, and on the new rows: it changes as the mean confidence
        does. None if the model has no estimate.
    """

    alarm: bool
    columns: tuple[Change, ...]
    level: float
    n_rows: int
    n_reference: int
    basis: str
    classes: tuple[Change, ...] = ()
    outliers: Change | None = None
    confidence: Change | None = None
    accuracy_before: float | None = None
    accuracy: float | None = None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why there is an alarm, one sentence for each check that raised it.

        Examples
        --------
        >>> from mixda.monitoring import Change, Drift
        >>> moved = Change("t", 20.0, 25.0, 1.5, 0.001, True)
        >>> Drift(True, (moved,), 0.05, 50, 90, "rows").reasons
        ('1 of 1 columns moved: t.',)
        """
        moved = [change.name for change in self.columns if change.alarm]
        classes = [
            f"{change.name} ({change.before:.0%} → {change.now:.0%})"
            for change in self.classes
            if change.alarm
        ]
        reasons = []
        if moved:
            reasons.append(f"{len(moved)} of {len(self.columns)} columns moved: {listed(moved)}.")
        if classes:
            reasons.append(f"The shares of predicted classes changed: {listed(classes)}.")
        if self.outliers is not None and self.outliers.alarm:
            rates = f"{self.outliers.before:.1%} to {self.outliers.now:.1%}"
            reasons.append(f"The rate of outliers rose from {rates}.")
        if self.confidence is not None and self.confidence.alarm:
            means = f"{self.confidence.before:.1%} to {self.confidence.now:.1%}"
            reasons.append(f"The mean confidence fell from {means}.")
        return tuple(reasons)

    @property
    def verdict(self) -> str:
        """The verdict as one sentence."""
        if self.alarm:
            return f"ALARM: {self.n_rows} new rows differ from the target of the model."
        return f"quiet: no change in {self.n_rows} new rows."

    def to_json(self) -> dict[str, Any]:
        """Return all fields, the verdict and the reasons as JSON values."""
        return {"verdict": self.verdict, "reasons": list(self.reasons), **asdict(self)}

    def __str__(self) -> str:
        return " ".join([self.verdict, *self.reasons])
