"""What files hold and what models are, as plain values that print as tables or JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mixda.mixture import Mixture
from mixda.model import AdaptedModel, load
from mixda.tables import open_table
from mixda.transport import mw2

Percent = Callable[[float], str]  # how a share is written

_OTHER_DATA = 0.1  # of the rows: such data are not the target that the estimate is for
_NUMBERS = ("accuracy", "low", "high", "level")


def describe(path: str | Path) -> dict[str, Any]:
    """Return what a ``.gmm``, a ``.mixda`` or a data file holds.

    Examples
    --------
    >>> import os, tempfile
    >>> import mixda
    >>> from mixda._describe import describe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "p.gmm")
    ...     mixda.Mixture([1.0], [[0.0]], [[1.0]]).save(path)
    ...     found = describe(path)
    >>> found["kind"], found["components"]
    ('mixture (.gmm)', 1)
    """
    if Path(path).suffix.lower() not in (".gmm", ".mixda"):
        return _describe_table(path)
    found = load(path)
    return describe_model(found) if isinstance(found, AdaptedModel) else _describe_mixture(found)


def describe_model(model: AdaptedModel) -> dict[str, Any]:
    """Return the domains of a model, how far they are from the target, and what it is made of."""
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
        "trust": trust_sentence(model),
        "estimate": trust_numbers(model),
        "created": settings.get("created"),
        "versions": [f"{name} {version}" for name, version in settings.get("versions", {}).items()],
        "domains": domains,
    }


def trust_sentence(model: AdaptedModel, far: float | None = None) -> str | None:
    """Say how far to trust a model and whether adaptation was declined, if it has an opinion.

    Given `far`, the share of some rows that are far from all that is known, say whether the
    estimate holds for them.

    Examples
    --------
    >>> from mixda import GMMWBT
    >>> from mixda._describe import trust_sentence
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> estimator = GMMWBT(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> trust_sentence(estimator.to_model()) is None
    True
    """
    trust = model.trust or {}
    if far is None:
        return describe_trust(trust)
    return describe_trust_in_rows(trust, model.target.name, far)


def trust_numbers(model: AdaptedModel, far: float = 0.0) -> dict[str, Any] | None:
    """Return the numbers of `trust_sentence`: accuracy, low, high, level, and declined.

    The accuracy is None where there is no estimate, or none that holds for the rows.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from mixda import SourceOnly
    >>> from mixda._describe import trust_numbers
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = SourceOnly().fit(task.X, task.y, sample_domain=task.sample_domain).to_model()
    >>> trust_numbers(model) is None
    True
    >>> trust_numbers(replace(model, trust={"accuracy": 0.9}))
    {'accuracy': 0.9, 'low': None, 'high': None, 'level': None, 'declined': False}
    """
    trust = model.trust
    if not trust:
        return None
    numbers = {name: trust.get(name) if estimate_holds(far) else None for name in _NUMBERS}
    return {**numbers, "declined": bool(trust.get("declined"))}


def estimate_holds(far: float) -> bool:
    """Whether an estimate for the target can hold for rows of which this share is far."""
    return far <= _OTHER_DATA


def describe_trust_in_rows(
    trust: Mapping[str, Any], target: str, far: float, percent: Percent = "{:.0%}".format
) -> str | None:
    """Say what `describe_trust` says to rows that may not be those that the estimate is for.

    Examples
    --------
    >>> from mixda._describe import describe_trust_in_rows
    >>> print(describe_trust_in_rows({"accuracy": 0.9}, "plant", far=0.01))
    Estimated without any label of the target: right for 90% of its samples. The estimate is \
for plant, the target that the model was adapted to, not for other data.
    >>> print(describe_trust_in_rows({"accuracy": 0.9}, "plant", far=0.4))
    The accuracy estimated for plant, the target that the model was adapted to, does not hold \
here: 40% of the rows are far from everything the model knows.
    """
    if trust.get("accuracy") is None:
        return describe_trust(trust, percent)
    who = f"{target}, the target that the model was adapted to,"
    if estimate_holds(far):
        return f"{describe_trust(trust, percent)} The estimate is for {who} not for other data."
    return (
        f"The accuracy estimated for {who} does not hold here: {percent(far)} of the rows are far "
        "from everything the model knows."
    )


def describe_trust(trust: Mapping[str, Any], percent: Percent = "{:.0%}".format) -> str | None:
    """Say in a sentence or two what `AdaptedModel.trust` or `Trust.to_json()` holds.

    Examples
    --------
    >>> from mixda._describe import describe_trust
    >>> describe_trust({"accuracy": 0.9, "reason": "Methods agree."})
    'Estimated without any label of the target: right for 90% of its samples. Methods agree.'
    >>> describe_trust({"accuracy": None, "declined": True})
    'Accuracy on the target not estimated. Adaptation was declined.'
    """
    if not trust:
        return None
    estimate = "Accuracy on the target not estimated"
    if trust.get("accuracy") is not None:
        span = trust_range(trust, percent)
        estimate = (
            f"Estimated without any label of the target: right for {percent(trust['accuracy'])} "
            f"of its samples{f' ({span})' if span else ''}"
        )
    return f"{estimate}. {trust_reason(trust)}".rstrip()


def trust_reason(trust: Mapping[str, Any]) -> str:
    """Return the reason as a sentence; empty if there is none."""
    reason = str(trust.get("reason") or "").strip().rstrip(".")
    if not reason and trust.get("declined"):
        reason = "Adaptation was declined"
    return reason and f"{reason}."


def trust_range(trust: Mapping[str, Any], percent: Percent = "{:.0%}".format) -> str:
    """Say between what the accuracy is estimated to be; empty if there is no interval.

    Examples
    --------
    >>> from mixda._describe import trust_range
    >>> trust_range({"low": 0.88, "high": 0.97, "level": 0.8})
    'between 88% and 97%, meant to hold 80% of the time'
    """
    low, high, level = trust.get("low"), trust.get("high"), trust.get("level")
    if low is None or high is None:
        return ""
    sure = "" if level is None else f", meant to hold {percent(level)} of the time"
    return f"between {percent(low)} and {percent(high)}{sure}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> from mixda._describe import plural
    >>> plural(1, "class", "classes"), plural(1200, "sample")
    ('1 class', '1,200 samples')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _describe_mixture(mixture: Mixture) -> dict[str, Any]:
    names = mixture.feature_names
    classes = mixture.classes
    return {
        "kind": "mixture (.gmm)",
        "name": mixture.info.get("name"),
        "rows": mixture.info.get("n_samples"),
        "components": mixture.n_components,
        "features": mixture.n_features if names is None else list(names),
        "classes": None if classes is None else [str(name) for name in classes],
    }


def _describe_table(path: str | Path) -> dict[str, Any]:
    table = open_table(path)
    return {
        "kind": "data",
        "files": [str(file) for file in table.files],
        "rows": table.n_rows,
        "columns": [f"{name} ({kind})" for name, kind in table.kinds.items()],
    }
