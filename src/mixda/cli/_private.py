"""The options of ``mixda fit`` for differential privacy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda.mixture import Mixture


def private_mixtures(
    data: Sequence[str],
    label: str | None,
    components: str | None,
    seed: int,
    privacy: tuple[float | None, float, Path | None, str | None],
    unused: Mapping[str, Any],
) -> dict[str, Mixture]:
    """Fit one mixture with differential privacy, by the name of its domain."""
    from mixda.workflow import fit_private_file

    epsilon, delta, bounds, classes = privacy
    if epsilon is None or bounds is None:
        raise MixdaError(
            "a private fit needs both --epsilon and --bounds, a JSON file with the columns and "
            'their public ranges, such as {"speed": [0, 3000]}.'
        )
    for option, value in unused.items():
        if value is not None:
            raise MixdaError(
                f"{option} has no effect on a private fit (--epsilon); leave it out. Columns are "
                "those of --bounds."
            )
    if components is not None and not components.isdecimal():
        raise MixdaError(f"--components of a private fit must be a number, got {components!r}.")
    mixture = fit_private_file(
        list(data),
        label,
        bounds=_read_bounds(bounds),
        epsilon=epsilon,
        delta=delta,
        classes=[] if classes is None else [name.strip() for name in classes.split(",")],
        components=1 if components is None else int(components),
        seed=seed,
    )
    return {str(mixture.info["name"]): mixture}


def _read_bounds(path: Path) -> dict[str, list[float]]:
    try:
        bounds = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): [float(low), float(high)] for name, (low, high) in bounds.items()}
    except (AttributeError, TypeError, ValueError):
        raise MixdaError(
            f"{path} must be a JSON object of columns and their lowest and highest value, such as "
            '{"speed": [0, 3000]}.'
        ) from None
