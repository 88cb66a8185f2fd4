"""scikit-learn classifiers over the rest of mixda, in SKADA's convention, one file per family."""

from mixda.estimators._base import MultiSourceClassifier
from mixda.estimators._encoders import DomainEncoder, MLPEncoder
from mixda.estimators.baselines import SourceOnly, TargetOnly
from mixda.estimators.empirical import WBT, WJDOT, DaDiL
from mixda.estimators.gmm import GMMWBT, GMMDaDiL
from mixda.estimators.jcpot import JCPOT
from mixda.estimators.otda import GMMOTDA

__all__ = [
    "GMMOTDA",
    "GMMWBT",
    "JCPOT",
    "WBT",
    "WJDOT",
    "DaDiL",
    "DomainEncoder",
    "GMMDaDiL",
    "MLPEncoder",
    "MultiSourceClassifier",
    "SourceOnly",
    "TargetOnly",
]
