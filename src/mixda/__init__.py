"""mixda: multi-source domain adaptation with Gaussian mixtures and optimal transport.

Everything public is importable from here and loaded on first use, so ``import mixda`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Mixture": "mixture",
    "fit_mixture": "em",
    "fit_labeled_mixture": "em",
    "fit_domains": "em",
    "transport_plan": "transport",
    "barycentric_map": "transport",
    "mw2": "transport",
    "smw2": "transport",
    "barycenter": "barycenters",
    "Dictionary": "dictionary",
    "learn_dictionary": "dictionary",
    "AdaptedModel": "model",
    "load": "model",
    "GMMWBT": "estimators",
    "GMMDaDiL": "estimators",
    "GMMOTDA": "estimators",
    "WBT": "estimators",
    "DaDiL": "estimators",
    "WJDOT": "estimators",
    "JCPOT": "estimators",
    "SourceOnly": "estimators",
    "TargetOnly": "estimators",
    "AutoMSDA": "selection",
}
_DEEP = ("CoMDA", "KD3A", "LtCMSDA", "M3SDA")  # need torch, so not in __all__
_MODULES = (
    "benchmark",
    "chunks",
    "datasets",
    "deep",
    "empirical",
    "estimators",
    "online",
    "plot",
    "report",
    "selection",
)

__all__ = [
    "GMMOTDA",
    "GMMWBT",
    "JCPOT",
    "WBT",
    "WJDOT",
    "AdaptedModel",
    "AutoMSDA",
    "DaDiL",
    "Dictionary",
    "GMMDaDiL",
    "Mixture",
    "SourceOnly",
    "TargetOnly",
    "__version__",
    "barycenter",
    "barycentric_map",
    "chunks",
    "datasets",
    "fit_domains",
    "fit_labeled_mixture",
    "fit_mixture",
    "learn_dictionary",
    "load",
    "mw2",
    "plot",
    "selection",
    "smw2",
    "transport_plan",
]

if TYPE_CHECKING:
    import mixda.chunks as chunks
    import mixda.datasets as datasets
    import mixda.plot as plot
    import mixda.selection as selection
    from mixda.barycenters import barycenter
    from mixda.deep import KD3A as KD3A
    from mixda.deep import M3SDA as M3SDA
    from mixda.deep import CoMDA as CoMDA
    from mixda.deep import LtCMSDA as LtCMSDA
    from mixda.dictionary import Dictionary, learn_dictionary
    from mixda.em import fit_domains, fit_labeled_mixture, fit_mixture
    from mixda.estimators import (
        GMMOTDA,
        GMMWBT,
        JCPOT,
        WBT,
        WJDOT,
        DaDiL,
        GMMDaDiL,
        SourceOnly,
        TargetOnly,
    )
    from mixda.mixture import Mixture
    from mixda.model import AdaptedModel, load
    from mixda.selection import AutoMSDA
    from mixda.transport import barycentric_map, mw2, smw2, transport_plan


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"mixda.{_HOME[name]}"), name)
    if name in _DEEP:
        return getattr(import_module("mixda.deep"), name)
    if name in _MODULES:
        return import_module(f"mixda.{name}")
    raise AttributeError(f"module 'mixda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_DEEP, *_MODULES})
