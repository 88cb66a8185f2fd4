"""The verdict on a committee: weights, who decides, and what can be said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mixda._core.typing import Array
from mixda.selection._estimate import LeftOut, calibrate, left_out_logs, temper
from mixda.selection._members import Member
from mixda.selection._pool import Fold, combine, fit_weights
from mixda.selection._self_training import Powers, learn_powers
from mixda.selection._shares import (
    Ranges,
    allows,
    estimate_difference,
    estimate_shares,
    given_shares,
    match_shares,
    restrict,
    reweight,
    sampling_error,
    smooth_shares,
    total_variation,
)
from mixda.selection._views import COMMON

COMMITTEE, MATCHED = "committee", "matched committee"
CLEAR_STRENGTH = 0.5  # of the belief in other proportions, from which on no accuracy is promised


@dataclass(frozen=True)
class Verdict:
    """Weights of the members, and how they did on held-out sources.

    Attributes
    ----------
    weights : ndarray of shape (n_members,)
    left_out : LeftOut or None
        The committee on held-out sources; None if none could be left out.
    scores : ndarray of shape (n_members,)
        Mean accuracy of each member there, at the same class proportions; NaN if it could not be
        fitted.
    unheard : tuple of int
        Members that could not be fitted without some of the sources.
    n_seen : int or None
        Rows to which held-out sources were reduced, as many as the target has, if they were.
    powers : Powers
        Of the committee and of self-training.
    skill : float
        Share of the labels' entropy that the whole committee explains on held-out sources.
    difference : float
        Total variation between class proportions in the sources and in the target, if they are
        believed to differ; else 0.
    strength : float
        Of the belief that they differ, from 0 to 1.
    shares : ndarray of shape (nc,) or None
        Class proportions of the target that the views are matched to.
    log_odds : ndarray of shape (nc,) or None
        Shifts of the log-odds to these shares.
    unmatched : Verdict or None
        The verdict without the belief in other class proportions, if it is only a belief.
    contradiction : str
        What spoke against such a belief, if anything did.
    voters : tuple of int
        Members that have a say, whatever their weights.
    """

    weights: Array
    left_out: LeftOut | None
    scores: Array
    powers: Powers = field(default_factory=Powers)
    skill: float = 0.0
    difference: float = 0.0
    strength: float = 0.0
    shares: Array | None = None
    log_odds: Array | None = None
    unmatched: Verdict | None = None
    contradiction: str = ""
    voters: tuple[int, ...] = ()
    unheard: tuple[int, ...] = ()
    n_seen: int | None = None

    @property
    def given(self) -> bool:
        """Whether the user gave class proportions that differ."""
        return self.shares is not None and self.unmatched is None

    @property
    def choice(self) -> str:
        """Who decides."""
        return COMMITTEE if self.shares is None else MATCHED

    @property
    def power(self) -> float:
        """Power that calibrates the committee."""
        return 1.0 if self.left_out is None else self.left_out.power


def decide(
    members: Sequence[Member],
    folds: Sequence[Fold],
    logs: Array,
    usual: Array,
    answer: Callable[[Array], Array],
    labeled: Sequence[Fold] = (),
    ranges: Ranges | None = None,
) -> Verdict:
    """Weigh the members, and look for other class proportions than those of the sources.

    Parameters
    ----------
    members : sequence of Member
    folds : sequence of Fold
        Held-out sources.
    logs : ndarray of shape (n_members, n, nc)
        Answers on the target.
    usual : ndarray of shape (nc,)
        Class proportions of the sources.
    answer : callable
        Returns the answers of ordinary members on the target in views matched to given shares.
    labeled : sequence of Fold
        Labeled target rows, if there are any.
    ranges : tuple of two ndarrays of shape (nc,), optional
        Class proportions that the user knows.
    """
    weights = fit_weights([*folds, *labeled])
    powers, left_out = learn_powers(folds, left_out_logs(folds))
    judged = calibrate(folds, left_out)
    everyone = tuple(range(len(members)))
    silent = np.any([fold.silent for fold in folds], axis=0)
    verdict = Verdict(
        weights,
        judged,
        _member_scores(folds),
        powers,
        judged.skill,
        voters=everyone,
        unheard=tuple(np.flatnonzero(silent).tolist()),
        n_seen=folds[0].n_seen,
    )

    ordinary = ordinary_members(members)
    own = [fold.take(ordinary) for fold in folds]
    seeing = fit_weights(own)
    power = calibrate(own, left_out_logs(own)).power

    def see(shares: Array) -> Array:
        return estimate_shares(temper(combine(seeing, answer(shares)), power), usual)

    shares, strength = _target_shares(members, folds, logs, usual, see, ranges)
    if strength == 0.0:
        return verdict
    matched = _blend(verdict, judged, members, folds, labeled, strength)
    log_odds = np.log(smooth_shares(shares) / smooth_shares(usual))
    assert matched.left_out is not None
    alike = [match_shares(fold, shares) for fold in folds]
    if not any(fold.rows.any() for fold in alike):  # no held-out source has such classes
        alike = list(folds)
    return replace(
        matched,
        left_out=replace(
            matched.left_out,
            logs=[reweight(part, log_odds) for part in matched.left_out.logs],
            rows=[fold.rows for fold in alike],
        ),
        scores=_member_scores(alike, log_odds),
        difference=total_variation(shares, usual),
        strength=strength,
        shares=shares,
        log_odds=log_odds,
        unmatched=verdict if allows(ranges, usual) else None,
    )


def _member_scores(folds: Sequence[Fold], log_odds: Array | float = 0.0) -> Array:
    """Return the mean accuracy of each member on held-out sources, NaN for one that is silent."""
    hits, counted = [], []
    for fold in folds:
        right = ((fold.logs + log_odds).argmax(axis=2) == fold.truth) @ fold.rows
        heard = ~fold.silent & fold.rows.any()
        hits.append(np.where(heard, right, 0.0))
        counted.append(heard)
    n = np.sum(counted, axis=0)
    scores: Array = np.where(n > 0, np.sum(hits, axis=0) / np.maximum(n, 1), np.nan)
    return scores


def _blend(
    verdict: Verdict,
    judged: LeftOut,
    members: Sequence[Member],
    folds: Sequence[Fold],
    labeled: Sequence[Fold],
    strength: float,
) -> Verdict:
    """Give ordinary classifiers more say, the whole say at strength one."""

    def fit_hedged(parts: Sequence[Fold]) -> Array:
        return _fit_hedged(members, parts)

    rest, powers = 1.0 - strength, verdict.powers
    pairs = zip(judged.logs, left_out_logs(folds, fit_hedged), strict=True)
    blended = [rest / judged.power * one + strength * other for one, other in pairs]
    hedged = fit_hedged([*folds, *labeled])
    return replace(
        verdict,
        weights=rest * powers.committee * verdict.weights + strength * hedged,
        left_out=calibrate(folds, blended),
        powers=Powers(1.0, rest * powers.clusters),
    )


def _fit_hedged(members: Sequence[Member], folds: Sequence[Fold]) -> Array:
    """Return weights by which all ordinary members, and those on the common scale, have equal say.

    Where a target differs by its class proportions only, the common scale is right whatever these
    are.
    Without folds, the members of each group have the same weight.
    """
    weights = np.zeros(len(members))
    for chosen in (ordinary_members(members), common_members(members)):
        equal = np.full(len(chosen), 1.0 / len(chosen))
        fitted = fit_weights([fold.take(chosen) for fold in folds]) if folds else equal
        weights[chosen] += 0.5 * fitted
    return weights


def _target_shares(
    members: Sequence[Member],
    folds: Sequence[Fold],
    logs: Array,
    usual: Array,
    see: Callable[[Array], Array],
    ranges: Ranges | None,
) -> tuple[Array, float]:
    """Return the target's class proportions, given or seen on the common scale, and a strength."""
    common = common_members(members)
    own = [fold.take(common) for fold in folds]
    judged = calibrate(own, left_out_logs(own))
    pooled = temper(combine(fit_weights(own), logs[common]), judged.power)
    if ranges is not None and not allows(ranges, usual):
        return given_shares(pooled, ranges, usual)
    true = [np.bincount(fold.truth, minlength=len(usual)) / len(fold.truth) for fold in folds]
    errors = []
    for k, (part, shares) in enumerate(zip(judged.logs, true, strict=True)):
        others = [other for j, other in enumerate(true) if j != k] or [usual]
        seen = estimate_shares(part, np.mean(others, axis=0))
        errors.append(total_variation(seen, shares))

    def see_allowed(shares: Array) -> Array:
        return restrict(see(shares), ranges)

    start = restrict(estimate_shares(pooled, usual), ranges)
    error = float(np.hypot(max(errors), sampling_error(usual, logs.shape[1])))
    return estimate_difference(start, usual, error, see_allowed)


def decide_without_trials(
    members: Sequence[Member],
    logs: Array,
    usual: Array,
    only_proportions: bool,
    labeled: Sequence[Fold] = (),
    ranges: Ranges | None = None,
) -> Verdict:
    """Weigh the members by target labels, or else equally.

    Parameters
    ----------
    members, logs, usual, labeled, ranges : see `decide`
    only_proportions : bool
        Whether the target seems to differ by its class proportions only. Then ordinary members on
        the common scale decide alone.
    """
    common = common_members(members)
    equal = combine(np.full(len(common), 1.0 / len(common)), logs[common])
    ranges = None if allows(ranges, usual) else ranges
    having = common if ranges is None and only_proportions else list(range(len(members)))
    weights = np.zeros(len(members))
    weights[having] = 1.0 / len(having)
    if labeled:
        weights[having] = fit_weights([fold.take(having) for fold in labeled])
    verdict = Verdict(weights, None, np.full(len(members), np.nan), voters=tuple(having))
    if ranges is None:
        seen = total_variation(estimate_shares(equal, usual), usual)
        return replace(verdict, difference=seen, strength=1.0) if only_proportions else verdict
    shares, strength = given_shares(equal, ranges, usual)
    if strength == 0.0:
        return verdict
    return replace(
        verdict,
        weights=_fit_hedged(members, labeled),
        difference=total_variation(shares, usual),
        strength=strength,
        shares=shares,
        log_odds=np.log(smooth_shares(shares) / smooth_shares(usual)),
    )


def ordinary_members(members: Sequence[Member]) -> list[int]:
    """Return the positions of members that do not adapt."""
    return [k for k, member in enumerate(members) if not member.adapts]


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
        reference = best_ordinary(verdict, members, failed)
        sentences.append(
            f"On held-out sources the {verdict.choice} was right on "
            f"{verdict.left_out.accuracy:.1%}, the best ordinary classifier "
            f"({members[reference].label}) on {verdict.scores[reference]:.1%}."
        )
    if verdict.n_seen is not None:
        sentences.append(
            f"Held-out sources were reduced to the size of the target ({verdict.n_seen} "
            f"row{'s' if verdict.n_seen > 1 else ''}), and self-training was left out."
        )
    if verdict.difference > 0:
        clear = verdict.strength >= CLEAR_STRENGTH
        sentences.append(
            f"The class proportions of the target {'differ' if clear else 'seem to differ'} from "
            f"those of the sources (by {verdict.difference:.0%} of the rows), and adapting would "
            "take that for a shift."
        )
        if verdict.shares is not None:
            sentences.append(
                "Adaptation counts less the clearer this is, and own scales are matched to the "
                f"{'given' if verdict.given else 'estimated'} proportions."
            )
        else:
            sentences.append("Ordinary classifiers on the common scale decide alone.")
        if not verdict.given:
            sentences.append("If you know the proportions, give them (target_shares).")
    if verdict.contradiction:
        sentences.append(
            "The class proportions of the target seemed to differ from those of the sources; this "
            f"was dismissed, because {verdict.contradiction}."
        )
    if failed:
        sentences.append(f"Could not be fitted and has no say: {'; '.join(failed)}.")
    unheard = [members[k].label for k in verdict.unheard if members[k].label not in failed]
    if unheard:
        sentences.append(f"Could not be fitted without some sources: {'; '.join(unheard)}.")
    if reasons:
        sentences.append(f"No accuracy can be promised: {'; '.join(reasons)}.")
    return " ".join(sentences)


def best_ordinary(verdict: Verdict, members: Sequence[Member], failed: Sequence[str] = ()) -> int:
    """Return the position of the ordinary member that did best on held-out sources."""
    heard = [k for k in ordinary_members(members) if not np.isnan(verdict.scores[k])]
    fitted = [k for k in heard if members[k].label not in failed]
    return max(fitted or ordinary_members(members), key=lambda k: verdict.scores[k])
