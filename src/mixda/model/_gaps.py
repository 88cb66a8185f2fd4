"""Missing values in rows to predict: which rule integrates them out, and what fills them."""

from __future__ import annotations

import numpy as np

from mixda._core.typing import Array
from mixda.mixture import Mixture
from mixda.rules import Affine, Chain, Posterior, Rule


def integrates_gaps(rule: Rule) -> bool:
    """Return whether a rule is the posterior of a mixture over (scaled) features themselves."""
    *scalings, last = getattr(rule, "steps", (rule,))
    if not all(isinstance(step, Affine | Chain) for step in scalings):
        return False
    inner = [part for step in scalings for part in getattr(step, "steps", (step,))]
    return isinstance(last, Posterior) and all(isinstance(part, Affine) for part in inner)


def over_raw_features(mixture: Mixture, encoder: Rule | None) -> Mixture | None:
    """Return a mixture of encoded rows over raw features; None unless the encoder only scales."""
    steps = () if encoder is None else getattr(encoder, "steps", (encoder,))
    scalings = [step for step in steps if isinstance(step, Affine)]
    if len(scalings) < len(steps):
        return None
    for step in reversed(scalings):
        mixture = mixture.affine(-step.mean / step.scale, 1.0 / step.scale)
    return mixture


def one_gaussian(means: Array, stds: Array) -> Mixture:
    """Return a mixture of one component; constant features get the standard deviation 1."""
    return Mixture(np.ones(1), means[None], np.where(stds > 0, stds, 1.0)[None])
