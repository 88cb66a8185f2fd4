"""Barycenters of mixtures (Algorithm 1 of the paper)."""

from mixda.barycenters._barycenter import BarycenterResult, barycenter
from mixda.barycenters._barycenter import auto_beta as auto_beta
from mixda.barycenters._barycenter import label_weight as label_weight
from mixda.barycenters._fixed_point import MIN_INPUTS_FOR_THREADS as MIN_INPUTS_FOR_THREADS
from mixda.barycenters._fixed_point import Alignment as Alignment
from mixda.barycenters._fixed_point import Gram as Gram
from mixda.barycenters._fixed_point import fixed_point as fixed_point
from mixda.barycenters._fixed_point import image_costs as image_costs
from mixda.barycenters._merge import merge_mixtures as merge_mixtures
from mixda.barycenters._starts import first_origin as first_origin
from mixda.barycenters._starts import resample as resample

__all__ = ["BarycenterResult", "barycenter"]
