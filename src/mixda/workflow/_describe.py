"""Describe files and models as plain values, to be printed as tables or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixda.checks import read_findings
from mixda.mixture import Mixture, smallest_component
from mixda.model import AdaptedModel, describe_sampling, load
from mixda.tables import open_table
from mixda.transport import mw2


def describe(path: str | Path) -> dict[str, Any]:
    """Return what a ``.gmm``, a ``.mixda`` or a data file holds.

    Examples
    --------
    >>> import os, tempfile
    >>> import mixda
    >>> from mixda.workflow._describe import describe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "p.gmm")
    ...     mixda.Mixture([1.0], [[0.0]], [[1.0]]).save(path)
    ...     contents = describe(path)
    >>> contents["kind"], contents["components"]
    ('mixture (.gmm)', 1)
    """
    if Path(path).suffix.lower() not in (".gmm", ".mixda"):
        return _describe_table(path)
    value = load(path)
    return describe_model(value) if isinstance(value, AdaptedModel) else _describe_mixture(value)


def describe_model(model: AdaptedModel) -> dict[str, Any]:
    """Return what a model is made of, its domains, and their distances to the target."""
    domains = [
        {
            "domain": domain.name,
            "role": "target" if domain is model.target else "source",
            "rows": domain.n_samples,
            "components": domain.mixture.n_components,
            "MW2 to target": None
            if domain is model.target
            else mw2(domain.mixture, model.target.mixture),
        }
        for domain in (*model.sources, model.target)
    ]
    settings = model.settings
    return {
        "kind": "adapted model (.mixda)",
        "method": model.method,
        "classes": [str(name) for name in model.classes],
        "features": list(model.feature_names),
        "left out": settings.get("left_out") or None,
        "checks": [vars(finding) for finding in read_findings(settings.get("checks"))] or None,
        "sampling": describe_sampling(model),
        "space": settings.get("space"),
        "trust": None if model.trust is None else model.trust.sentence(),
        "estimate": None if model.trust is None else model.trust.numbers(),
        "created": settings.get("created"),
        "versions": [f"{name} {version}" for name, version in settings.get("versions", {}).items()],
        "domains": domains,
    }


def describe_trust(model: AdaptedModel, outlier_share: float = 0.0) -> dict[str, Any]:
    """Return what a model says about its accuracy on some rows, as a sentence and in numbers.

    Parameters
    ----------
    model : AdaptedModel
    outlier_share : float
        Share of the rows that are outliers; with many, the estimate does not hold.
    """
    trust = model.trust
    if trust is None:
        return {"trust": None, "estimate": None}
    sentence = trust.sentence_for(model.target.name, outlier_share)
    return {"trust": sentence, "estimate": trust.numbers(outlier_share)}


def _describe_mixture(mixture: Mixture) -> dict[str, Any]:
    names = mixture.feature_names
    classes = mixture.classes
    return {
        "kind": "mixture (.gmm)",
        "name": mixture.info.get("name"),
        "rows": mixture.info.get("n_samples"),
        "components": mixture.n_components,
        "smallest component": _smallest(mixture),
        "features": mixture.n_features if names is None else list(names),
        "classes": None if classes is None else [str(name) for name in classes],
    }


def _smallest(mixture: Mixture) -> str | None:
    count = smallest_component(mixture)
    return None if count is None else f"averages {count:g} row(s)"


def _describe_table(path: str | Path) -> dict[str, Any]:
    table = open_table(path)
    return {
        "kind": "data",
        "files": [str(file) for file in table.files],
        "rows": table.n_rows,
        "columns": [f"{name} ({kind})" for name, kind in table.kinds.items()],
    }
