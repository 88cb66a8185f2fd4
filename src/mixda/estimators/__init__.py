"""scikit-learn classifiers over the rest of mixda, in SKADA's convention, one file per family.

Classes are loaded on first use; `METHODS` knows them all, those of other packages included.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mixda.estimators._registry import COMMANDS as COMMANDS
from mixda.estimators._registry import METHODS as METHODS
from mixda.estimators._registry import Method as Method

if TYPE_CHECKING:
    from mixda.estimators._base import MultiSourceClassifier as MultiSourceClassifier
    from mixda.estimators._export import rule_of as rule_of
    from mixda.estimators._product import log_linear_pool as log_linear_pool
    from mixda.estimators._product import train_rough as train_rough
    from mixda.estimators._scaling import rank_to_normal as rank_to_normal
    from mixda.estimators._scaling import standardization as standardization
    from mixda.estimators.baselines import *  # noqa: F403
    from mixda.estimators.empirical import *  # noqa: F403
    from mixda.estimators.encoders import DomainEncoder as DomainEncoder
    from mixda.estimators.encoders import LDAEncoder as LDAEncoder
    from mixda.estimators.encoders import MLPEncoder as MLPEncoder
    from mixda.estimators.gmm_dadil import *  # noqa: F403
    from mixda.estimators.gmm_otda import *  # noqa: F403
    from mixda.estimators.gmm_wbt import *  # noqa: F403
    from mixda.estimators.jcpot import *  # noqa: F403

_OTHERS = {
    "MultiSourceClassifier": "_base",
    "DomainEncoder": "encoders",
    "LDAEncoder": "encoders",
    "MLPEncoder": "encoders",
    "CanonicalOrder": "_canonical",
    "log_linear_pool": "_product",
    "train_rough": "_product",
    "rank_to_normal": "_scaling",
    "rule_of": "_export",
    "standardization": "_scaling",
}
_PUBLIC = ("DomainEncoder", "LDAEncoder", "MLPEncoder", "MultiSourceClassifier")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        own = [m.name for m in METHODS.values() if m.module.startswith(__name__)]
        return [*own, *_PUBLIC]
    if name in METHODS and METHODS[name].module.startswith(__name__):
        return METHODS[name].load()
    if name in _OTHERS:
        return getattr(import_module(f"{__name__}.{_OTHERS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), *globals()})
