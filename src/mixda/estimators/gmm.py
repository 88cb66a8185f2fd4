"""GMM-WBT and GMM-DaDiL under one name; each has a file of its own."""

from mixda.estimators.gmm_dadil import GMMDaDiL
from mixda.estimators.gmm_wbt import GMMWBT

__all__ = ["GMMWBT", "GMMDaDiL"]
