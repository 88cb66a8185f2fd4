"""The report in words: what was adapted to what, how far apart, and how far to trust it.

Each function turns numbers of `Facts` into sentences; nothing here is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixda._core.text import plural
from mixda._core.validation import Array
from mixda.model import Trust
from mixda.report._facts import Facts, Predictions
from mixda.report._html import cut, listing, percent, significant

# Distance to the nearest source, as a share of the distance between two classes of a source
_CLOSE, _AWAY, _FAR = 0.25, 0.75, 1.25
_UNSURE = 0.6  # a probability below it is hardly better than a guess between two classes
_MANY_FAR, _MANY_UNSURE, _RATIO = 0.05, 0.15, 3.0
_LITTLE_SHARED, _MUCH_SHARED = 0.25, 0.6
_OVERSURE_FEATURES, _TOO_SURE = 20, 0.05


@dataclass(frozen=True)
class Card:
    """A number worth a glance."""

    name: str
    value: str
    note: str


@dataclass(frozen=True)
class Sign:
    """Something that speaks for the result ("good"), against it ("bad"), or only a remark."""

    kind: str
    text: str


def heading(facts: Facts) -> str:
    """Return the title of the page if the user gave none."""
    return f"Adapting to {cut(facts.model.target.name, 60)}"


def lede(facts: Facts) -> str:
    """Say what was adapted to what."""
    model = facts.model
    known = [domain.n_samples for domain in model.sources]
    samples = sum(n for n in known if n is not None)
    amount = f", {samples:,} samples" if samples and None not in known else ""
    size = model.target.n_samples
    target_amount = "" if size is None else f" ({size:,} samples)"
    names = listing([domain.name for domain in model.sources])
    return (
        f"{model.method} learned from {plural(facts.n_sources, 'labeled domain')} "
        f"({names}{amount}) to name the classes of {model.target.name}{target_amount}, "
        "whose labels it never saw: "
        f"{plural(len(facts.classes), 'class', 'classes')}, "
        f"{plural(len(model.feature_names), 'feature')}."
    )


def distance_words(facts: Facts) -> str:
    """Say how far apart the domains are."""
    to_target, target = facts.to_target, facts.target_name
    nearest = int(to_target.argmin())
    away = float(to_target[nearest])
    name = cut(facts.names[nearest], 40)
    text = (
        f"The source nearest to {target} is {name}, {significant(away)} away "
        "(MW2, the distance between mixtures, in units of the features that the model works with)"
    )
    if facts.gap > 0:
        text = (
            f"The target is {_how_far(away / facts.gap)}. {text}; two classes of one source are "
            f"typically {significant(facts.gap)} apart"
        )
    return f"{text}. {_among_sources(facts)}"


def _how_far(ratio: float) -> str:
    if ratio < _CLOSE:
        return "close to the sources"
    if ratio < _AWAY:
        return "some way off the sources"
    if ratio < _FAR:
        return "far from the sources, about as far as one class is from another"
    return "very far from the sources, farther than one class is from another"


def _among_sources(facts: Facts) -> str:
    n, nearest = facts.n_sources, float(facts.to_target.min())
    if n < 2:
        return "There is only one source, so nothing tells how much domains differ as a rule."
    among = facts.distances[:n, :n][np.triu_indices(n, 1)]
    low, high = float(among.min()), float(among.max())
    sources = f"{significant(low)} to {significant(high)}" if n > 2 else significant(high)
    if nearest > high:
        return f"That is farther than any two sources are from each other ({sources})."
    return f"The sources are {sources} apart, so the target is no stranger than they are."


def trust_words(facts: Facts) -> list[str]:
    """Say how far to trust the result and why, one paragraph per item."""
    found = facts.predictions
    measured = found is not None and found.truth is not None
    words = [] if measured and not _has_verdict(facts) else [_estimate(facts)]
    if measured:
        words.append(_measured(facts, found))  # type: ignore[arg-type]
    return words


def _has_verdict(facts: Facts) -> bool:
    """Whether the model was judged without labels of the target."""
    trust = facts.model.trust or Trust()
    return bool(trust.reason) or trust.accuracy is not None


def _estimate(facts: Facts) -> str:
    trust = facts.model.trust or Trust()
    if trust.accuracy is not None:
        return trust.sentence_for(facts.target_name, _share_far(facts), percent)
    return (
        "Nobody has estimated how often this model is right, and without labels of the target "
        "its own probabilities are no proof. Before relying on it, label some fifty rows of "
        f"{facts.target_name} by hand, taken at random, and make this report again with them "
        f"(--data and --label on the command line, X and y in Python). {trust.explanation}"
    ).rstrip()


def _share_far(facts: Facts) -> float:
    return 0.0 if facts.predictions is None else float(facts.predictions.far.mean())


def _measured(facts: Facts, found: Predictions) -> str:
    low, high = found.interval
    text = (
        f"Measured on {plural(len(found), 'labeled sample')}: right for "
        f"{percent(found.accuracy)} (with as many others, between {percent(low)} and "
        f"{percent(high)}; 95 %)."
    )
    surer = float(found.probability.mean()) - found.accuracy
    if surer > _TOO_SURE:
        text += (
            f" It is surer than it should be: on average it gives its choice "
            f"{percent(float(found.probability.mean()))}."
        )
    trust = facts.model.trust or Trust()
    least, most = trust.low, trust.high
    if least is None or most is None:
        return text
    if high < least:
        return f"{text} The estimate made without labels was too hopeful: believe the labels."
    if low > most:
        return f"{text} The estimate made without labels was too careful."
    return f"{text} The estimate made without labels agrees with it."


def cards(facts: Facts) -> list[Card]:
    """Return the numbers worth a glance."""
    found = facts.predictions
    items = []
    if found is not None and found.truth is not None:
        low, high = found.interval
        note = f"{percent(low)} to {percent(high)}, on {plural(len(found), 'labeled sample')}"
        items.append(Card("Accuracy, measured", percent(found.accuracy), note))
    if not items or _has_verdict(facts):
        items.append(_trust_card(facts))
    nearest = float(facts.to_target.min())
    name = cut(facts.names[int(facts.to_target.argmin())], 24)
    if facts.gap > 0:
        value, note = f"{nearest / facts.gap:.2g} ×", "the distance between two classes"
    else:
        value, note = significant(nearest), "in units of the features"
    items.append(Card(f"Distance to {name}, the nearest source", value, note))
    left = distance_left(facts)
    if left is not None:
        items.append(
            Card("Of that distance, left after adapting", percent(left), "as the mixtures see it")
        )
    if found is not None:
        note = f"of {plural(len(found), 'sample')}; a new class in {facts.target_name} is not seen"
        far = percent(float(found.far.mean())) if found.far.any() else "none"
        items.append(Card("Far from the sources and the target", far, note))
    return items


def _trust_card(facts: Facts) -> Card:
    trust = facts.model.trust or Trust()
    declined = "; adaptation was declined" if trust.declined else ""
    if trust.accuracy is None:
        return Card("Accuracy, estimated", "unknown", f"no estimate was made{declined}")
    if not trust.holds_for(_share_far(facts)):
        note = f"that of {facts.target_name} does not hold for these samples{declined}"
        return Card("Accuracy, estimated", "unknown", note)
    note = (trust.interval(percent) or "without labels of the target") + declined
    return Card("Accuracy, estimated", percent(trust.accuracy), note)


def distance_left(facts: Facts) -> float | None:
    """Distance of the adapted mixture to the target as a share of the nearest source's."""
    nearest = float(facts.to_target.min())
    if facts.adapted is None or nearest <= 0:
        return None
    return float(facts.distances[-1, facts.n_sources]) / nearest


def signs(facts: Facts) -> list[Sign]:
    """Return what speaks for and against the result, without any label of the target."""
    found = [_farness(facts), _closeness(facts), _shared_atoms(facts), _missing_classes(facts)]
    if facts.predictions is not None:
        found += [_certainty(facts, facts.predictions), _strangers(facts, facts.predictions)]
    return [sign for sign in found if sign is not None]


def _farness(facts: Facts) -> Sign | None:
    ratio = float(facts.to_target.min()) / facts.gap if facts.gap > 0 else 0.0
    if ratio < _AWAY:
        return None
    text = (
        f"The target is {ratio:.2g} times the distance between two classes away from the nearest "
        "source, so what was learned there cannot simply be used here"
    )
    if facts.adapted is None:
        return Sign("bad", f"{text}, and this method leaves no mixture by which to see the step.")
    return Sign("note", f"{text}: all rests on the adaptation.")


def _closeness(facts: Facts) -> Sign | None:
    left = distance_left(facts)
    if left is None:
        return None
    if left < 0.5:
        return Sign(
            "good",
            f"The adapted mixture fits the target: {percent(left)} of the distance to the nearest "
            "source is left. That shows that the shapes match, not that each got the right class.",
        )
    return Sign(
        "bad",
        f"The adapted mixture still misses the target: {percent(left)} of the distance to the "
        "nearest source is left.",
    )


def shared_coordinates(coordinates: Array) -> float:
    """Share of the target's coordinates (the last row) on atoms that a source uses as much.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.report._sentences import shared_coordinates
    >>> shared_coordinates(np.array([[1.0, 0.0], [0.7, 0.3]]))
    0.7
    """
    return float(np.minimum(coordinates[-1], coordinates[:-1].max(axis=0)).sum())


def _shared_atoms(facts: Facts) -> Sign | None:
    dictionary = facts.model.dictionary
    if dictionary is None or len(dictionary.coordinates) < 2 or len(facts.experts) > 1:
        return None
    shared = shared_coordinates(dictionary.coordinates)
    text = (
        f"{percent(shared)} of the target's blend of atoms is in the blend of some source too, "
        "and labels reach the target through what it shares"
    )
    if shared < _LITTLE_SHARED:
        return Sign("bad", f"Only {text}; fewer atoms may help.")
    return Sign("good" if shared > _MUCH_SHARED else "note", f"{text}.")


def _missing_classes(facts: Facts) -> Sign | None:
    shares = target_shares(facts)
    if shares is None or len(shares) < 2 or not facts.sources:
        return None
    sources = facts.source_shares
    rare = shares < sources.min(axis=0) / _RATIO
    common = shares > np.minimum(sources.max(axis=0) * _RATIO, 0.999)
    if not (rare | common).any():
        return Sign(
            "good",
            f"Every class has a share of the target that is within {_RATIO:.0f} times its share "
            "of some source.",
        )
    parts = []
    if rare.any():
        names = listing([facts.classes[k] for k in np.flatnonzero(rare)])
        parts.append(f"much rarer than in the sources: {names}")
    if common.any():
        names = listing([facts.classes[k] for k in np.flatnonzero(common)])
        parts.append(f"much more frequent: {names}")
    return Sign(
        "bad",
        f"In {shares_of(facts)}, some classes are {'; '.join(parts)}. That is right if the target "
        "differs so; else classes were mixed up.",
    )


def target_shares(facts: Facts) -> Array | None:
    """Share of each class in the target: of the predictions, else of the adapted mixture."""
    if facts.predictions is not None:
        return facts.predictions.shares
    return None if facts.adapted is None else facts.adapted.class_proportions


def shares_of(facts: Facts) -> str:
    """Return what those shares are shares of."""
    return "the adapted mixture" if facts.predictions is None else "the predictions"


def _certainty(facts: Facts, found: Predictions) -> Sign:
    unsure = float((found.probability < _UNSURE).mean())
    oversure = (
        " Mixtures over many features are often surer than they should be."
        if facts.target.n_features >= _OVERSURE_FEATURES
        else ""
    )
    if unsure > _MANY_UNSURE:
        return Sign(
            "bad",
            f"The model is unsure of {percent(unsure)} of the samples (its best class has less "
            f"than {percent(_UNSURE)}).",
        )
    amount = "none" if unsure == 0 else f"only {percent(unsure)}"
    text = f"The model is unsure of {amount} of the samples (best class below {percent(_UNSURE)})."
    return Sign("note" if oversure else "good", text + oversure)


def _strangers(facts: Facts, found: Predictions) -> Sign:
    """Say how many are far; that the target's own samples are not far is so by construction."""
    far = float(found.far.mean())
    if far > _MANY_FAR:
        return Sign(
            "bad",
            f"{percent(far)} of the samples are far from everything the model knows; their labels "
            "are guesses. Look at them before using the rest.",
        )
    who = "No sample is" if far == 0 else f"Few samples ({percent(far)}) are"
    return Sign(
        "note",
        f"{who} unlike both the sources and {facts.target_name}, the target that the model was "
        "adapted to. A new class inside that target is not found this way.",
    )
