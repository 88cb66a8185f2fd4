"""The estimator of a method, made from what a user asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from mixda._core.errors import MixdaError
from mixda.estimators import COMMANDS

if TYPE_CHECKING:
    from mixda.tables import PathArgument
    from mixda.workflow._inputs import Inputs

_OWN_OPTIONS = {
    "n_components": "components (--components)",
    "target_components": "target_components (--target-components)",
    "encoder": "encoder (--encoder)",
    "scale": "scale (--scale)",
    "random_state": "seed (--seed)",
    "checkpoint": "checkpoint (adapt keeps one beside the output)",
    "verbose": "verbose (--quiet)",
}


def make_estimator(
    method: str,
    inputs: Inputs,
    options: Mapping[str, Any],
    *,
    encoder: str | None,
    scale: str | None,
    components: int | str | None,
    target_components: int | str | None,
    seed: int,
    checkpoint: PathArgument | None,
    verbose: bool,
) -> Any:
    """Make the estimator of a method; refuse everything that it would not use."""
    kind = COMMANDS[method].load()
    if inputs.mixtures and (encoder is not None or not hasattr(kind, "fit_mixtures")):
        what = f"encoder {encoder!r}" if encoder is not None else f"method {method!r}"
        raise MixdaError(
            f"{what} needs the samples of every domain, but {inputs.mixtures[0]!r} is a mixture; "
            "give its data file, or use the methods dadil, wbt or otda without an encoder."
        )
    known = kind().get_params(deep=False)
    _check_options(options, known, kind.__name__)
    given = {
        "encoder": encoder is not None,
        "scale": scale != "auto",
        "n_components": components is not None,
        "target_components": target_components is not None,
    }
    for name in [name for name in given if given[name] and name not in known]:
        word = name.removeprefix("n_")
        what = f"chooses {word} by itself" if method == "auto" else f"has no {word}"
        raise MixdaError(
            f"method {method!r} {what}; leave it out, or name a method that has, as dadil."
        )
    _check_used(inputs, {**given, "n_init": "n_init" in options})
    asked = {
        "encoder": encoder,
        "scale": scale,
        "n_components": components,
        "target_components": target_components,
        "random_state": seed,
        "checkpoint": checkpoint,
        "verbose": verbose,
    }
    unsaid = [name for name in ("n_components", "target_components") if asked[name] is None]
    named = {name: v for name, v in asked.items() if name in known and name not in unsaid}
    return kind(**named, **options)


def _check_options(options: Mapping[str, Any], known: Collection[str], estimator: str) -> None:
    for name in options:
        if name not in known:
            raise MixdaError(
                f"{estimator} has no parameter {name!r}; it has {', '.join(sorted(known))}."
            )
        if name in _OWN_OPTIONS:
            raise MixdaError(
                f"{name} is not among the options (--set); give {_OWN_OPTIONS[name]} instead."
            )


def _check_used(inputs: Inputs, given: Mapping[str, bool]) -> None:
    """Refuse to say how mixtures are fitted where none is."""
    made = {
        "n_components": [name for name in inputs.sources if name not in inputs.mixtures],
        "target_components": [] if inputs.target_name in inputs.mixtures else [inputs.target_name],
    }
    made["n_init"] = [name for names in made.values() for name in names]
    for name, domains in made.items():
        if given[name] and not domains:
            raise MixdaError(
                f"{name} says how data become mixtures, but these came as mixtures; leave it out."
            )
