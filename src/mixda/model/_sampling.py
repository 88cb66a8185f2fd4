"""What a model says about the rows that it did not use."""

from __future__ import annotations

from typing import Any

from mixda._core.text import listed


def describe_sampling(model: Any) -> str | None:
    """Return a sentence about domains of which only a sample was used; None if there are none.

    Examples
    --------
    >>> from types import SimpleNamespace as Value
    >>> from mixda.model import describe_sampling
    >>> lab, plant = Value(name="lab", n_samples=9000), Value(name="plant", n_samples=50)
    >>> settings = {"rows_used": [500, 50], "streamed": True}
    >>> describe_sampling(Value(sources=(lab,), target=plant, settings=settings))
    'classifiers were trained on a sample (500 of 9,000 rows of lab), mixtures on all rows.'
    """
    used = model.settings.get("rows_used") or []
    domains = [*model.sources, model.target]
    if len(domains) == 2 < len(used):  # the sources were pooled
        used = [sum(used[:-1]), used[-1]]
    if len(used) != len(domains):
        return None
    thinned = [
        f"{n:,} of {domain.n_samples:,} rows of {domain.name}"
        for n, domain in zip(used, domains, strict=True)
        if domain.n_samples is not None and n < domain.n_samples
    ]
    if not thinned:
        return None
    sentence = f"classifiers were trained on a sample ({listed(thinned)})"
    n_trials = model.settings.get("trial_rows")
    if n_trials:
        sentence += f" and compared on {n_trials:,} rows of held-out sources"
    where = ", mixtures on all rows" if model.settings.get("streamed") else ""
    return f"{sentence}{where}."
