"""Make the estimator of a method from what the user asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mixda._core.errors import MixdaError
from mixda._core.text import did_you_mean
from mixda.estimators import COMMANDS
from mixda.mixture import MIN_COMPONENT_ROWS

if TYPE_CHECKING:
    from mixda.tables import PathArgument
    from mixda.workflow._inputs import Inputs

_OWN_OPTIONS = {
    "n_components": "components (--components)",
    "target_components": "target_components (--target-components)",
    "min_component_rows": "min_component_rows (--min-rows-per-component)",
    "encoder": "encoder (--encoder)",
    "scale": "scale (--scale)",
    "random_state": "seed (--seed)",
    "target_labels": "target_labels (--target-labels)",
    "checkpoint": "checkpoint (adapt keeps it next to the output)",
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
    min_component_rows: int,
    seed: int,
    checkpoint: PathArgument | None,
    verbose: bool,
) -> Any:
    """Make the estimator of a method; reject everything that it would not use."""
    kind = COMMANDS[method].load()
    encodes = encoder not in ("auto", None)
    if inputs.mixtures and (encodes or not hasattr(kind, "fit_mixtures")):
        what = f"encoder {encoder!r}" if encodes else f"method {method!r}"
        raise MixdaError(
            f"{what} needs the samples of every domain, but {inputs.mixtures[0]!r} is a mixture; "
            "give its data file, or use method dadil, wbt or otda without an encoder."
        )
    parameters = kind().get_params(deep=False)
    _check_options(options, parameters, kind.__name__)
    given = {
        "encoder": encoder != "auto",
        "scale": scale != "auto",
        "n_components": components is not None,
        "target_components": target_components is not None,
        "min_component_rows": min_component_rows != MIN_COMPONENT_ROWS,
    }
    _check_parameters(method, [name for name in given if given[name] and name not in parameters])
    _check_used(inputs, {**given, "n_init": "n_init" in options})
    values = {
        "encoder": encoder,
        "scale": scale,
        "n_components": components,
        "target_components": target_components,
        "min_component_rows": min_component_rows,
        "random_state": seed,
        "checkpoint": checkpoint,
        "verbose": verbose,
    }
    always = ("min_component_rows", *(name for name in values if name not in given))
    used = {
        name: value
        for name, value in values.items()
        if name in parameters and (name in always or given[name])
    }
    return kind(**used, **options)


def _check_options(options: Mapping[str, Any], parameters: Collection[str], kind: str) -> None:
    for name in options:
        if name == "target_shares" and name not in parameters:
            raise MixdaError(
                f"{kind} has no target_shares (--target-shares); use method auto, or leave it out."
            )
        if name not in parameters:
            raise MixdaError(
                f"{kind} has no parameter {name!r};{did_you_mean(name, parameters)} it has "
                f"{', '.join(sorted(parameters))}."
            )
        if name in _OWN_OPTIONS:
            raise MixdaError(
                f"{name} is not one of the options (--set); give {_OWN_OPTIONS[name]} instead."
            )


def _check_parameters(method: str, unknown: Sequence[str]) -> None:
    if unknown:
        word = unknown[0].removeprefix("n_")
        what = f"chooses {word} itself" if method == "auto" else f"has no parameter {word}"
        raise MixdaError(
            f"method {method!r} {what}; leave it out, or use a method that has it, such as dadil."
        )


def _check_used(inputs: Inputs, given: Mapping[str, bool]) -> None:
    """Reject parameters of fits that are not made, because the domains came as mixtures."""
    fitted = {
        "n_components": [name for name in inputs.sources if name not in inputs.mixtures],
        "target_components": [] if inputs.target_name in inputs.mixtures else [inputs.target_name],
    }
    fitted["n_init"] = [name for names in fitted.values() for name in names]
    for name, domains in fitted.items():
        if given[name] and not domains:
            raise MixdaError(
                f"{name} has no effect, because these domains are mixtures already; leave it out."
            )
