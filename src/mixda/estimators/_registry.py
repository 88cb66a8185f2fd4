"""The registry of methods: class, command-line name, benchmark entries, requirements.

`mixda`, the command line, the benchmark, the tests and the documentation read this list. Classes
are imported on first use, so only the deep methods need torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

_AS_GIVEN = {"scale": None}  # benchmarks give the same features to all methods
_PAPER = {**_AS_GIVEN, "classifier": "map", "preset": "paper"}  # section 3.2


@dataclass(frozen=True)
class Method:
    """A domain adaptation method.

    Attributes
    ----------
    name : str
        Name of the class, importable from `mixda`.
    module : str
        Module that defines the class.
    command : str or None
        Name for ``mixda adapt --method``; None if it is not available there.
    entries : mapping of str to mapping
        Names in benchmark tables, each with its fixed parameters.
    mixture : bool
        Whether the method learns a labeled mixture, on which a classifier can be trained.
    oracle : bool
        Whether the method uses target labels and is an upper bound.
    needs_torch : bool
    needs_several_sources : bool
        Whether one source is not enough.
    """

    name: str
    module: str
    command: str | None = None
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    mixture: bool = False
    oracle: bool = False
    needs_torch: bool = False
    needs_several_sources: bool = False

    def load(self) -> type[Any]:
        """Import the class.

        Examples
        --------
        >>> from mixda.estimators import METHODS
        >>> METHODS["GMMWBT"].load().__name__
        'GMMWBT'
        """
        loaded: type[Any] = getattr(import_module(self.module), self.name)
        return loaded


def _shallow(name: str, file: str, command: str | None = None, **more: Any) -> Method:
    entries = more.pop("entries", {name: _AS_GIVEN})
    return Method(name, f"mixda.estimators.{file}", command, entries, **more)


def _deep(name: str, file: str) -> Method:
    return Method(name, f"mixda.deep.{file}", entries={name: {}}, needs_torch=True)


def _over_mixtures(name: str, file: str, command: str, **more: Any) -> Method:
    return _shallow(name, file, command, entries={name: _PAPER}, mixture=True, **more)


_BY_METHOD = {f"DaDiL-{kind}": {"method": kind, **_AS_GIVEN} for kind in "RE"}

# To add a method, write the class and add one line here; tests/estimators/test_contract.py does
# the rest.
_ALL = (
    _shallow("SourceOnly", "baselines", "source"),
    _deep("M3SDA", "m3sda"),
    _deep("LtCMSDA", "ltc"),
    _deep("KD3A", "kd3a"),
    _deep("CoMDA", "comda"),
    _shallow("JCPOT", "jcpot", "jcpot"),
    _shallow("WJDOT", "empirical", "wjdot"),
    _shallow("WBT", "empirical", "sample-wbt"),
    _shallow("DaDiL", "empirical", "sample-dadil", entries=_BY_METHOD),
    _over_mixtures("GMMOTDA", "gmm_otda", "otda"),
    _over_mixtures("GMMWBT", "gmm_wbt", "wbt"),
    _over_mixtures("GMMDaDiL", "gmm_dadil", "dadil"),
    Method("AutoMSDA", "mixda.selection.auto", "auto", {"AutoMSDA": {}}),
    _shallow("TargetOnly", "baselines", oracle=True),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
COMMANDS: dict[str, Method] = {  # the default first
    method.command: method for method in reversed(_ALL) if method.command is not None
}
