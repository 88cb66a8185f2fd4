"""Optimal transport between mixtures: costs, plans, maps and the distances MW2 and SMW2."""

from mixda.transport._plans import Beta as Beta
from mixda.transport._plans import SparsePlan as SparsePlan
from mixda.transport._plans import TransportResult, barycentric_map, mw2, smw2, transport_plan
from mixda.transport._plans import align_labels as align_labels
from mixda.transport._plans import check_same_features as check_same_features
from mixda.transport._plans import cost_matrix as cost_matrix
from mixda.transport._plans import features as features
from mixda.transport._plans import resolve_beta as resolve_beta
from mixda.transport._plans import solve_exact as solve_exact
from mixda.transport._plans import squared_distances as squared_distances

__all__ = ["TransportResult", "barycentric_map", "mw2", "smw2", "transport_plan"]
