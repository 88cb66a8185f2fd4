"""Optimal transport between mixtures: costs, plans, maps and the distances MW2 and SMW2."""

from mixda.transport._costs import Beta as Beta
from mixda.transport._costs import LabelWeight as LabelWeight
from mixda.transport._costs import align_labels as align_labels
from mixda.transport._costs import check_same_features as check_same_features
from mixda.transport._costs import cost_matrix as cost_matrix
from mixda.transport._costs import features as features
from mixda.transport._costs import squared_distances as squared_distances
from mixda.transport._exact import Potentials as Potentials
from mixda.transport._exact import SparsePlan as SparsePlan
from mixda.transport._exact import solve_exact as solve_exact
from mixda.transport._plans import TransportResult, barycentric_map, mw2, smw2, transport_plan

__all__ = ["TransportResult", "barycentric_map", "mw2", "smw2", "transport_plan"]
