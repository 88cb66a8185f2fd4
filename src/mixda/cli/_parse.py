"""What options mean: numbers or words, pairs of names, parameters of a method."""

from __future__ import annotations

import json
from typing import Any

from mixda._core.errors import MixdaError


def number_or_word(value: str | None) -> int | str | None:
    """Return a number as such, and a word such as "bic" as it is."""
    return int(value) if value is not None and value.lstrip("-").isdigit() else value


def pairs(values: list[str] | None, option: str, form: str = "OLD=NEW") -> dict[str, str]:
    """Return ``old=new`` pairs as a dict."""
    parts = [value.rpartition("=") for value in values or ()]
    for (old, sign, new), value in zip(parts, values or (), strict=True):
        if not (old.strip() and sign and new.strip()):
            raise MixdaError(f"{option} {value!r} must be {form}.")
    names = [old.strip().strip("'") for old, _, _ in parts]
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise MixdaError(f"{option} names {twice[0]!r} twice; give it once.")
    return dict(zip(names, (new.strip().strip("'") for *_, new in parts), strict=True))


def target_parameters(shares: list[str] | None) -> dict[str, Any]:
    """Return the parameters of the estimator that tell what the user knows about the target."""
    if not shares:
        return {}
    known: dict[str, float | list[float]] = {}
    for name, text in pairs(shares, "--target-shares", "CLASS=SHARE").items():
        try:
            bounds = [float(part) for part in text.split("..")]
        except ValueError:
            bounds = []
        if len(bounds) not in (1, 2) or not all(0.0 <= bound <= 1.0 for bound in bounds):
            raise MixdaError(
                f"--target-shares {name}={text} must be a share such as 0.95, or a range such as "
                "0.9..1."
            )
        known[name] = bounds[0] if len(bounds) == 1 else bounds
    return {"target_shares": known}


def settings(values: list[str]) -> dict[str, Any]:
    """Return ``name=value`` pairs as a dict; a value is JSON if it can be read as such."""
    found: dict[str, Any] = {}
    for value in values:
        name, sign, text = value.partition("=")
        if not sign:
            raise MixdaError(f"--set {value!r} must be parameter=value, such as n_atoms=4.")
        try:
            found[name.strip()] = json.loads(text)
        except json.JSONDecodeError:
            found[name.strip()] = text
    return found
