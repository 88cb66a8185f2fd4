"""Adapt a saved model further with new rows of its target, without the samples of the sources."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_number, check_random_state
from mixda.barycenters import merge_mixtures
from mixda.em import fit_mixture
from mixda.estimators import METHODS, log_linear_pool, rank_to_normal, standardization
from mixda.mixture import Mixture
from mixda.model import AdaptedModel, Trust, outlier_threshold
from mixda.rules import Affine, Chain, Interpolate, Pool, Posterior, Product, Rule
from mixda.transport import transport_plan

_MIN_ROWS_PER_COMPONENT = 5
_OWN_VIEWS = ("own scale", "ranks")  # of a committee's members, at the end of their names
# The mixtures of a model are encoded, balanced and standardized, and its classifier stays.
_GIVEN_MIXTURES = {"encoder": None, "scale": None, "class_prior": "empirical", "classifier": "map"}
_NOT_REPEATED = ("callback", "checkpoint", "n_samples", "verbose")


def update(
    model: AdaptedModel, X: Any, *, share: float = 1.0, random_state: Any = 0
) -> AdaptedModel:
    r"""Adapt a model further with new rows of its target, without samples of the sources.

    * A model whose rule is a mixture (`GMMDaDiL`, `GMMWBT`, `GMMOTDA`) holds the mixtures of its
      sources, so the method runs again on these and a mixture of the new rows. With ``share < 1``
      (`GMMDaDiL` only), the new rows join the old target instead, and the dictionary takes a few
      more steps from where it was, as in `GMMDaDiL.partial_fit`.
    * The committee of `AutoMSDA` keeps its members and their weights. Members that work on the
      target's own scale, or on its ranks, use the moments and quantiles of the new rows.
    * Other models cannot repeat their adaptation without the samples of the sources.

    All but the committee are then pooled with groups of similar rows: a mixture is fitted to the
    new rows, and its components get the mean probabilities that the model has predicted for their
    rows so far,

    .. math:: v_k \propto \sum_i r_{ik} \, p(y \mid x_i).

    This corrects single rows by the group that they belong to. It does not help if the model is
    wrong about whole groups: adapt again with the sources then.

    Parameters
    ----------
    model : AdaptedModel
    X : array-like of shape (n, d) or DataFrame
        New rows, unlabeled.
    share : float
        Weight of the new rows in the target; 1 forgets the old target. `GMMDaDiL` models only.
    random_state : None, int or numpy generator

    Returns
    -------
    AdaptedModel
        With the new rows as its reference. Its accuracy is not estimated.

    Examples
    --------
    >>> from mixda import GMMDaDiL
    >>> from mixda.datasets import make_shifted_toy
    >>> from mixda.monitoring import monitor, update
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> estimator = GMMDaDiL(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model, X = estimator.to_model().with_reference(task.X_target), task.X_target + 0.5
    >>> updated = update(model, X)
    >>> monitor(model, X).alarm, monitor(updated, X).alarm
    (True, False)
    """
    share = check_number(share, "share", above=True, most=1)
    X, rng = model.impute(model.samples(X)), check_random_state(random_state)
    Z = X if model.encoder is None else model.encoder(X)
    if share < 1 and model.method != "GMMDaDiL":
        raise MixdaError(
            f"share must be 1 for a {model.method} model, got {share!r}; only GMMDaDiL models can "
            "keep a part of the old target."
        )
    repeated = model.method in METHODS and METHODS[model.method].mixture and _holds_target(model)
    base = replace(model, rule=_without_groups(model))
    if repeated:
        adapted = _with_groups(_readapt(base, Z, share, rng), model.rule, X, Z)
    elif isinstance(base.rule, Pool):
        adapted = _with_own_scales(_with_target(base, Z, rng), X)
    else:
        adapted = _with_groups(_with_target(base, Z, rng), base.rule, X, Z)
    mixtures = [domain.mixture for domain in (*adapted.sources, adapted.target)]
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    done = {"rows": len(X), "date": date, "repeated": repeated}
    updates = [*model.settings.get("updates", []), done]
    return replace(
        adapted,
        novelty_threshold=outlier_threshold(mixtures),
        trust=_former_trust(model.trust, len(X)),
        settings={**model.settings, "updates": updates},
    ).with_reference(X)


def _holds_target(model: AdaptedModel) -> bool:
    """Whether the labeled mixture of the target is a part of the rule."""
    posteriors: list[Mixture] = []

    def visit(rule: Rule) -> Rule:
        if isinstance(rule, Posterior):
            posteriors.append(rule.mixture)
        return _with_parts(rule, visit)

    visit(model.rule)
    return any(mixture == model.labeled_target for mixture in posteriors)


def _readapt(model: AdaptedModel, Z: Array, share: float, rng: np.random.Generator) -> AdaptedModel:
    """Run the method again on the mixtures of the sources and a mixture of the new rows."""
    parameters = {**model.settings.get("parameters", {}), **_GIVEN_MIXTURES}
    target = _fit_target(model, Z, rng)
    if share < 1:
        most = parameters.get("max_target_components") or model.target.mixture.n_components
        target = merge_mixtures(model.target.mixture, target, share=share, max_components=most)
        parameters |= {"init": model.dictionary, "n_iter": parameters.get("online_iter", 10)}
    known = {*inspect.signature(METHODS[model.method].load()).parameters} - {*_NOT_REPEATED}
    given = {name: value for name, value in parameters.items() if name in known}
    estimator = METHODS[model.method].load()(**{**given, "random_state": rng})
    unnamed = [replace(domain.mixture, feature_names=None) for domain in model.sources]
    again = estimator.fit_mixtures(unnamed, replace(target, feature_names=None)).to_model()
    return replace(
        model,
        target=replace(model.target, mixture=target, n_samples=len(Z)),
        labeled_target=again.labeled_target,
        plan=again.plan,
        rule=_swap(model.rule, model.labeled_target, again.labeled_target),
        dictionary=again.dictionary,
    )


def _with_target(model: AdaptedModel, Z: Array, rng: np.random.Generator) -> AdaptedModel:
    target = replace(model.target, mixture=_fit_target(model, Z, rng), n_samples=len(Z))
    return replace(model, target=target, labeled_target=None, plan=None, dictionary=None)


def _with_own_scales(model: AdaptedModel, X: Array) -> AdaptedModel:
    """Return a committee whose members of an own scale, or of ranks, use that of the new rows."""
    names, pool = [str(name) for name in model.settings.get("experts") or ()], model.rule
    if not isinstance(pool, Pool) or len(names) != len(pool.members):
        return model
    own = {int(v) for v, name in zip(pool.view, names, strict=True) if name.endswith(_OWN_VIEWS)}
    views = tuple(_rescaled(v, X) if k in own else v for k, v in enumerate(pool.views))
    return replace(model, rule=replace(pool, views=views))


def _rescaled(view: Rule, X: Array) -> Rule:
    """Return a view with the moments, or the quantiles, of `X` in place of its own.

    They come first in a view; what follows, such as a match to class proportions, stays.
    """
    if isinstance(view, Affine):
        return standardization(X)
    if isinstance(view, Interpolate):
        return rank_to_normal(X)
    if isinstance(view, Chain) and view.steps:
        first, *others = view.steps
        return Chain((_rescaled(first, X), *others))
    return view


def _with_groups(model: AdaptedModel, labels: Rule, X: Array, Z: Array) -> AdaptedModel:
    """Let the groups of similar rows, labeled by a rule, take part in the rule of the model."""
    target = model.target.mixture
    mass = target.responsibilities(Z).T @ labels(X) + np.finfo(float).tiny
    labeled = replace(target, labels=mass / mass.sum(axis=1, keepdims=True), classes=model.classes)
    encoder = () if model.encoder is None else (model.encoder,)
    rule = log_linear_pool([model.rule, Chain((*encoder, Posterior(labeled)))])
    if model.labeled_target is not None:
        return replace(model, rule=rule)
    plan = transport_plan(labeled, target).plan
    return replace(model, rule=rule, labeled_target=labeled, plan=plan)


def _without_groups(model: AdaptedModel) -> Rule:
    """Return the rule without the factor that an earlier update added to it."""
    rule = model.rule
    if model.settings.get("updates") and isinstance(rule, Product):
        first = rule.rules[0]
        return first.steps[0] if isinstance(first, Chain) else rule
    return rule


def _fit_target(model: AdaptedModel, Z: Array, rng: np.random.Generator) -> Mixture:
    """Fit a mixture to the new rows, of the size of the old one if there are rows enough."""
    old = model.target.mixture
    most = max(1, len(Z) // _MIN_ROWS_PER_COMPONENT)
    floor = old.stds.min(axis=0)
    return fit_mixture(
        Z,
        min(old.n_components, most),
        min_std=floor,
        min_component_rows=_MIN_ROWS_PER_COMPONENT,
        allow_exposed_rows=True,  # of fewer than five rows in all; `AdaptedModel.save` tells
        random_state=rng,
    )


def _swap(rule: Rule, old: Any, new: Any) -> Rule:
    """Return the rule with one mixture in place of another."""
    if isinstance(rule, Posterior):
        return Posterior(new) if rule.mixture == old else rule
    return _with_parts(rule, lambda part: _swap(part, old, new))


def _with_parts(rule: Rule, change: Callable[[Rule], Rule]) -> Rule:
    """Return a rule whose parts were changed."""
    parts: dict[str, Any] = {}
    for field in fields(rule):  # type: ignore[arg-type]  # all rules are dataclasses
        value = getattr(rule, field.name)
        if isinstance(value, Rule):
            parts[field.name] = change(value)
        elif isinstance(value, tuple) and all(isinstance(part, Rule) for part in value):
            parts[field.name] = tuple(change(part) for part in value)
    return replace(rule, **parts) if parts else rule  # type: ignore[type-var]


def _former_trust(trust: Trust | None, n_rows: int) -> Trust | None:
    """Return a trust without an estimate: that of the former target does not hold any longer."""
    if trust is None:
        return None
    was = "" if trust.accuracy is None else f"; before, it was estimated at {trust.accuracy:.0%}"
    return Trust(declined=trust.declined, reason=f"The model was updated with {n_rows} rows{was}")
