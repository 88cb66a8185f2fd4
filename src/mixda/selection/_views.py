"""Three ways to put domains on a common footing, each a rule per domain, made without labels.

Views differ in what they forgive. A common scale keeps differences between domains, so it is
right where only class proportions differ; each domain's own scale and its ranks undo shifts of
location, scale and shape, but take other class proportions for a shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from mixda._core.typing import Array
from mixda.estimators import rank_to_normal, standardization
from mixda.rules import Affine, Chain, Clip, Interpolate, Linear, Rule

COMMON, OWN, RANKS = "common scale", "own scale", "ranks"
VIEWS = (COMMON, OWN, RANKS)
RAW = "features as given"
TARGET = -1  # position of the target among the domains

_BOUND = 8.0  # standard deviations; further away, a single feature would decide
_MAX_FEATURES = 200  # for everything but trees; more are reduced to principal components


@dataclass(frozen=True, eq=False)
class Views:
    """The maps of all domains into all views.

    Attributes
    ----------
    domains : list of ndarray
        Samples of the sources, then of the target.
    scales, ranks : list of Rule
        Own standardization and rank-to-normal map of each domain.
    projections : dict of str to Rule or None
        Principal components in each view, where there are many features.
    """

    domains: list[Array]
    scales: list[Affine]
    ranks: list[Interpolate]
    projections: dict[str, Rule | None]

    def rule(
        self, view: str, domain: int, sources: Sequence[int], match: Affine | None = None
    ) -> Rule:
        """Return the map of a domain into a view.

        A common scale is that of these sources. `match` follows a domain's own scale or ranks.
        """
        if view == RAW:
            return Chain(())
        if view == COMMON:
            common = standardization(np.vstack([self.domains[k] for k in sources]))
            return Chain((common, Clip(_BOUND)))
        own = self.own_rule(view, domain)
        return Chain((own, Clip(_BOUND)) if match is None else (own, match, Clip(_BOUND)))

    def own_rule(self, view: str, domain: int) -> Rule:
        """Return the map of a domain to its own scale or ranks."""
        return (self.scales if view == OWN else self.ranks)[domain]

    def thinned(self, domain: int, rows: NDArray[np.intp]) -> Views:
        """Return the views if only these rows of a domain were known."""
        domains, scales, ranks = list(self.domains), list(self.scales), list(self.ranks)
        domains[domain] = domains[domain][rows]
        scales[domain] = standardization(domains[domain])
        ranks[domain] = rank_to_normal(domains[domain])
        return replace(self, domains=domains, scales=scales, ranks=ranks)

    def scaled(self) -> list[Array]:
        """Return the samples of each domain on its own scale."""
        return [scale(X) for scale, X in zip(self.scales, self.domains, strict=True)]


def make_views(sources: Sequence[Array], target: Array, seed: int) -> Views:
    """Fit the maps of all domains; no label is involved."""
    domains = [*sources, target]
    views = Views(
        domains,
        [standardization(X) for X in domains],
        [rank_to_normal(X) for X in domains],
        dict.fromkeys((*VIEWS, RAW)),
    )
    everywhere = range(len(sources))
    if target.shape[1] > _MAX_FEATURES:
        for view in VIEWS:
            rules = [views.rule(view, k, everywhere) for k in everywhere]
            Z = np.vstack([rule(X) for rule, X in zip(rules, sources, strict=True)])
            n_components = min(_MAX_FEATURES, len(Z) - 1)
            pca = PCA(n_components, svd_solver="randomized", random_state=seed).fit(Z)
            views.projections[view] = Linear(pca.components_.T, -pca.mean_ @ pca.components_.T)
    return views
