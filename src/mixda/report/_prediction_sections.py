"""The section of the page about predictions."""

from __future__ import annotations

from mixda._core.text import plural
from mixda._core.typing import Array
from mixda.report import _prediction_charts as _charts
from mixda.report import _sentences
from mixda.report._facts import Facts, Predictions
from mixda.report._html import Markup, cut, join, listing, percent, table, tag
from mixda.report._marks import legend
from mixda.report._sections import figure
from mixda.views import CertaintyBin, ClassProportions, Confusion, certainty_bins

_CONFIDENCE_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)
_N_LEAST_CERTAIN = 10
_MAX_OUTLIERS_LISTED = 10


def predictions(facts: Facts) -> Markup | None:
    """Class proportions, confusion matrix, confidence and least certain samples."""
    predictions = facts.predictions
    proportions = _sentences.target_proportions(facts)
    figures = []
    if proportions is not None and facts.sources:
        figures.append(_proportions(facts, proportions))
    if predictions is None:
        return tag("div", *figures, class_="pair") if figures else None
    if predictions.confusion is not None:
        figures.append(_confusion(facts, predictions, predictions.confusion))
    figures.append(_confidence(predictions))
    names = None if facts.short_classes == facts.classes else legend(facts.classes)
    return join([names, tag("div", *figures, class_="pair"), _least_certain(facts, predictions)])


def _proportions(facts: Facts, target: Array) -> Markup:
    true = None if facts.predictions is None else facts.predictions.true_proportions
    shown = ClassProportions(facts.classes, facts.source_proportions, target, true)
    text = f"Squares show {_sentences.proportions_origin(facts)}, circles the sources"
    text += "." if true is None else ", and bars the given labels."
    if facts.balanced:
        text += " The mixtures of the sources give each class the same weight."
    near = facts.nearest_sources
    head = ["class", facts.target_name, *(facts.names[k] for k in near)]
    columns = [shown.target, *(shown.sources[k] for k in near)]
    if true is not None:
        head.append("true")
        columns.append(true)
    rows = [
        (name, *(percent(float(column[k])) for column in columns))
        for k, name in enumerate(shown.classes)
    ]
    picture = _charts.proportions(shown, facts.target_name)
    return figure("Class proportions", text, picture, table(head, rows))


def _confusion(facts: Facts, predictions: Predictions, shown: Confusion) -> Markup:
    text = (
        f"Accuracy {percent(predictions.accuracy)} on {len(predictions):,} labeled samples "
        f"({_sentences.interval(*predictions.interval)}). Rows are true classes. Shades are shares "
        "of a row, blue where correct."
    )
    unknown = [str(name) for name in shown.unknown]
    if unknown:
        text += f" The model was not trained on {listing(unknown)}; these rows count as errors."
    names = [*facts.classes, *unknown]
    rows = [(name, *row) for name, row in zip(names, shown.counts.tolist(), strict=True)]
    picture = _charts.confusion(facts, predictions, shown)
    numbers = table(["true class", *facts.classes], rows)
    return figure("Confusion matrix", text, picture, numbers)


def _confidence(predictions: Predictions) -> Markup:
    bins = certainty_bins(predictions.probability, _CONFIDENCE_EDGES, predictions.correct)
    text = "Number of samples by the probability of their predicted class."
    head = ["probability", "samples"]
    if predictions.confusion is not None:
        text += " A well-calibrated model is right as often as its confidence suggests."
        head.append("correct")
    rows = [_bin_row(b) for b in bins]
    return figure("Confidence", text, _charts.certainty(bins), table(head, rows))


def _bin_row(b: CertaintyBin) -> tuple[object, ...]:
    row = (_charts.bin_name(b), b.n_samples)
    return row if b.accuracy is None else (*row, percent(b.accuracy))


def _least_certain(facts: Facts, predictions: Predictions) -> Markup:
    head = ["row", "class", "probability", "second class", "probability"]
    if predictions.outlier.any():
        head.append("outlier")
    if predictions.confusion is not None:
        head.append("true class")
    order = predictions.probability.argsort(kind="stable")[:_N_LEAST_CERTAIN]
    rows = [_sample_row(facts, predictions, int(k)) for k in order]
    text = "Inspect these first. Row 1 is the first row of the data."
    if predictions.n_rows is not None:
        text += f" This page is about {len(predictions):,} of {predictions.n_rows:,} rows."
    if predictions.n_dropped:
        verb = "was" if predictions.n_dropped == 1 else "were"
        text += f" {plural(predictions.n_dropped, 'row')} with missing values {verb} dropped."
    if predictions.outlier.any():
        text += f" {_outlier_rows(predictions)}"
    caption = tag("figcaption", tag("h3", "Least certain samples"), tag("p", text))
    return tag("figure", caption, table(head, rows))


def _sample_row(facts: Facts, predictions: Predictions, k: int) -> tuple[object, ...]:
    single = len(facts.classes) == 1
    row: list[object] = [
        int(predictions.row_numbers[k]),
        facts.short_classes[predictions.first[k]],
        percent(float(predictions.probability[k])),
        "–" if single else facts.short_classes[predictions.second[k]],
        "–" if single else percent(float(predictions.second_probability[k])),
    ]
    if predictions.outlier.any():
        row.append(tag("span", "outlier", class_="flag") if predictions.outlier[k] else "")
    if predictions.confusion is not None:
        row.append(cut(str(predictions.confusion.true_classes[predictions.confusion.codes[k]]), 28))
    return tuple(row)


def _outlier_rows(predictions: Predictions) -> str:
    rows = [str(number) for number in predictions.row_numbers[predictions.outlier]]
    return (
        f"{plural(len(rows), 'row')} {'is an outlier' if len(rows) == 1 else 'are outliers'}, "
        f"whatever the predicted probability: {listing(rows, _MAX_OUTLIERS_LISTED)}."
    )
