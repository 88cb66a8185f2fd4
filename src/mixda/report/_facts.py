"""The numbers of a report, computed once from a model and, if given, samples of the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_names
from mixda.mixture import SHARES, Mixture, class_shares
from mixda.model import AdaptedModel, Explanation, Shift
from mixda.monitoring import Drift, monitor
from mixda.report._html import cut, shorten
from mixda.transport import transport_plan
from mixda.views import (
    Confusion,
    DomainMap,
    OrderedPlan,
    Plane,
    class_gap,
    common_plane,
    confusion,
    domain_map,
    interpolation_frames,
    order_plan,
    wilson_interval,
)

_ROWS_PER_BLOCK = 65_536  # bounds the memory of a prediction
_N_FRAMES = 8  # between the target and an atom
_N_FRAMES_LARGE, _LARGE_MIXTURE = 3, 20_000  # fewer frames if K · d exceeds this
_MAX_MONITORED_ROWS = 50_000
_ROWS_TO_LABEL = 50
_MAX_LABELED_SOURCES = 6  # whose names and panels are drawn; the nearest to the target


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for the given samples, and how they compare with the labels if given."""

    first: NDArray[np.intp]  # most probable class
    second: NDArray[np.intp]
    probability: Array  # of the most probable class
    second_probability: Array
    outlier: NDArray[np.bool_]
    proportions: Array  # predicted, per class
    row_numbers: NDArray[np.intp]  # in the user's data, from 1
    n_dropped: int = 0  # rows of the user's data that are not among the samples
    n_rows: int | None = None  # of the user's data, if these are a sample
    confusion: Confusion | None = None  # None without labels

    def __len__(self) -> int:
        return len(self.first)

    @property
    def correct(self) -> NDArray[np.bool_] | None:
        """Whether each prediction is correct; None without labels."""
        return None if self.confusion is None else self.confusion.codes == self.first

    @property
    def n_correct(self) -> int:
        """Number of correct predictions."""
        return 0 if self.correct is None else int(self.correct.sum())

    @property
    def accuracy(self) -> float:
        """Fraction of correct predictions."""
        return self.n_correct / len(self)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of the accuracy (Wilson)."""
        return wilson_interval(self.n_correct, len(self))

    @property
    def true_proportions(self) -> Array | None:
        """Proportion of each class of the model among the labels; None without labels."""
        if self.confusion is None:
            return None
        counts = self.confusion.counts.sum(axis=1)[: len(self.confusion.classes)]
        proportions: Array = counts / len(self)
        return proportions


@dataclass(frozen=True, eq=False)
class Reason:
    """Why one of the given samples got its class."""

    row: int  # its number in the user's data
    kind: str  # "least certain" or "typical"
    why: Explanation


@dataclass(frozen=True, eq=False)
class Facts:
    """The numbers of a report. Domains are ordered: sources, target, adapted mixture."""

    model: AdaptedModel
    classes: tuple[str, ...]
    sources: tuple[Mixture, ...]  # labels in the order of the model's classes
    source_proportions: Array  # of the classes in each source, shape (N, nc)
    target: Mixture
    adapted: Mixture | None
    domain_map: DomainMap
    class_gap: float  # typical distance between two classes of a source
    plane: Plane
    plan: OrderedPlan | None
    plan_source: Mixture | None  # the mixture whose components are the rows of the plan
    frames: tuple[tuple[Mixture, ...], ...]  # per atom, from the target to the atom
    predictions: Predictions | None
    shifts: tuple[Shift, ...] | None  # of all features; None if they cannot be given in user units
    drift: Drift | None  # of the given samples, if the model holds a summary of the target
    reasons: tuple[Reason, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the domains."""
        return self.domain_map.names

    @property
    def distances(self) -> Array:
        """MW2 between the domains."""
        return self.domain_map.distances

    @property
    def n_sources(self) -> int:
        """Number of labeled domains."""
        return len(self.sources)

    @property
    def balanced(self) -> bool:
        """Whether the classes of the sources were balanced and their proportions are not known."""
        parameters = self.model.settings.get("parameters")
        prior = parameters.get("class_prior") if isinstance(parameters, dict) else None
        return prior == "uniform" and not any(SHARES in m.info for m in self.sources)

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the members of a committee; the mixtures are those of the first."""
        return tuple(str(name) for name in self.model.settings.get("experts") or ())

    @property
    def target_name(self) -> str:
        """Name of the target, short enough for a sentence."""
        return cut(self.model.target.name, 32)

    @property
    def rows_to_label(self) -> str:
        """How many rows of the target to label, to measure the accuracy."""
        n = self.model.target.n_samples
        few = n is not None and n < 2 * _ROWS_TO_LABEL
        return f"{'some' if few else f'about {_ROWS_TO_LABEL}'} random rows of {self.target_name}"

    @property
    def short_names(self) -> tuple[str, ...]:
        """Names of the domains for charts."""
        n = self.n_sources
        return (*shorten(self.names[:n], 24), *(cut(name, 24) for name in self.names[n:]))

    @property
    def short_classes(self) -> tuple[str, ...]:
        """Names of the classes for charts and tables."""
        return shorten(self.classes, 28)

    @property
    def nearest_sources(self) -> tuple[int, ...]:
        """The sources to show by name, nearest to the target first: all if they are few."""
        order = np.argsort(self.to_target, kind="stable")
        n = len(order) if len(order) <= _MAX_LABELED_SOURCES + 2 else _MAX_LABELED_SOURCES
        return tuple(int(k) for k in order[:n])

    @property
    def to_target(self) -> Array:
        """Distance of each source to the target."""
        distances: Array = self.distances[: self.n_sources, self.n_sources]
        return distances


def collect_facts(
    model: AdaptedModel,
    X: Any = None,
    y: Any = None,
    row_numbers: Any = None,
    n_dropped: int = 0,
    n_rows: int | None = None,
) -> Facts:
    """Compute everything that the page shows."""
    if y is not None and X is None:
        raise MixdaError("y requires X: labels are compared with predictions. Pass both or none.")
    sources = tuple(_reorder_classes(domain.mixture, model.classes) for domain in model.sources)
    target = replace(model.target.mixture, labels=None, classes=None)
    adapted = model.labeled_target
    if adapted is not None:
        adapted = _reorder_classes(adapted, model.classes)
    domains = [*sources, target, *([] if adapted is None else [adapted])]
    names = [cut(domain.name, 60) for domain in (*model.sources, model.target)]
    if adapted is not None:
        names.append("adapted mixture" if model.dictionary is None else "reconstruction")
    plan, plan_source = _plan(model, sources, target, adapted)
    predictions = None if X is None else _predict(model, X, y, row_numbers, n_dropped)
    if predictions is not None and n_rows is not None:
        predictions = replace(predictions, n_rows=n_rows)
    return Facts(
        model=model,
        classes=tuple(str(name) for name in model.classes),
        sources=sources,
        source_proportions=_source_proportions(model),
        target=target,
        adapted=adapted,
        domain_map=domain_map(domains, names),
        class_gap=class_gap(sources),
        plane=common_plane([*sources, *([] if adapted is None else [adapted])] or [target]),
        plan=plan,
        plan_source=plan_source,
        frames=_frames(model),
        predictions=predictions,
        shifts=_shifts(model),
        drift=None if X is None or model.reference is None else _drift(model, X),
        reasons=() if predictions is None else _reasons(model, X, predictions),
    )


def _shifts(model: AdaptedModel) -> tuple[Shift, ...] | None:
    try:
        return model.shifts(None)
    except MixdaError:  # an encoder that is not linear
        return None


def _drift(model: AdaptedModel, X: Any) -> Drift:
    """Compare the samples, or many of them, with the target of the model."""
    rows = X.iloc if hasattr(X, "iloc") else np.asarray(X)
    if len(X) > _MAX_MONITORED_ROWS:
        chosen = np.random.default_rng(0).choice(len(X), _MAX_MONITORED_ROWS, replace=False)
        return monitor(model, rows[np.sort(chosen)])
    return monitor(model, rows[:])


def _reasons(model: AdaptedModel, X: Any, predictions: Predictions) -> tuple[Reason, ...]:
    """Explain the two least certain samples, and a typical one of the two largest classes."""
    if len(model.classes) < 2:
        return ()
    order = predictions.probability.argsort(kind="stable")
    chosen = [(int(k), "least certain") for k in order[:2]]
    for c in np.argsort(-predictions.proportions, kind="stable")[:2]:
        own = order[predictions.first[order] == c]
        if len(own) and int(own[len(own) // 2]) not in [k for k, _ in chosen]:
            chosen.append((int(own[len(own) // 2]), "typical"))
    rows = X.iloc if hasattr(X, "iloc") else np.asarray(X)
    reasons = []
    for k, kind in chosen:
        try:
            why = model.explain(rows[k : k + 1])
        except MixdaError:  # the model does not know a typical row in the user's units
            return ()
        reasons.append(Reason(int(predictions.row_numbers[k]), kind, why))
    return tuple(reasons)


def _reorder_classes(m: Mixture, classes: NDArray[Any]) -> Mixture:
    """Return the mixture with its label columns in the order of the model's classes."""
    if m.labels is None or m.classes is None or np.array_equal(m.classes, classes):
        return m
    position = {name: k for k, name in enumerate(classes.tolist())}
    labels = np.zeros((m.n_components, len(classes)))
    for column, name in enumerate(m.classes.tolist()):
        labels[:, position[name]] = m.labels[:, column]
    return replace(m, labels=labels, classes=classes)


def _source_proportions(model: AdaptedModel) -> Array:
    """Return the class proportions of the sources before balancing."""
    position = {name: k for k, name in enumerate(model.classes.tolist())}
    proportions = np.zeros((len(model.sources), len(model.classes)))
    for row, domain in zip(proportions, model.sources, strict=True):
        names = np.asarray(domain.mixture.classes).tolist()
        row[[position[name] for name in names]] = class_shares(domain.mixture)
    return proportions


def _plan(
    model: AdaptedModel, sources: tuple[Mixture, ...], target: Mixture, adapted: Mixture | None
) -> tuple[OrderedPlan | None, Mixture | None]:
    """Return the plan to the target and the mixture it starts from, where they are known."""
    mass, start = model.plan, adapted
    if mass is None:
        if adapted is None:
            return None, None
        mass = transport_plan(adapted, target).plan
    elif model.method == "GMMOTDA" and sources:
        start = sources[0]  # the adapted mixture has the components of the target
    if start is not None and start.n_components != len(mass):
        start = None
    return order_plan(mass, None if start is None else start.labels), start


def _frames(model: AdaptedModel) -> tuple[tuple[Mixture, ...], ...]:
    dictionary = model.dictionary
    if dictionary is None or len(dictionary.atoms) < 2:
        return ()
    atom = dictionary.atoms[0]
    large = atom.n_components * atom.n_features > _LARGE_MIXTURE
    n_steps = _N_FRAMES_LARGE if large else _N_FRAMES
    paths = interpolation_frames(dictionary, n_steps, verbose=large)
    return tuple(tuple(_reorder_classes(m, model.classes) for m in path) for path in paths)


def _predict(model: AdaptedModel, X: Any, y: Any, row_numbers: Any, n_dropped: int) -> Predictions:
    blocks = [_predict_block(model, rows) for rows in _blocks(X)]
    if not blocks:
        raise MixdaError("X has 0 rows. Pass at least one row, or omit X.")
    first, second, probability, second_probability, outlier = (
        np.concatenate(column) for column in zip(*blocks, strict=True)
    )
    n = len(first)
    predictions = Predictions(
        first,
        second,
        probability,
        second_probability,
        outlier,
        proportions=np.bincount(first, minlength=len(model.classes)) / n,
        row_numbers=_check_row_numbers(row_numbers, n),
        n_dropped=int(n_dropped),
    )
    if y is None:
        return predictions
    labels = check_names(y, "y")
    if len(labels) != n:
        raise MixdaError(f"y must hold one label per row of X ({n}), got {len(labels)} labels.")
    return replace(predictions, confusion=confusion(labels, first, model.classes))


def _check_row_numbers(row_numbers: Any, n: int) -> NDArray[np.intp]:
    if row_numbers is None:
        return np.arange(1, n + 1)
    numbers = np.asarray(row_numbers)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise MixdaError(
            f"row_numbers must hold {n} integers, one per row of X, got an array of shape "
            f"{numbers.shape} and dtype {numbers.dtype}."
        )
    return numbers


def _blocks(X: Any) -> list[Any]:
    X = X if hasattr(X, "iloc") else np.asarray(X)
    rows = X.iloc if hasattr(X, "iloc") else X
    step = _ROWS_PER_BLOCK
    return [rows[start : start + step] for start in range(0, len(X), step)]


def _predict_block(model: AdaptedModel, X: Any) -> tuple[NDArray[Any], ...]:
    """Return the two most probable classes, their probabilities, and which rows are outliers."""
    proba = model.predict_proba(X)
    first = proba.argmax(axis=1)
    rows = np.arange(len(proba))
    rest = proba.copy()
    rest[rows, first] = -1.0
    second = rest.argmax(axis=1)
    second_probability = np.maximum(rest[rows, second], 0.0)  # 0 with a single class
    outlier = np.asarray(model.novelty(X), dtype=bool)
    return first, second, proba[rows, first], second_probability, outlier
