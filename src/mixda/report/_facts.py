"""Everything a report says, computed once from a model and, if given, samples of the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import Array, check_names
from mixda.mixture import SHARES, Mixture, class_shares
from mixda.model import AdaptedModel
from mixda.report._html import cut
from mixda.transport import transport_plan
from mixda.views import (
    Plane,
    class_gap,
    common_plane,
    confusion_counts,
    embed_distances,
    interpolation_frames,
    label_codes,
    pairwise_distances,
    wilson_interval,
)

_ROWS = 65_536  # of X at a time, so that the temporaries of a prediction stay small
_FRAMES = 8  # from the target's coordinates to an atom …
_FEW_FRAMES, _LARGE = 3, 20_000  # … or fewer, for K · d beyond this


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the model says of the given samples, and what their labels say of the model."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    probability: Array  # of the first class
    runner_up: Array  # of the second class
    far: NDArray[np.bool_]
    shares: Array  # of the samples, per class
    numbers: NDArray[np.intp]  # of the rows in the user's data, from 1
    n_dropped: int = 0  # rows there that are not among the samples
    truth: NDArray[np.intp] | None = None  # codes; beyond the model's classes: unknown to it
    confusion: NDArray[np.intp] | None = None
    unknown: tuple[str, ...] = ()  # classes of y that the model does not know

    def __len__(self) -> int:
        return len(self.first)

    @property
    def hits(self) -> int:
        """Number of samples that got their own class."""
        return int(np.sum(self.truth == self.first))

    @property
    def accuracy(self) -> float:
        """Share of the samples that got their own class."""
        return self.hits / len(self)

    @property
    def interval(self) -> tuple[float, float]:
        """Range of that share in more samples of the same kind (95 %)."""
        return wilson_interval(self.hits, len(self))


@dataclass(frozen=True, eq=False)
class Facts:
    """The numbers of a report. Domains are in the order sources, target, reconstruction."""

    model: AdaptedModel
    classes: tuple[str, ...]
    sources: tuple[Mixture, ...]  # labels in the order of the model's classes
    source_shares: Array  # of each class among the samples of each source, shape (N, nc)
    target: Mixture
    adapted: Mixture | None
    names: tuple[str, ...]
    distances: Array
    points: Array  # on the map
    map_error: float
    gap: float  # between two classes of a source
    plane: Plane
    plan: Array | None
    plan_rows: Mixture | None  # the mixture that the rows of the plan are components of
    frames: tuple[tuple[Mixture, ...], ...]  # per atom, from the target to it
    predictions: Predictions | None

    @property
    def n_sources(self) -> int:
        """Number of labeled domains."""
        return len(self.sources)

    @property
    def balanced(self) -> bool:
        """Whether the sources' classes were given equal parts and nobody noted what they were."""
        parameters = self.model.settings.get("parameters")
        prior = parameters.get("class_prior") if isinstance(parameters, dict) else None
        return prior == "uniform" and not any(SHARES in m.info for m in self.sources)

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the classifiers that decide together; the mixtures are those of the first."""
        return tuple(str(name) for name in self.model.settings.get("experts") or ())

    @property
    def target_name(self) -> str:
        """Name of the domain without labels, short enough for a sentence."""
        return cut(self.model.target.name, 32)

    @property
    def to_target(self) -> Array:
        """Distance of every source to the target."""
        distances: Array = self.distances[: self.n_sources, self.n_sources]
        return distances


def collect_facts(
    model: AdaptedModel,
    X: Any = None,
    y: Any = None,
    row_numbers: Any = None,
    n_dropped: int = 0,
) -> Facts:
    """Compute all that the page shows."""
    if y is not None and X is None:
        raise MixdaError("y was given without X; labels are compared with predictions, give both.")
    sources = tuple(_in_order(domain.mixture, model.classes) for domain in model.sources)
    target = replace(model.target.mixture, labels=None, classes=None)
    adapted = model.labeled_target
    if adapted is not None:
        adapted = _in_order(adapted, model.classes)
    domains = [*sources, target, *([] if adapted is None else [adapted])]
    names = [cut(domain.name, 60) for domain in (*model.sources, model.target)]
    distances = pairwise_distances(domains)
    points, error = embed_distances(distances)
    plan, rows = _plan(model, sources, target, adapted)
    return Facts(
        model=model,
        classes=tuple(str(name) for name in model.classes),
        sources=sources,
        source_shares=_source_shares(model),
        target=target,
        adapted=adapted,
        names=tuple(names) if adapted is None else (*names, adapted_name(model)),
        distances=distances,
        points=points,
        map_error=error,
        gap=class_gap(sources),
        plane=common_plane([*sources, *([] if adapted is None else [adapted])] or [target]),
        plan=plan,
        plan_rows=rows,
        frames=_frames(model),
        predictions=None if X is None else _predict(model, X, y, row_numbers, n_dropped),
    )


def adapted_name(model: AdaptedModel) -> str:
    """Return what the labeled mixture of the target is called."""
    return "adapted mixture" if model.dictionary is None else "reconstruction"


def _in_order(m: Mixture, classes: NDArray[Any]) -> Mixture:
    """Return the mixture with one column of labels per class of the model, in its order."""
    if m.labels is None or m.classes is None or np.array_equal(m.classes, classes):
        return m
    place = {name: k for k, name in enumerate(classes.tolist())}
    labels = np.zeros((m.n_components, len(classes)))
    for column, name in enumerate(m.classes.tolist()):
        labels[:, place[name]] = m.labels[:, column]
    return replace(m, labels=labels, classes=classes)


def _source_shares(model: AdaptedModel) -> Array:
    """Return the shares of the classes in the sources as they were before any balancing."""
    place = {name: k for k, name in enumerate(model.classes.tolist())}
    found = np.zeros((len(model.sources), len(model.classes)))
    for row, domain in zip(found, model.sources, strict=True):
        names = np.asarray(domain.mixture.classes).tolist()
        row[[place[name] for name in names]] = class_shares(domain.mixture)
    return found


def _plan(
    model: AdaptedModel, sources: tuple[Mixture, ...], target: Mixture, adapted: Mixture | None
) -> tuple[Array | None, Mixture | None]:
    plan = model.plan
    if plan is None:
        if adapted is None:
            return None, None
        return transport_plan(adapted, target).plan, adapted
    rows = sources[0] if model.method == "GMMOTDA" and sources else adapted
    return plan, None if rows is None or rows.n_components != len(plan) else rows


def _frames(model: AdaptedModel) -> tuple[tuple[Mixture, ...], ...]:
    dictionary = model.dictionary
    if dictionary is None or len(dictionary.atoms) < 2:
        return ()
    atom = dictionary.atoms[0]
    large = atom.n_components * atom.n_features > _LARGE
    ways = interpolation_frames(dictionary, _FEW_FRAMES if large else _FRAMES, verbose=large)
    return tuple(tuple(_in_order(m, model.classes) for m in way) for way in ways)


def _predict(model: AdaptedModel, X: Any, y: Any, row_numbers: Any, n_dropped: int) -> Predictions:
    parts = [_top_two(model, rows) for rows in _blocks(X)]
    if not parts:
        raise MixdaError("X is empty; give at least one row, or leave X out.")
    first, second, probability, runner_up, far = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    n_classes = len(model.classes)
    shares = np.bincount(first, minlength=n_classes) / len(first)
    numbers = _numbers(row_numbers, len(first))
    found = Predictions(first, second, probability, runner_up, far, shares, numbers, int(n_dropped))
    if y is None:
        return found
    labels = check_names(y, "y")
    if len(labels) != len(first):
        raise MixdaError(
            f"y has {len(labels)} labels, but X has {len(first)} rows; give one per row."
        )
    truth, unknown = label_codes(labels, model.classes)
    counts = confusion_counts(truth, first, n_classes)
    return replace(
        found, truth=truth, confusion=counts, unknown=tuple(str(name) for name in unknown)
    )


def _numbers(row_numbers: Any, n: int) -> NDArray[np.intp]:
    if row_numbers is None:
        return np.arange(1, n + 1)
    numbers = np.asarray(row_numbers)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise MixdaError(
            f"row_numbers must be {n} integers, one per row of X, got an array of shape "
            f"{numbers.shape} and type {numbers.dtype}."
        )
    return numbers


def _blocks(X: Any) -> list[Any]:
    X = X if hasattr(X, "iloc") else np.asarray(X)
    rows = X.iloc if hasattr(X, "iloc") else X
    return [rows[start : start + _ROWS] for start in range(0, len(X), _ROWS)]


def _top_two(model: AdaptedModel, X: Any) -> tuple[NDArray[Any], ...]:
    proba = model.predict_proba(X)
    first = proba.argmax(axis=1)
    rows = np.arange(len(proba))
    rest = proba.copy()
    rest[rows, first] = -1.0
    second = rest.argmax(axis=1)
    runner_up = np.maximum(rest[rows, second], 0.0)  # a single class has no second
    return first, second, proba[rows, first], runner_up, np.asarray(model.novelty(X), dtype=bool)
