"""scikit-learn classifiers over the rest of mixda, in SKADA's convention, one file per family."""

from mixda.estimators._base import MultiSourceClassifier
from mixda.estimators._encoders import DomainEncoder, MLPEncoder
from mixda.estimators.gmm import GMMWBT, GMMDaDiL

__all__ = ["GMMWBT", "DomainEncoder", "GMMDaDiL", "MLPEncoder", "MultiSourceClassifier"]
