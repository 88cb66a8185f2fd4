"""The committee as a value: its rule for each domain, its answers, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Codes
from mixda.model import Trust
from mixda.rules import Chain, Linear, Pool, Rule
from mixda.selection._estimate import (
    LeftOut,
    add_labels,
    agreement,
    estimate_accuracy,
    estimate_from_labels,
    temper,
)
from mixda.selection._members import SELF_TRAINED_NAME, Fitted, Member
from mixda.selection._pool import SMOOTHING, combine
from mixda.selection._self_training import answer, fit_clusters
from mixda.selection._shares import Ranges, fit_log_odds, reweight
from mixda.selection._trials import Answered, Evidence, Problem
from mixda.selection._verdict import Verdict, best_ordinary, explain
from mixda.selection._views import OWN, TARGET, VIEWS

_MIN_LABELS = 10  # from which on they give an estimate where held-out sources cannot
_MIN_GAIN = 0.01  # of the agreement of views, if own scales are matched to other proportions
_MIN_WEIGHT = 0.002  # share of the committee's weight below which a member is left out


def _nothing(*_: Any) -> Fitted:
    raise AssertionError("a self-trained member is fitted to the committee's answers")


SELF_TRAINED = Member(SELF_TRAINED_NAME, OWN, True, _nothing, all_features=True)


@dataclass(frozen=True, eq=False)
class Committee:
    """The members that matter.

    Attributes
    ----------
    pools : list of Pool
        The committee as a rule for the rows of each source, then of the target.
    weights : dict of str to float
        Share of each member.
    logs : ndarray of shape (n, nc)
        Calibrated log-probabilities of the target rows that have no label.
    agreed : float
        Mean share of these rows on which a member answers as the committee does.
    log_odds : ndarray of shape (nc,)
        Shifts of the log-odds for other class proportions.
    failed : list of str
        Members that could not be fitted.
    """

    pools: list[Pool]
    weights: dict[str, float]
    logs: Array
    agreed: float
    log_odds: Array
    failed: list[str]


def assemble(
    members: Sequence[Member],
    told: Answered,
    verdict: Verdict,
    ranges: Ranges | None,
    class_order: Codes,
) -> Committee:
    """Make the rule of the members that matter, with self-training and known class proportions.

    Parameters
    ----------
    members : sequence of Member
    told : Answered
        What they say about the target, in the views of the verdict.
    verdict : Verdict
    ranges : tuple of two ndarrays of shape (nc,), optional
        Class proportions that the user knows.
    class_order : ndarray of shape (nc,)
        Positions of the classes among those of the user.
    """
    problem, fitted, logs = told.problem, told.fitted, told.logs
    weights = np.where([model is None for model in fitted], 0.0, verdict.weights)
    if weights.sum() <= 0:
        raise MixdaError("all members of the committee failed; give more rows per source.")
    kept = np.flatnonzero(weights / weights.sum() >= _MIN_WEIGHT).tolist()
    chosen = [members[k] for k in kept]
    rules: list[Rule] = [model.rule() for k in kept if (model := fitted[k]) is not None]
    powers = verdict.power * verdict.powers.committee * weights[kept]
    pooled = combine(weights[kept], logs[kept])
    if verdict.powers.clusters > 0:
        Z = problem.encode(SELF_TRAINED, TARGET, range(len(problem.codes)))
        clusters = fit_clusters(Z, np.exp(pooled))
        pooled = verdict.powers.combine(pooled, answer(clusters, Z))
        chosen.append(SELF_TRAINED)
        rules.append(clusters)
        powers = np.append(powers, verdict.power * verdict.powers.clusters)
    pooled = temper(pooled, verdict.power)
    log_odds = np.zeros(problem.n_classes) if verdict.log_odds is None else verdict.log_odds
    if ranges is not None:
        log_odds = fit_log_odds(pooled, ranges)
    pooled = reweight(pooled, log_odds)
    unknown = np.ones(len(pooled), dtype=bool)
    if problem.labeled is not None and len(problem.labeled.rows) < len(pooled):
        unknown[problem.labeled.rows] = False
    voters = [k for k in verdict.voters if fitted[k] is not None]
    return Committee(
        make_pools(chosen, rules, problem, powers, log_odds, class_order),
        {member.label: float(p / powers.sum()) for member, p in zip(chosen, powers, strict=True)},
        pooled[unknown],
        agreement(logs[voters][:, unknown], pooled[unknown]),
        log_odds,
        [member.label for member, model in zip(members, fitted, strict=True) if model is None],
    )


def make_pools(
    members: Sequence[Member],
    rules: Sequence[Rule],
    problem: Problem,
    weights: Array,
    log_odds: Array,
    class_order: Codes,
) -> list[Pool]:
    """Return a committee as a rule for the rows of each source, then of the target.

    The members know the classes in canonical order; the rules have the user's order.
    """
    sources, n_classes = range(len(problem.codes)), problem.n_classes
    if (class_order != np.arange(n_classes)).any():
        given = Linear(np.eye(n_classes)[class_order], np.zeros(n_classes))
        rules = [Chain((rule, given)) for rule in rules]
    keys = [(member.view, member.all_features) for member in members]
    first = {key: members[keys.index(key)] for key in keys}  # members that share a view
    places = np.array([list(first).index(key) for key in keys])
    return [
        Pool(
            tuple(problem.rule(member, domain, sources) for member in first.values()),
            tuple(rules),
            places,
            weights,
            log_odds[np.argsort(class_order)],
            SMOOTHING,
        )
        for domain in (*sources, TARGET)
    ]


def contradiction(
    members: Sequence[Member], told: Answered, matched: Verdict, again: Answered
) -> str:
    """Return what speaks against the belief in other class proportions; empty if nothing does.

    Ten labeled target rows or more decide by their log-loss. Otherwise, ordinary members of
    different views must agree clearly more if own scales are matched to the estimated proportions:
    matched to wrong ones, they do not.

    Parameters
    ----------
    members : sequence of Member
    told : Answered
        Without the belief.
    matched : Verdict
        With the belief.
    again : Answered
        With it, on matched scales.
    """
    plain = matched.unmatched
    if plain is None:  # the shares were given
        return ""
    known = told.evidence.known.truth
    if len(known) >= _MIN_LABELS:
        losses = [
            -_ask(verdict, part.evidence.known.logs)[np.arange(len(known)), known].mean()
            for verdict, part in ((plain, told), (matched, again))
        ]
        return "its labeled rows speak against it" if losses[0] < losses[1] else ""
    before, after = (agreement_of_views(members, part.logs) for part in (told, again))
    return "classifiers agree no better on matched scales" if after < before + _MIN_GAIN else ""


def settle(
    members: Sequence[Member], told: Answered, verdict: Verdict, again: Answered
) -> tuple[Verdict, Answered]:
    """Return the verdict that counts and its answers; parameters are those of `contradiction`."""
    against = contradiction(members, told, verdict, again)
    if verdict.unmatched is not None and against:
        return replace(verdict.unmatched, contradiction=against), told
    return verdict, again


def agreement_of_views(members: Sequence[Member], logs: Array) -> float:
    r"""Return how much ordinary members of different views agree, from 0 to 1.

    .. math:: \frac1n \sum_i \sum_y p_v(y \mid x_i) \, p_w(y \mid x_i),

    averaged over the pairs of views, where :math:`p_v` is the pool of view v with equal weights.

    Parameters
    ----------
    members : sequence of Member
    logs : ndarray of shape (n_members, n, nc)
    """
    pools = []
    for view in VIEWS:
        own = [k for k, member in enumerate(members) if member.view == view and not member.adapts]
        pools.append(np.exp(combine(np.full(len(own), 1.0 / len(own)), logs[own])))
    return float(np.mean([(p * q).sum(axis=1).mean() for p, q in combinations(pools, 2)]))


def _ask(verdict: Verdict, logs: Array, log_odds: Array | None = None) -> Array:
    """Return the committee's log-probabilities, without self-training."""
    shift = verdict.log_odds if log_odds is None else log_odds
    pooled = combine(verdict.weights, logs)
    pooled = temper(pooled, verdict.power * verdict.powers.committee)
    return pooled if shift is None else reweight(pooled, shift)


def assess(
    committee: Committee,
    verdict: Verdict,
    members: Sequence[Member],
    held_out: Sequence[str],
    labeled: Evidence,
    reasons: list[str],
    level: float,
) -> Trust:
    """Say how far to trust a committee.

    Parameters
    ----------
    committee : Committee
    verdict : Verdict
    members : sequence of Member
    held_out : sequence of str
        Names of the held-out sources.
    labeled : Evidence
        Answers of members that were not taught the rows.
    reasons : list of str
        For which held-out sources allow no estimate.
    level : float
        Of the interval.
    """
    left_out, n_labels = verdict.left_out, len(labeled.known.truth)

    known, others = (
        np.exp(_ask(verdict, logs, committee.log_odds))
        for logs in (labeled.known.logs, labeled.others)
    )
    hits = known.argmax(axis=1) == labeled.known.truth
    estimate = None
    if left_out is not None and not reasons:
        estimate = estimate_accuracy(
            left_out, committee.logs, committee.agreed, level, verdict.difference
        )
        if n_labels:
            confidences = known.max(axis=1), others.max(axis=1)
            estimate = add_labels(estimate, *confidences, hits, level)
    elif n_labels >= _MIN_LABELS:
        estimate, reasons = estimate_from_labels(hits, level), []
    accuracy, low, high = (
        (None, None, None) if estimate is None else (estimate.accuracy, estimate.low, estimate.high)
    )
    adapting = [member.label for member in (*members, SELF_TRAINED) if member.adapts]
    return Trust(
        accuracy,
        low,
        high,
        level,
        declined=sum(committee.weights.get(name, 0.0) for name in adapting) < _MIN_WEIGHT,
        reason=explain(verdict, members, reasons, committee.failed),
        candidates=() if left_out is None else tuple(_candidates(committee, verdict, members)),
        folds={} if left_out is None else _known_accuracies(held_out, left_out),
        n_labels=n_labels,
    )


def _candidates(
    committee: Committee, verdict: Verdict, members: Sequence[Member]
) -> list[dict[str, Any]]:
    assert verdict.left_out is not None
    reference = best_ordinary(verdict, members, committee.failed)
    rows: list[dict[str, Any]] = [
        {"name": verdict.choice, "score": verdict.left_out.accuracy, "chosen": True}
    ]
    for k, member in enumerate(members):
        if np.isnan(verdict.scores[k]):
            continue
        rows.append(
            {
                "name": member.label,
                "score": float(verdict.scores[k]),
                "chosen": False,
                "weight": committee.weights.get(member.label, 0.0),
                "reference": k == reference,
            }
        )
    if SELF_TRAINED.label in committee.weights:
        weight = committee.weights[SELF_TRAINED.label]
        rows.append(
            {
                "name": SELF_TRAINED.label,
                "score": verdict.powers.score,
                "chosen": False,
                "weight": weight,
                "reference": False,
            }
        )
    return rows


def _known_accuracies(held_out: Sequence[str], left_out: LeftOut) -> dict[str, float]:
    pairs = zip(held_out, left_out.accuracies, strict=True)
    return {name: accuracy for name, accuracy in pairs if not np.isnan(accuracy)}
