"""Why a row got its class, and which features moved between the sources and the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda.mixture import Mixture, log_gaussians, normalize_log_rows
from mixda.model._linear import as_linear, decode
from mixda.rules import Affine, Chain, Pool, Posterior, Product, Rule, smooth_logs

Moments = tuple[Array, Array]  # mean and standard deviation of each feature

_LOG_2PI = float(np.log(2.0 * np.pi))
_MIN_PROBA = 1e-12  # whose logarithm is taken
_MIN_LABEL = 1e-9  # shares of classes in a component below it are rounding errors
_N_NEIGHBORS = 3
_MAX_ORDERS = 16  # in which features are switched, for Shapley values
_MAX_VALUES = 1 << 25  # evaluated for them


@dataclass(frozen=True)
class Contribution:
    """What the value of one feature adds to the log-odds of a class.

    Attributes
    ----------
    feature : str
    value : float
        Of the row, in the units of the user; NaN if it is missing.
    log_odds : float
        Positive if the value speaks for the class.
    """

    feature: str
    value: float
    log_odds: float


@dataclass(frozen=True)
class Neighbor:
    """A component of a mixture near a row.

    Attributes
    ----------
    domain : str
    label : str
        Its most probable class.
    probability : float
        That the row comes from this component, if it comes from this mixture.
    distance : float
        Root mean square of the differences over features, in standard deviations of the component.
    """

    domain: str
    label: str
    probability: float
    distance: float


@dataclass(frozen=True)
class MemberVote:
    """What one member of a pool adds to the log-odds of a class.

    Attributes
    ----------
    name : str
    log_odds : float
        Power of the member times its own log-odds; positive if it votes for the class.
    """

    name: str
    log_odds: float


@dataclass(frozen=True)
class Explanation:
    """Why a model prefers one class to another for a row.

    Attributes
    ----------
    label, against : str
        The predicted class, and the class that it is compared with.
    probability : float
        Of the predicted class.
    log_odds : float
        Logarithm of the ratio of both probabilities: `baseline` plus the sum of `contributions`.
    baseline : float
        The part that no feature explains: the log-odds before the row is seen.
    contributions : tuple of Contribution
        One for each feature, the largest first.
    neighbors : tuple of Neighbor
        The nearest components of the labeled mixture of the target, or of the sources.
    outlier : bool
        Whether the row is far from all data of the model; then the explanation means little.
    method : {"exact", "shapley"}
        "exact" if a mixture over the features decides, else sampled Shapley values; see `note`.
    members : tuple of MemberVote
        If the rule is a pool, as that of `AutoMSDA`: what each member adds, the largest first. The
        votes add up to the log-odds. Empty for other rules.
    """

    label: str
    against: str
    probability: float
    log_odds: float
    baseline: float
    contributions: tuple[Contribution, ...]
    neighbors: tuple[Neighbor, ...]
    outlier: bool
    method: str
    members: tuple[MemberVote, ...] = ()

    @property
    def note(self) -> str:
        """What the contributions are, in a sentence."""
        if self.method == "exact":
            return "Contributions are exact: one mixture over the features decides."
        return (
            "No single mixture decides, so the log-odds have no exact parts per feature: "
            "contributions are Shapley values relative to the mean of the target, averaged over a "
            "few orders of the features. They add up to the log-odds; single values are "
            "approximate."
        )

    def to_json(self) -> dict[str, Any]:
        """Return all fields and the note as JSON values; a missing value is None."""
        values = {**asdict(self), "note": self.note}
        for part in values["contributions"]:
            part["value"] = None if np.isnan(part["value"]) else part["value"]
        return values

    def __str__(self) -> str:
        shown = ", ".join(f"{c.feature} ({c.log_odds:+.2g})" for c in self.contributions[:5])
        return (
            f"{self.label} with probability {self.probability:.0%}, rather than {self.against}: "
            f"log-odds {self.log_odds:.2f}, mostly from {shown}."
        )


@dataclass(frozen=True)
class Shift:
    """How far the mean of a feature moved from the sources to the target.

    Attributes
    ----------
    label : str or None
        The class; None if the model has no labeled mixture of the target, for all classes.
    feature : str
    source, target : float
        Means, in the units of the user.
    size : float
        The difference in standard deviations of the feature within the sources' class.
    """

    label: str | None
    feature: str
    source: float
    target: float
    size: float


def explain_row(model: Any, X: Array, against: Any = None) -> Explanation:
    """Explain one row, shape (1, d); see `AdaptedModel.explain`."""
    filled = model.impute(X)
    proba = model.predict_proba(X)[0]
    c = int(proba.argmax())
    a = _other_class(model.classes, proba, c, against)
    exact = _exact(model.rule, X, c, a)
    baseline, parts = _shapley(model, filled, c, a) if exact is None else exact
    order = np.argsort(-np.abs(parts), kind="stable")
    names = model.feature_names
    contributions = [Contribution(names[j], float(X[0, j]), float(parts[j])) for j in order]
    return Explanation(
        label=str(model.classes[c]),
        against=str(model.classes[a]),
        probability=float(proba[c]),
        log_odds=float(baseline + parts.sum()),
        baseline=float(baseline),
        contributions=tuple(contributions),
        neighbors=_neighbors(model, filled if model.encoder is None else model.encoder(filled)),
        outlier=bool(model.outliers(filled)[0]),
        method="shapley" if exact is None else "exact",
        members=_votes(model, filled, c, a),
    )


def _votes(model: Any, X: Array, c: int, a: int) -> tuple[MemberVote, ...]:
    """Return what each factor of a pool adds to the log-odds; all together are the log-odds."""
    logs = _factor_logs(model.rule, X)
    if logs is None:
        return ()
    names = [str(name) for name in model.settings.get("experts") or ()]
    if isinstance(_steps(model.rule)[-1], Pool):
        names = [*names, "class proportions"] if len(names) == len(logs) - 1 else []
    elif model.settings.get("updates"):
        names = ["model", "groups of the rows of the last update"]
    else:
        names = ["classifier of the sources", "mixture of the target"]
    if len(names) != len(logs):
        names = [f"factor {k + 1}" for k in range(len(logs))]
    votes = [
        MemberVote(name, float(own[0, c] - own[0, a]))
        for name, own in zip(names, logs, strict=True)
    ]
    votes = [vote for vote in votes if vote.name != "class proportions" or vote.log_odds]
    return tuple(sorted(votes, key=lambda vote: -abs(vote.log_odds)))


def _factor_logs(rule: Rule, X: Array) -> list[Array] | None:
    """Return the logarithms of the factors of a pool, each shape (n, nc); None for other rules."""
    *first, rule = _steps(rule)
    X = Chain(tuple(first))(X)
    if isinstance(rule, Pool):
        views = [view(X) for view in rule.views]
        logs = [
            weight * smooth_logs(member(views[view]), rule.smoothing)
            for weight, member, view in zip(rule.weights, rule.members, rule.view, strict=True)
        ]
        return [*logs, np.tile(rule.log_odds, (len(X), 1))]
    if isinstance(rule, Product):
        tiny = np.finfo(float).tiny
        return [
            power * np.log(np.maximum(part(X), tiny))
            for power, part in zip(rule.powers, rule.rules, strict=True)
        ]
    return None


def _log_odds(rule: Rule, X: Array, c: int, a: int) -> Array:
    """Return the log-odds of class c against class a for each row, shape (n,)."""
    factors = _factor_logs(rule, X)
    logs = np.log(np.maximum(rule(X), _MIN_PROBA)) if factors is None else sum(factors)
    odds: Array = logs[:, c] - logs[:, a]  # type: ignore[index]
    return odds


def _other_class(classes: NDArray[Any], proba: Array, c: int, against: Any) -> int:
    if against is None:
        return int(np.argsort(-proba, kind="stable")[1]) if len(proba) > 1 else c
    places = [k for k, name in enumerate(classes) if str(name) == str(against)]
    if not places:
        raise MixdaError(f"against must be one of {classes.tolist()}, got {against!r}.")
    return places[0]


def _exact(rule: Rule, X: Array, c: int, a: int) -> tuple[float, Array] | None:
    r"""Return the parts of the log-odds of a diagonal mixture, if one decides.

    With the responsibilities :math:`r_k` of the components within a class and :math:`w_k = p_k
    v_{k,y}`, the logarithm of :math:`\sum_k w_k \prod_j n_{kj}` is exactly
    :math:`\sum_k r_k \log(w_k / r_k) + \sum_j \sum_k r_k \log n_{kj}`. Shares of labels below
    1e-9 are left out: they are rounding errors, and far from the class they would decide alone.
    """
    *scalings, last = _steps(rule)
    if not isinstance(last, Posterior) or not all(isinstance(s, Affine) for s in scalings):
        return None
    mixture, z = last.mixture, Chain(tuple(scalings))(X)
    standardized = (z - mixture.means) / mixture.stds
    log_densities = -0.5 * (standardized**2 + _LOG_2PI) - np.log(mixture.stds)
    log_densities[:, np.isnan(X[0])] = 0.0  # missing values are integrated out
    baseline, parts = 0.0, np.zeros(X.shape[1])
    for sign, place in ((1.0, c), (-1.0, a)):
        shares = np.asarray(mixture.labels)[:, place]
        weights = mixture.weights * np.where(shares > _MIN_LABEL, shares, 0.0)
        known = weights > 0
        if not known.any():
            return None
        logs = np.log(weights[known])
        share = (logs + log_densities[known].sum(axis=1))[None]
        normalize_log_rows(share)
        r = share[0]
        baseline += sign * float(r @ (logs - np.log(np.maximum(r, np.finfo(float).tiny))))
        parts += sign * (r @ log_densities[known])
    return baseline, parts


def _steps(rule: Rule) -> list[Rule]:
    """Return the steps of a rule, and those of chains within it."""
    if not isinstance(rule, Chain):
        return [rule]
    return [inner for step in rule.steps for inner in _steps(step)]


def _shapley(model: Any, X: Array, c: int, a: int) -> tuple[float, Array]:
    """Return the log-odds of a typical row of the target, and what each feature changes.

    Features are switched from the typical value to that of the row one by one. The changes add up
    in each order; they are averaged over several orders and their reverses.
    """
    d = X.shape[1]
    typical = _typical_row(model)
    n_orders = int(np.clip(_MAX_VALUES // (d * d) // 2, 1, _MAX_ORDERS // 2))
    rng, parts = np.random.default_rng(0), np.zeros(d)
    switched = np.tri(d + 1, d, -1, dtype=bool)  # row i: the first i features are those of X
    for _ in range(n_orders):
        order = rng.permutation(d)
        for one in (order, order[::-1]):
            rows = np.empty((d + 1, d))
            rows[:, one] = np.where(switched, X[0, one], typical[one])
            parts[one] += np.diff(_log_odds(model.rule, rows, c, a))
    start = _log_odds(model.rule, typical[None], c, a)
    return float(start[0]), parts / (2 * n_orders)


def _typical_row(model: Any) -> Array:
    if model.reference is not None:
        return np.asarray(model.reference.means)
    mean = model.target.mixture.moments()[0]
    decoded = decode(model.encoder, len(model.feature_names), mean[None])
    if decoded is None:
        raise MixdaError(
            "the model does not know a typical row of the target in the units of its columns; "
            "give it the rows of the target (AdaptedModel.with_reference)."
        )
    return np.asarray(decoded[0])


def _neighbors(model: Any, z: Array) -> tuple[Neighbor, ...]:
    """Return the nearest components, of the labeled target if there is one, else of sources."""
    domains = [(model.target.name, model.labeled_target)]
    if model.labeled_target is None:
        domains = [(domain.name, domain.mixture) for domain in model.sources]
    neighbors = []
    for name, mixture in domains:
        logs = log_gaussians(z, mixture.means, mixture.stds)
        with np.errstate(divide="ignore"):
            logs = logs + np.log(mixture.weights)
        normalize_log_rows(logs)
        distances = np.sqrt((((z - mixture.means) / mixture.stds) ** 2).mean(axis=1))
        winners = mixture.classes[np.asarray(mixture.labels).argmax(axis=1)]
        for k in np.argsort(-logs[0], kind="stable")[:_N_NEIGHBORS]:
            neighbors.append(
                Neighbor(name, str(winners[k]), float(logs[0, k]), float(distances[k]))
            )
    by_distance = sorted(neighbors, key=lambda n: (-n.probability, n.distance))
    return tuple(by_distance[:_N_NEIGHBORS])


def mean_shifts(model: Any, n_features: int | None) -> tuple[Shift, ...]:
    """Return the features that moved most, for each class; see `AdaptedModel.shifts`."""
    d = len(model.feature_names)
    linear = as_linear(model.encoder, d)
    if linear is None or np.linalg.matrix_rank(linear[0]) < d:
        raise MixdaError(
            "the mixtures of this model are over learned features (encoder), so shifts cannot be "
            "given in the units of its columns; adapt with preset='paper' or with AutoMSDA."
        )
    if model.settings.get("parameters", {}).get("scale") == "domain":
        raise MixdaError(
            "each domain of this model was standardized by itself (scale='domain'), so it does not "
            "know how far features moved; adapt with scale='sources' or with AutoMSDA."
        )
    back = np.linalg.pinv(linear[0])
    shifts: list[Shift] = []
    for label, source, target in _class_moments(model):
        means = [(moments[0] - linear[1]) @ back for moments in (source, target)]
        spread = np.sqrt(source[1] ** 2 @ back**2)
        sizes = (means[1] - means[0]) / np.where(spread > 0, spread, 1.0)
        order = np.argsort(-np.abs(sizes), kind="stable")[:n_features]
        shifts += [
            Shift(label, model.feature_names[j], *(float(v[j]) for v in (*means, sizes)))
            for j in order
        ]
    return tuple(shifts)


def _class_moments(model: Any) -> list[tuple[str | None, Moments, Moments]]:
    """Return moments of the sources and of the target, for each class that both have."""
    sources = [domain.mixture for domain in model.sources]
    if model.labeled_target is None:
        return [(None, _mean_moments(sources), model.target.mixture.moments())]
    moments: list[tuple[str | None, Moments, Moments]] = []
    for name in model.classes:
        own = [part for part in (_class_part(p, name) for p in sources) if part is not None]
        target = _class_part(model.labeled_target, name)
        if own and target is not None:
            moments.append((str(name), _mean_moments(own), target.moments()))
    return moments


def _class_part(mixture: Mixture, name: Any) -> Mixture | None:
    """Return the mixture of one class, or None if it has no mass."""
    place = [k for k, own in enumerate(mixture.classes) if own == name]  # type: ignore[arg-type]
    weights = mixture.weights * np.asarray(mixture.labels)[:, place].sum(axis=1)
    if weights.sum() <= _MIN_PROBA:
        return None
    return Mixture(weights / weights.sum(), mixture.means, mixture.stds)


def _mean_moments(mixtures: list[Mixture]) -> Moments:
    moments = [mixture.moments() for mixture in mixtures]
    return np.mean([m for m, _ in moments], axis=0), np.mean([s for _, s in moments], axis=0)
