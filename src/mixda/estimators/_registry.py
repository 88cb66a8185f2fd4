"""The one list of methods: class, name on the command line, entries in benchmarks, what it needs.

`mixda` itself, the command line, the benchmarks and the documentation read this list. Light to
import: a class is loaded when it is asked for, so torch is only needed by those that use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

_AS_GIVEN = {"scale": None}  # benchmarks hand the same features to all methods
_PAPER = {**_AS_GIVEN, "classifier": "map"}  # section 3.2


@dataclass(frozen=True)
class Method:
    """A domain adaptation method.

    Attributes
    ----------
    name : str
        Of the class, importable from `mixda`.
    module : str
        Where the class is defined.
    command : str or None
        What ``mixda adapt --method`` calls it; None if it cannot be asked for there.
    entries : mapping of str to mapping
        Names in benchmark tables, each with the parameters that it is always given.
    mixture : bool
        The outcome is a labeled mixture, on which a classifier can be trained.
    oracle : bool
        Uses target labels: an upper bound, not a competitor.
    needs_torch : bool
    needs_several_sources : bool
        Nothing can be learned from one source; `mixda` then falls back and says so.
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

# To add a method, write its class and add one line here.
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
    _over_mixtures("GMMWBT", "gmm", "wbt"),
    _over_mixtures("GMMDaDiL", "gmm", "dadil"),
    Method("AutoMSDA", "mixda.selection.auto", "auto", {"AutoMSDA": {}}),
    _shallow("TargetOnly", "baselines", oracle=True),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
COMMANDS: dict[str, Method] = {  # the default first
    method.command: method for method in reversed(_ALL) if method.command is not None
}
