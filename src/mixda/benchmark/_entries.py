"""The methods of a benchmark, read from the registry `mixda.estimators.METHODS`.

Classes are loaded when a method is created, so that torch is loaded only if needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_choice
from mixda.estimators import METHODS as REGISTERED
from mixda.estimators import Method

Settings = dict[str, dict[str, Any]]


class Entry(NamedTuple):
    """A row of the tables: a method and its fixed parameters."""

    method: Method
    fixed: Mapping[str, Any]

    @property
    def mixture(self) -> bool:
        """Whether the result is a labeled mixture, on which a head can be trained."""
        return self.method.mixture

    @property
    def oracle(self) -> bool:
        """Whether the method uses target labels and is thus an upper bound."""
        return self.method.oracle


METHODS: dict[str, Entry] = {
    name: Entry(method, fixed)
    for method in REGISTERED.values()
    for name, fixed in method.entries.items()
}
SHALLOW = tuple(
    name for name, entry in METHODS.items() if entry.method.module.startswith("mixda.estimators")
)
HEADS = ("logistic", "svc")
_NAMES = {name.lower().replace("-", ""): name for name in METHODS}


def check_methods(names: Iterable[str]) -> list[str]:
    """Return the names of methods in the given order, ignoring case and dashes.

    ``all`` stands for all methods.

    Examples
    --------
    >>> from mixda.benchmark._entries import check_methods
    >>> check_methods(["gmm-wbt", "WJDOT"])
    ['GMMWBT', 'WJDOT']
    """
    chosen: list[str] = []
    for name in names:
        if name.strip().lower() == "all":
            chosen += [known for known in METHODS if known not in chosen]
            continue
        known = _NAMES.get(name.strip().lower().replace("-", ""))
        if known is None:
            raise MixdaError(f"methods must be among {', '.join(METHODS)}, got {name!r}.")
        if known not in chosen:
            chosen.append(known)
    if not chosen:
        raise MixdaError(f"methods is empty. Choose among {', '.join(METHODS)}.")
    return chosen


def parse_settings(assignments: Iterable[str]) -> Settings:
    """Parse ``METHOD.parameter=value`` with a JSON value (a bare word is a string).

    Examples
    --------
    >>> from mixda.benchmark._entries import parse_settings
    >>> parse_settings(["GMMDaDiL.n_atoms=4", "WBT.label_mode=hard"])
    {'GMMDaDiL': {'n_atoms': 4}, 'WBT': {'label_mode': 'hard'}}
    """
    settings: Settings = {}
    for text in assignments:
        left, equals, value = text.partition("=")
        method, dot, parameter = left.strip().partition(".")
        if not (equals and dot and parameter):
            raise MixdaError(
                "A setting must be METHOD.parameter=value, such as GMMDaDiL.n_atoms=4, "
                f"got {text!r}."
            )
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value.strip()
        settings.setdefault(check_methods([method])[0], {})[parameter] = parsed
    return settings


def make_method(name: str, settings: Mapping[str, Any], seed: int) -> Any:
    """Return an unfitted estimator."""
    entry = METHODS[name]
    try:
        estimator = entry.method.load()
    except ImportError as error:  # of torch; the message says how to install it
        raise MixdaError(str(error)) from None
    model = estimator()
    accepted = sorted(set(model.get_params()) - {"random_state", *entry.fixed})
    for parameter in settings:
        if parameter not in accepted:
            raise MixdaError(
                f"settings of {name} must be among {', '.join(accepted)}, got {parameter!r}."
            )
    return model.set_params(random_state=seed, **{**entry.fixed, **settings})


def without_defaults(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that differ from the defaults of a method.

    Examples
    --------
    >>> from mixda.benchmark._entries import without_defaults
    >>> without_defaults("GMMWBT", {"n_components": 3, "beta": 2})
    {'beta': 2}
    """
    defaults = make_method(name, {}, 0).get_params(deep=False) if settings else {}
    return {
        parameter: value
        for parameter, value in settings.items()
        if parameter not in defaults or not _is_equal(value, defaults[parameter])
    }


def _is_equal(value: Any, default: Any) -> bool:
    """Return whether two settings are equal; 1 equals 1.0 but not True."""
    return isinstance(value, bool) == isinstance(default, bool) and bool(value == default)


def parameters_of(model: Any) -> dict[str, Any]:
    """Return the hyper-parameters of an estimator as JSON values, without seed and checkpoint.

    Examples
    --------
    >>> from mixda.benchmark._entries import make_method, parameters_of
    >>> parameters_of(make_method("JCPOT", {"reg": 0.1}, 0))["reg"]
    0.1
    """
    parameters = {}
    for name, value in model.get_params(deep=False).items():
        if name not in ("random_state", "checkpoint"):
            try:
                parameters[name] = json.loads(json.dumps(value))
            except (TypeError, ValueError):
                parameters[name] = type(value).__name__
    return parameters


def library_of(name: str) -> str:
    """Return the library to load before the time of a method is measured."""
    return "torch" if METHODS[name].method.needs_torch else "ot"


def train_mixture_head(model: Any, head: str, seed: int) -> Any:
    """Train a linear classifier on samples of the target mixture of a fitted model."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    check_choice(head, "head", HEADS)
    mixture = model.target_mixture_
    coded = replace(mixture, classes=np.arange(len(mixture.classes)))
    Z, codes = coded.sample(50 * mixture.n_components, np.random.default_rng(seed))
    linear = (
        LinearSVC(C=1.0, random_state=seed) if head == "svc" else LogisticRegression(max_iter=1000)
    )
    return linear.fit(Z, np.asarray(codes))


def head_predictions(model: Any, trained: Any, X: Array) -> NDArray[Any]:
    """Predict samples of the target with a trained head."""
    Z = model.encoder_.transform(X)
    classes: NDArray[Any] = model.classes_[trained.predict(Z)]
    return classes
