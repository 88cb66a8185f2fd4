"""The sentences of the report: summary, distances, reliability.

Each function turns numbers of `Facts` into text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixda._core.text import plural
from mixda._core.typing import Array
from mixda.model import Trust
from mixda.report._checks import findings
from mixda.report._facts import Facts, Predictions
from mixda.report._html import cut, listing, percent, significant

# Distance between the target and the nearest source, relative to that between two classes
_CLOSE, _FAR, _VERY_FAR = 0.25, 0.75, 1.25
_LOW_CONFIDENCE = 0.6  # little better than a guess between two classes
_MAX_LOW_CONFIDENCE, _MAX_OUTLIERS = 0.15, 0.05  # fractions of the samples
_MAX_PROPORTION_RATIO = 3.0  # between a class's proportions in the target and in the sources
_MIN_SHARED, _MOSTLY_SHARED = 0.25, 0.6  # of the target's coordinates
_MANY_FEATURES = 20  # from here on, mixtures are often overconfident
_MIN_OVERCONFIDENCE = 0.05
_MAX_DISTANCE_LEFT = 0.5
_MIN_USEFUL_ACCURACY = 0.7


@dataclass(frozen=True)
class Card:
    """A key number of the summary."""

    name: str
    value: str
    note: str


@dataclass(frozen=True)
class Sign:
    """A diagnostic: in favor of the result ("good"), against it ("bad"), or neutral ("note")."""

    kind: str
    text: str


def heading(facts: Facts) -> str:
    """Return the default title of the page."""
    return f"Adaptation to {cut(facts.model.target.name, 60)}"


def lede(facts: Facts) -> str:
    """Summarize what was adapted to what."""
    model = facts.model
    known = [domain.n_samples for domain in model.sources]
    samples = sum(n for n in known if n is not None)
    amount = f", {samples:,} samples" if samples and None not in known else ""
    size = model.target.n_samples
    target_amount = "" if size is None else f" ({size:,} samples)"
    order = np.argsort(facts.to_target, kind="stable")[:3]
    few = facts.n_sources <= 4
    names = [facts.names[k] for k in (range(facts.n_sources) if few else order)]
    sources = " and ".join(names) if len(names) < 3 else ", ".join(names)
    sources += "" if few else f" and {facts.n_sources - 3} more"
    return (
        f"{model.method} learned from {plural(facts.n_sources, 'labeled domain')} "
        f"({sources}{amount}) to classify {model.target.name}{target_amount}. The labels of the "
        f"target were not used. The data have {plural(len(facts.classes), 'class', 'classes')} and "
        f"{plural(len(model.feature_names), 'feature')}."
    )


def distance_summary(facts: Facts) -> str:
    """Describe how far apart the domains are."""
    to_target, target = facts.to_target, facts.target_name
    nearest = int(to_target.argmin())
    away = float(to_target[nearest])
    name = cut(facts.names[nearest], 40)
    text = (
        f"The nearest source to {target} is {name}, at a distance of {significant(away)} in units "
        "of the model's features."
    )
    if facts.class_gap > 0:
        text = (
            f"The target is {_how_far(away / facts.class_gap)}. {text} Two classes of a source are "
            f"typically {significant(facts.class_gap)} apart."
        )
    return f"{text} {_distances_between_sources(facts)}"


def _how_far(ratio: float) -> str:
    if ratio < _CLOSE:
        return "close to the sources"
    if ratio < _FAR:
        return "at a moderate distance from the sources"
    if ratio < _VERY_FAR:
        return "far from the sources, about as far as two classes are apart"
    return "very far from the sources, farther than two classes are apart"


def _distances_between_sources(facts: Facts) -> str:
    n, nearest = facts.n_sources, float(facts.to_target.min())
    if n < 2:
        return "With a single source, there is no distance between sources to compare with."
    between = facts.distances[:n, :n][np.triu_indices(n, 1)]
    low, high = float(between.min()), float(between.max())
    span = f"{significant(low)} to {significant(high)}" if n > 2 else significant(high)
    if nearest > high:
        return f"That is more than the distance between any two sources ({span})."
    return f"The distance between sources is {span}, so the target is as close as they are."


def reliability(facts: Facts) -> list[str]:
    """Describe how reliable the result is and why, one paragraph per item."""
    predictions = facts.predictions
    measured = predictions is not None and predictions.confusion is not None
    words = [] if measured and not _has_verdict(facts) else [_estimate(facts)]
    if measured:
        words.append(_measured(facts, predictions))  # type: ignore[arg-type]
    return words


def _has_verdict(facts: Facts) -> bool:
    """Whether the accuracy was estimated without target labels, or adaptation was judged."""
    trust = facts.model.trust or Trust()
    return bool(trust.reason) or trust.accuracy is not None


def _estimate(facts: Facts) -> str:
    trust = facts.model.trust or Trust()
    if trust.accuracy is not None:
        return trust.sentence_for(facts.target_name, _outlier_fraction(facts), percent)
    return (
        "The accuracy of this model has not been estimated. Its predicted probabilities alone are "
        f"not reliable evidence. Before relying on it, label {facts.rows_to_label} and create this "
        "report again with them (--data and --label on the command line, X and y in Python). "
        f"{trust.explanation}"
    ).rstrip()


def _outlier_fraction(facts: Facts) -> float:
    return 0.0 if facts.predictions is None else float(facts.predictions.outlier.mean())


def _measured(facts: Facts, predictions: Predictions) -> str:
    low, high = predictions.interval
    text = (
        f"Measured accuracy {percent(predictions.accuracy)} on "
        f"{plural(len(predictions), 'labeled sample')} ({interval(low, high)})."
    )
    confidence = float(predictions.probability.mean())
    if confidence - predictions.accuracy > _MIN_OVERCONFIDENCE:
        text += f" The model is overconfident: its mean confidence is {percent(confidence)}."
    trust = facts.model.trust or Trust()
    least, most = trust.low, trust.high
    if least is None or most is None:
        return text
    if high < least:
        return f"{text} The estimate without labels was too optimistic."
    if low > most:
        return f"{text} The estimate without labels was too pessimistic."
    return f"{text} This agrees with the estimate without labels."


def interval(low: float, high: float) -> str:
    """Format a 95 % confidence interval."""
    return f"95\N{NO-BREAK SPACE}% interval: {percent(low)} to {percent(high)}"


def cards(facts: Facts) -> list[Card]:
    """Return the key numbers of the summary."""
    predictions = facts.predictions
    items = []
    if predictions is not None and predictions.confusion is not None:
        size = plural(len(predictions), "labeled sample")
        note = f"{interval(*predictions.interval)}; {size}"
        items.append(Card("Measured accuracy", percent(predictions.accuracy), note))
    if not items or _has_verdict(facts):
        items.append(_trust_card(facts))
    nearest = float(facts.to_target.min())
    name = cut(facts.names[int(facts.to_target.argmin())], 24)
    if facts.class_gap > 0:
        value, note = f"{nearest / facts.class_gap:.2g} ×", "the distance between two classes"
    else:
        value, note = significant(nearest), "in units of the features"
    items.append(Card(f"Distance to the nearest source ({name})", value, note))
    left = distance_left(facts)
    if left is not None:
        items.append(
            Card("Distance left after adaptation", percent(left), "of that to the nearest source")
        )
    if predictions is not None:
        note = (
            f"of {plural(len(predictions), 'sample')}; a new class within {facts.target_name} is "
            "not detected"
        )
        fraction = _outlier_fraction(facts)
        items.append(Card("Outliers", percent(fraction) if fraction else "none", note))
    return items


def _trust_card(facts: Facts) -> Card:
    trust = facts.model.trust or Trust()
    declined = "; adaptation was declined" if trust.declined else ""
    if trust.accuracy is None:
        return Card("Estimated accuracy", "unknown", f"no estimate available{declined}")
    if not trust.holds_for(_outlier_fraction(facts)):
        note = f"the estimate for {facts.target_name} does not apply to these samples{declined}"
        return Card("Estimated accuracy", "unknown", note)
    note = (trust.interval(percent) or trust.evidence) + declined
    return Card("Estimated accuracy", percent(trust.accuracy), note)


def next_steps(facts: Facts) -> list[str]:
    """Say what to do next, the most urgent first."""
    trust, predictions = facts.model.trust or Trust(), facts.predictions
    measured = predictions is not None and predictions.confusion is not None
    steps = []
    if facts.drift is not None and facts.drift.alarm:
        steps.append(
            "These samples differ from those that the model was adapted to. Look at the columns "
            "that changed; if nothing is broken, adapt to the new samples (mixda update)."
        )
    if _outlier_fraction(facts) > _MAX_OUTLIERS:
        steps.append("Look at the outliers first: the model knows nothing like them.")
    if not measured and trust.accuracy is None:
        steps.append(
            f"Label {facts.rows_to_label} and repeat this report with their labels, to measure the "
            "accuracy. Until then, treat predictions as suggestions."
        )
    elif not measured:
        steps.append(
            "The accuracy is an estimate. Before a decision that matters, label "
            f"{facts.rows_to_label} and repeat this report with their labels."
        )
    elif predictions is not None and predictions.accuracy < _MIN_USEFUL_ACCURACY:
        steps.append(
            "The measured accuracy is low. Add a source that resembles the target, or labels of "
            "the target, and adapt again."
        )
    if any(sign.kind == "bad" for sign in signs(facts)):
        steps.append("Read the warnings below: each names what may have gone wrong.")
    if predictions is not None:
        steps.append("Check the least certain samples by hand; they are listed under Predictions.")
    steps.append(
        "When new data arrive, run mixda monitor to see whether the model still fits them."
    )
    return steps


def distance_left(facts: Facts) -> float | None:
    """Return the distance of the adapted mixture to the target, relative to the nearest source.

    None without a mixture, or if adaptation was declined, so that the mixture is not used.
    """
    nearest = float(facts.to_target.min())
    if facts.adapted is None or nearest <= 0 or (facts.model.trust or Trust()).declined:
        return None
    return float(facts.distances[-1, facts.n_sources]) / nearest


def signs(facts: Facts) -> list[Sign]:
    """Return diagnostics for and against the result that need no target labels."""
    signs = [
        _found_before_the_fit(facts),
        _distance_to_sources(facts),
        _distance_after_adaptation(facts),
        _class_proportions(facts),
    ]
    if facts.predictions is not None:
        signs += [_confidence(facts, facts.predictions), _outliers(facts)]
    return [sign for sign in signs if sign is not None]


def _found_before_the_fit(facts: Facts) -> Sign | None:
    """Return how many blockers and warnings the checks found, if any."""
    found = [finding.severity for finding in findings(facts)]
    if "blocker" in found:
        n = plural(found.count("blocker"), "blocker")
        return Sign("bad", f"The model was fitted although the checks found {n}; see Checks.")
    if "warning" not in found:
        return None
    n = plural(found.count("warning"), "warning")
    return Sign("note", f"The checks of the files found {n}; see Checks.")


def _distance_to_sources(facts: Facts) -> Sign | None:
    ratio = float(facts.to_target.min()) / facts.class_gap if facts.class_gap > 0 else 0.0
    if ratio < _FAR:
        return None
    text = (
        f"The distance from the target to the nearest source is {ratio:.2g} times the distance "
        "between two classes."
    )
    if (facts.model.trust or Trust()).declined:
        return Sign("bad", f"{text} Adaptation was declined, so this distance remains.")
    if facts.adapted is None:
        return Sign("bad", f"{text} This method has no adapted mixture to compare the target with.")
    return Sign("note", f"{text} The result depends entirely on the adaptation.")


def _distance_after_adaptation(facts: Facts) -> Sign | None:
    left = distance_left(facts)
    if left is None:
        return None
    if left < _MAX_DISTANCE_LEFT:
        return Sign(
            "good",
            f"The adapted mixture fits the target: {percent(left)} of the distance to the nearest "
            "source is left. This shows that the distributions match, not that the classes do.",
        )
    return Sign(
        "bad",
        f"The adapted mixture does not fit the target: {percent(left)} of the distance to the "
        "nearest source is left.",
    )


def shared_coordinates(coordinates: Array) -> float:
    """Return the fraction of the target's coordinates (last row) that some source shares.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.report._sentences import shared_coordinates
    >>> shared_coordinates(np.array([[1.0, 0.0], [0.7, 0.3]]))
    0.7
    """
    return float(np.minimum(coordinates[-1], coordinates[:-1].max(axis=0)).sum())


def shared_atoms(facts: Facts) -> Sign | None:
    """Return how much of the target the dictionary shares with the sources."""
    dictionary = facts.model.dictionary
    if dictionary is None or len(dictionary.coordinates) < 2 or len(facts.experts) > 1:
        return None
    shared = shared_coordinates(dictionary.coordinates)
    text = (
        f"The target shares {percent(shared)} of its barycentric coordinates with a source. Labels "
        "reach the target only through shared atoms."
    )
    if shared < _MIN_SHARED:
        return Sign("bad", f"{text} Fewer atoms may help.")
    return Sign("good" if shared > _MOSTLY_SHARED else "note", text)


def _class_proportions(facts: Facts) -> Sign | None:
    proportions = target_proportions(facts)
    if proportions is None or len(proportions) < 2 or not facts.sources:
        return None
    sources = facts.source_proportions
    rare = proportions < sources.min(axis=0) / _MAX_PROPORTION_RATIO
    common = proportions > np.minimum(sources.max(axis=0) * _MAX_PROPORTION_RATIO, 0.999)
    if not (rare | common).any():
        return Sign(
            "good",
            "The proportion of each class in the target is within a factor of "
            f"{_MAX_PROPORTION_RATIO:.0f} of its proportion in a source.",
        )
    parts = []
    if rare.any():
        names = listing([facts.classes[k] for k in np.flatnonzero(rare)])
        parts.append(f"Much rarer than in the sources: {names}.")
    if common.any():
        names = listing([facts.classes[k] for k in np.flatnonzero(common)])
        parts.append(f"Much more frequent than in the sources: {names}.")
    return Sign(
        "bad",
        f"The class proportions of {proportions_origin(facts)} differ strongly from those of the "
        f"sources. {' '.join(parts)} Unless the target really differs in this way, classes have "
        "been confused.",
    )


def target_proportions(facts: Facts) -> Array | None:
    """Return the class proportions of the predictions, else of the adapted mixture."""
    if facts.predictions is not None:
        return facts.predictions.proportions
    return None if facts.adapted is None else facts.adapted.class_proportions


def proportions_origin(facts: Facts) -> str:
    """Return what `target_proportions` describes."""
    return "the adapted mixture" if facts.predictions is None else "the predictions"


def _confidence(facts: Facts, predictions: Predictions) -> Sign:
    low = float((predictions.probability < _LOW_CONFIDENCE).mean())
    amount = f"{percent(low)} of the samples have" if low else "No sample has"
    text = f"{amount} a confidence below {percent(_LOW_CONFIDENCE)}."
    if low > _MAX_LOW_CONFIDENCE:
        return Sign("bad", text)
    if facts.target.n_features >= _MANY_FEATURES:
        return Sign("note", f"{text} With many features, mixtures are often overconfident.")
    return Sign("good", text)


def _outliers(facts: Facts) -> Sign:
    """Report outliers. That the target itself has few is so by construction, hence no "good"."""
    fraction = _outlier_fraction(facts)
    if fraction > _MAX_OUTLIERS:
        return Sign(
            "bad",
            f"{percent(fraction)} of the samples are outliers: they resemble neither the sources "
            "nor the target. Their predictions are unreliable. Inspect them first.",
        )
    amount = f"{percent(fraction)} of the samples are outliers" if fraction else "No outliers"
    return Sign(
        "note",
        f"{amount} with respect to the sources and {facts.target_name}. A new class within "
        f"{facts.target_name} is not detected in this way.",
    )
