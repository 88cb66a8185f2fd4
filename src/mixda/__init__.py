"""mixda: multi-source domain adaptation with Gaussian mixtures and optimal transport.

Everything public is importable from here and loaded on first use, so ``import mixda`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mixda._version import __version__ as __version__

if TYPE_CHECKING:
    from mixda import chunks as chunks
    from mixda import datasets as datasets
    from mixda import plot as plot
    from mixda import selection as selection
    from mixda._core.errors import MixdaError as MixdaError
    from mixda._core.errors import NoTargetWarning as NoTargetWarning
    from mixda.barycenters import barycenter as barycenter
    from mixda.deep import KD3A as KD3A
    from mixda.deep import M3SDA as M3SDA
    from mixda.deep import CoMDA as CoMDA
    from mixda.deep import LtCMSDA as LtCMSDA
    from mixda.dictionary import *  # noqa: F403
    from mixda.em import *  # noqa: F403
    from mixda.estimators import *  # noqa: F403
    from mixda.mixture import Mixture as Mixture
    from mixda.model import AdaptedModel as AdaptedModel
    from mixda.model import load as load
    from mixda.selection import AutoMSDA as AutoMSDA
    from mixda.transport import *  # noqa: F403
    from mixda.workflow import check as check

# Where each public name lives; the methods are in `mixda.estimators.METHODS`.
_HOME = {
    "MixdaError": "_core.errors",
    "NoTargetWarning": "_core.errors",
    "Mixture": "mixture",
    "fit_mixture": "em",
    "fit_labeled_mixture": "em",
    "fit_domains": "em",
    "fit_private_mixture": "em",
    "transport_plan": "transport",
    "barycentric_map": "transport",
    "mw2": "transport",
    "smw2": "transport",
    "barycenter": "barycenters",
    "Dictionary": "dictionary",
    "learn_dictionary": "dictionary",
    "AdaptedModel": "model",
    "load": "model",
    "check": "workflow",
}
_MODULES = (
    *("benchmark", "chunks", "datasets", "deep", "empirical", "estimators"),
    *("monitoring", "online", "plot", "report", "selection"),
)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        light = [method.name for method in _methods().values() if not method.needs_torch]
        return [*_HOME, *light, "chunks", "datasets", "plot", "selection", "__version__"]
    if name in _HOME:
        return getattr(import_module(f"mixda.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"mixda.{name}")
    if not name.startswith("_") and name in _methods():
        return _methods()[name].load()
    raise AttributeError(f"module 'mixda' has no attribute {name!r}")


def _methods() -> dict[str, Any]:
    from mixda.estimators import METHODS

    return METHODS


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), *_methods(), *_MODULES})
