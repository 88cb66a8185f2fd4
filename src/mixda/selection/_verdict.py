"""The verdict on a committee: weights, who decides, and what can be said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mixda._core.validation import Array
from mixda.selection._estimate import LeftOut, calibrate, left_out_logs, temper
from mixda.selection._members import Member
from mixda.selection._pool import Fold, combine, fit_weights
from mixda.selection._self_training import Powers, learn_powers
from mixda.selection._shares import (
    Ranges,
    difference_of_shares,
    estimate_shares,
    given_shares,
    match_shares,
    reweight,
    smooth_shares,
    total_variation,
)
from mixda.selection._views import COMMON

COMMITTEE, COMMON_ONLY = "committee", "common scale"

_MAX_LOSS = 0.2  # of accuracy on left-out sources, if the common scale is to decide alone
_SHARE_POWER = 0.5  # of re-estimated class shares, which are uncertain


@dataclass(frozen=True)
class Verdict:
    """Weights of the members, and how they did on left-out sources.

    Attributes
    ----------
    weights : ndarray of shape (n_members,)
    left_out : LeftOut or None
        The committee on left-out sources; None if none could be left out.
    scores : ndarray of shape (n_members,)
        Mean accuracy of each member there.
    powers : Powers
        Of the committee and of self-training.
    skill : float
        Share of the labels' entropy that the whole committee explains on left-out sources.
    difference : float
        Total variation between class shares in the sources and those seen in the target, if they
        made the common scale decide alone; else 0.
    log_odds : ndarray of shape (nc,) or None
        Shifts of the log-odds to the class shares estimated in the target.
    """

    weights: Array
    left_out: LeftOut | None
    scores: Array
    powers: Powers = field(default_factory=Powers)
    skill: float = 0.0
    difference: float = 0.0
    log_odds: Array | None = None

    @property
    def choice(self) -> str:
        """Who decides."""
        return COMMON_ONLY if self.difference > 0 else COMMITTEE

    @property
    def power(self) -> float:
        """Power that calibrates the committee."""
        return 1.0 if self.left_out is None else self.left_out.power


def decide(
    members: Sequence[Member],
    folds: Sequence[Fold],
    logs: Array,
    usual: Array,
    labeled: Sequence[Fold] = (),
    ranges: Ranges | None = None,
    only_proportions: Callable[[], bool] = lambda: False,
) -> Verdict:
    """Weigh the members; let the common scale decide alone where class shares differ.

    Parameters
    ----------
    members : sequence of Member
    folds : sequence of Fold
        Left-out sources.
    logs : ndarray of shape (n_members, n, nc)
        Answers on the target.
    usual : ndarray of shape (nc,)
        Class shares of the sources.
    labeled : sequence of Fold
        Labeled target rows, if there are any.
    ranges : tuple of two ndarrays of shape (nc,), optional
        Class shares that the user knows.
    only_proportions : callable
        Whether the target looks like the sources but for its class shares; asked if the common
        scale sees other shares and the committee does not.
    """
    scores = np.mean(
        [(fold.logs.argmax(axis=2) == fold.truth).mean(axis=1) for fold in folds], axis=0
    )
    weights = fit_weights([*folds, *labeled])
    powers, left_out = learn_powers(folds, left_out_logs(folds))
    judged = calibrate(folds, left_out)
    verdict = Verdict(weights, judged, scores, powers, judged.skill)
    common = common_members(members)
    if not common:
        return verdict
    own = [fold.take(common) for fold in folds]
    first = fit_weights(own)
    answers = combine(first, logs[common])
    if ranges is None:
        seen = difference_of_shares(weights, first, common, folds, logs, usual)
        difference, believed = seen.size, seen.believed or (seen.suspected and only_proportions())
        shares = estimate_shares(answers, usual)
    else:
        shares, believed = given_shares(answers, ranges, usual)
        difference = total_variation(shares, usual)
    own_logs = left_out_logs(own)
    if not believed or calibrate(own, own_logs).accuracy < judged.accuracy - _MAX_LOSS:
        return verdict
    chosen = fit_weights([*own, *(fold.take(common) for fold in labeled)])
    own_judged = calibrate([match_shares(fold, shares) for fold in own], own_logs)
    log_odds = None
    if ranges is None:
        log_odds = _shift(temper(combine(chosen, logs[common]), own_judged.power), usual)
        parts = zip(own_judged.logs, own_judged.rows, strict=True)
        adjusted = [reweight(part, _shift(part, usual, rows)) for part, rows in parts]
        own_judged = replace(own_judged, logs=adjusted)
    weights = np.zeros(len(members))
    weights[common] = chosen
    return replace(
        verdict,
        weights=weights,
        left_out=own_judged,
        powers=Powers(),
        difference=difference,
        log_odds=log_odds,
    )


def _shift(logs: Array, usual: Array, rows: Array | None = None) -> Array:
    """Return the shift of the log-odds toward the class shares that the rows seem to have."""
    shares = estimate_shares(logs, usual, rows)
    shift: Array = _SHARE_POWER * np.log(shares / smooth_shares(usual))
    return shift


def decide_without_trials(
    members: Sequence[Member], difference: float, labeled: Sequence[Fold] = ()
) -> Verdict:
    """Weigh the members by target labels, or else equally.

    Only ordinary members on the common scale have a say if class shares differ.
    """
    having = common_members(members) if difference > 0 else list(range(len(members)))
    weights = np.zeros(len(members))
    weights[having] = 1.0 / len(having)
    if labeled:
        weights[having] = fit_weights([fold.take(having) for fold in labeled])
    unknown = np.full(len(members), np.nan)
    return Verdict(weights, None, unknown, difference=difference)


def common_members(members: Sequence[Member]) -> list[int]:
    """Return the positions of ordinary members on the common scale."""
    return [k for k, member in enumerate(members) if member.view == COMMON and not member.adapts]


def explain(
    verdict: Verdict,
    members: Sequence[Member],
    reasons: Sequence[str],
    failed: Sequence[str] = (),
) -> str:
    """Say in a few sentences who decides, how it compares, and what to be careful about."""
    sentences = []
    if verdict.left_out is not None:
        reference = best_ordinary(verdict, members)
        sentences.append(
            f"On left-out sources the {verdict.choice} was right on "
            f"{verdict.left_out.accuracy:.1%}, the best ordinary classifier "
            f"({members[reference].label}) on {verdict.scores[reference]:.1%}."
        )
    if verdict.difference > 0:
        sentences.append(
            "Adaptation was declined: the class shares in the target seem to differ from those of "
            f"the sources (by {verdict.difference:.0%} of the rows), and adapting would take that "
            "for a shift. If you know the shares, give them (target_shares)."
        )
        if verdict.log_odds is not None:
            sentences.append("The class shares were estimated and taken into account.")
    if failed:
        sentences.append(f"Could not be fitted and has no say: {'; '.join(failed)}.")
    if reasons:
        sentences.append(f"No accuracy can be promised: {'; '.join(reasons)}.")
    return " ".join(sentences)


def best_ordinary(verdict: Verdict, members: Sequence[Member]) -> int:
    """Return the position of the ordinary member that did best on left-out sources."""
    ordinary = [k for k, member in enumerate(members) if not member.adapts]
    return max(ordinary, key=lambda k: verdict.scores[k])
