"""Adapt a saved model further with new rows of its target, without the samples of the sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_number, check_random_state
from mixda.barycenters import merge_mixtures
from mixda.dictionary import Dictionary, learn_dictionary
from mixda.em import fit_mixture
from mixda.estimators import log_linear_pool
from mixda.mixture import Mixture
from mixda.model import AdaptedModel, Trust, outlier_threshold
from mixda.rules import Chain, Posterior, Product, Rule
from mixda.transport import transport_plan

_MIN_ROWS_PER_COMPONENT = 5
_DICTIONARY_PARAMETERS = (
    *("beta", "optimizer", "learning_rate", "damping", "tol"),
    *("component_weights", "precision"),
)


def update(
    model: AdaptedModel, X: Any, *, share: float = 1.0, random_state: Any = 0
) -> AdaptedModel:
    r"""Adapt a model further with new rows of its target, without samples of the sources.

    A `GMMDaDiL` model holds the mixtures of its sources, so the target can be replaced: the
    dictionary is learned again from these mixtures and a mixture of the new rows. With ``share <
    1``, the new rows join the old target instead, and the dictionary takes a few more steps from
    where it was, as in `GMMDaDiL.partial_fit`.

    Other models, such as the committee of `AutoMSDA`, cannot repeat their adaptation without the
    samples of the sources. They follow the target by themselves: a mixture is fitted to the new
    rows, its components get the mean probabilities that the model predicted for their rows before
    any update,

    .. math:: v_k \propto \sum_i r_{ik} \, p(y \mid x_i),

    and this labeled mixture joins the model as one more factor (or replaces that of the last
    update). This corrects single rows by the group that they belong to. It does not help if the
    model is wrong about whole groups: adapt again with the sources then.

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
    if model.method == "GMMDaDiL" and model.dictionary is not None and _holds_target(model):
        adapted = _readapt(model, model.dictionary, Z, share, rng)
    elif share < 1:
        raise MixdaError(
            f"share must be 1 for a {model.method} model, got {share!r}; only GMMDaDiL models can "
            "keep a part of the old target."
        )
    else:
        adapted = _follow(model, X, Z, rng)
    mixtures = [domain.mixture for domain in (*adapted.sources, adapted.target)]
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    done = {"rows": len(X), "date": date, "followed": adapted.dictionary is None}
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


def _readapt(
    model: AdaptedModel, dictionary: Dictionary, Z: Array, share: float, rng: np.random.Generator
) -> AdaptedModel:
    """Run GMM-DaDiL on the mixtures of the sources and a mixture of the new rows."""
    parameters = model.settings.get("parameters", {})
    target = _fit_target(model, Z, rng)
    start: dict[str, Any] = {"n_iter": parameters.get("n_iter", 100)}
    if share < 1:
        most = parameters.get("max_target_components") or model.target.mixture.n_components
        target = merge_mixtures(model.target.mixture, target, share=share, max_components=most)
        start = {"n_iter": parameters.get("online_iter", 10), "init": dictionary}
    learned = learn_dictionary(
        [domain.mixture for domain in model.sources],
        target,
        n_atoms=len(dictionary.atoms),
        n_components=dictionary.atoms[0].n_components,
        random_state=rng,
        **start,
        **{name: parameters[name] for name in _DICTIONARY_PARAMETERS if name in parameters},
    )
    adapted = _with_target(model, target, learned.target, len(Z))
    rule = _swap(model.rule, model.labeled_target, learned.target)
    return replace(adapted, rule=rule, dictionary=learned)


def _follow(model: AdaptedModel, X: Array, Z: Array, rng: np.random.Generator) -> AdaptedModel:
    """Label a mixture of the new rows by the model itself, and let it take part in the rule."""
    target, original = _fit_target(model, Z, rng), _original_rule(model)
    mass = target.responsibilities(Z).T @ original(X) + np.finfo(float).tiny
    labels = mass / mass.sum(axis=1, keepdims=True)
    labeled = replace(target, labels=labels, classes=model.classes)
    encoder = () if model.encoder is None else (model.encoder,)
    rule = log_linear_pool([original, Chain((*encoder, Posterior(labeled)))])
    return replace(_with_target(model, target, labeled, len(Z)), rule=rule, dictionary=None)


def _original_rule(model: AdaptedModel) -> Rule:
    """Return the rule without the factor that an earlier `_follow` added to it."""
    followed = any(done["followed"] for done in model.settings.get("updates", []))
    if followed and isinstance(model.rule, Product) and isinstance(model.rule.rules[0], Chain):
        return model.rule.rules[0].steps[0]
    return model.rule


def _fit_target(model: AdaptedModel, Z: Array, rng: np.random.Generator) -> Mixture:
    """Fit a mixture to the new rows, of the size of the old one if there are rows enough."""
    old = model.target.mixture
    most = max(1, len(Z) // _MIN_ROWS_PER_COMPONENT)
    floor = old.stds.min(axis=0)
    return fit_mixture(Z, min(old.n_components, most), min_std=floor, random_state=rng)


def _with_target(
    model: AdaptedModel, target: Mixture, labeled: Mixture, n_rows: int
) -> AdaptedModel:
    return replace(
        model,
        target=replace(model.target, mixture=target, n_samples=n_rows),
        labeled_target=labeled,
        plan=transport_plan(labeled, target).plan,
    )


def _swap(rule: Rule, old: Mixture | None, new: Mixture) -> Rule:
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
