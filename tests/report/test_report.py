"""The report as a document: what it says, what it must not say, and that it is valid."""

import re
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest

import mixda
from mixda.report import write_report

from .report_models import NAUGHTY, Page, adapted_model


@pytest.fixture(scope="module")
def model():
    return adapted_model()


@pytest.fixture
def write(tmp_path):
    def write(*args, **kwargs):
        path = write_report(args[0], tmp_path / "report.html", *args[1:], **kwargs)
        return path.read_text(encoding="utf-8")

    return write


SHAPES = {
    "ordinary": {},
    "one feature": {"n_features": 1},
    "two features": {"n_features": 2},
    "one class": {"n_classes": 1},
    "one source": {"n_sources": 1},
    "many": {"n_classes": 30, "n_sources": 10, "n_features": 12},
    "wide": {"n_features": 1500},
    "no dictionary": {"dictionary": False},
    "markup in names": {"classes": NAUGHTY, "names": [*NAUGHTY[:2], "<b>new</b>"]},
    "numbers as classes": {"classes": [7, 1, 3]},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_pages_are_valid_accessible_and_small(shape, write):
    model, X, y = adapted_model(**shape)
    text = write(model, X, y)
    page = Page(text)
    assert not page.mistakes
    assert not page.open
    assert text.startswith("<!doctype html>")
    assert page.all("html")[0]["lang"] == "en"
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [a.get("href", "#")[1:] for a in page.all("a") + page.all("use")]
    pointed = links + [a["aria-labeledby"] for _, a in page.tags if "aria-labeledby" in a]
    assert set(pointed) - {""} <= set(ids)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1
    for svg in page.all("svg"):
        assert svg.get("aria-hidden") == "true" or (svg["role"] == "img" and svg["aria-label"])
    assert len(text.encode()) < 500_000


@pytest.mark.parametrize("dictionary", [True, False])
def test_names_are_text_and_never_markup(write, dictionary):
    names = [*NAUGHTY[:2], NAUGHTY[0]]
    model, X, y = adapted_model(
        classes=NAUGHTY,
        names=names,
        dictionary=dictionary,
        feature_names=tuple(f"{name}{k}" for k, name in enumerate(NAUGHTY)),
        settings={"created": "<script>", "parameters": {"<img>": "<img>"}, "versions": "<img>"},
        trust={"accuracy": 0.5, "reason": "<img src=x>", "candidates": [{"name": "<img>"}]},
    )
    page = Page(write(model, X, y, title="</title><img>"))
    assert not page.all("img")
    assert len(page.all("script")) == (2 if dictionary else 0)
    assert not [a for _, a in page.tags if any(name.startswith("on") for name in a)]
    assert "</script><img src=x onerror=alert(1)>" in page.words
    assert "<img src=x>" in page.words


def test_nothing_is_fetched_and_only_the_own_script_may_run(model, write):
    import base64
    import hashlib

    text = write(*model)
    page = Page(text)
    assert not re.search(r"(src|action)=|url\(|@import|https?://", text)
    policy = next(m["content"] for m in page.all("meta") if "http-equiv" in m)
    script = text.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.endswith(f"script-src 'sha256-{digest}'")
    assert policy.startswith("default-src 'none'")


def test_the_same_model_gives_the_same_bytes(model, write):
    assert write(*model) == write(*model)
    assert write(*model) == write(*adapted_model())


def test_inputs_are_not_changed_and_the_path_is_returned(model, tmp_path):
    value, X, y = model
    before = X.copy(), y.copy()
    path = write_report(value, str(tmp_path / "a.html"), X, y)
    assert path == tmp_path / "a.html"
    assert list(tmp_path.iterdir()) == [path]
    np.testing.assert_array_equal(before[0], X)
    np.testing.assert_array_equal(before[1], y)


def test_the_headline_says_what_was_adapted_to_what(model, write):
    page = Page(write(model[0]))
    assert "Adapting to new site" in page.words
    assert (
        "GMMDaDiL learned from 2 labeled domains (site 0 and site 1, 200 samples) to name the "
        "classes of new site (50 samples), whose labels it never saw: 3 classes, 3 features."
    ) in page.words
    assert "Another title" in Page(write(model[0], title="Another title")).words


def test_the_distances_are_mw2(model, write):
    value = model[0]
    near = min(mixda.mw2(d.mixture, value.target.mixture) for d in value.sources)
    between = mixda.mw2(value.sources[0].mixture, value.sources[1].mixture)
    words = Page(write(value)).words
    assert f"{near:.3g} away" in words
    assert f"{between:.3g}" in words


def test_far_and_close_are_measured_by_the_distance_between_classes(write):
    def moved(by):
        value, _, _ = adapted_model(n_sources=1)
        p = value.sources[0].mixture
        target = replace(p, means=p.means + np.array([by, 0, 0]), labels=None, classes=None)
        return replace(value, target=replace(value.target, mixture=target))

    near, far = Page(write(moved(0.5))).words, Page(write(moved(50.0))).words
    assert "The target is close to the sources" in near
    assert "all rests on the adaptation" not in near
    assert "The target is very far from the sources" in far
    assert "all rests on the adaptation" in far
    bare = replace(moved(50.0), dictionary=None, plan=None, labeled_target=None)
    assert "! beware The target is" in Page(write(bare)).words


def test_without_an_estimate_the_page_says_so_and_what_to_do(model, write):
    words = Page(write(model[0])).words
    assert "Nobody has estimated how often this model is right" in words
    assert "label some fifty rows of new site" in words


TRUST = {"accuracy": 0.93, "low": 0.88, "high": 0.97, "level": 0.8, "reason": "methods agree"}


def test_the_estimate_is_told_with_its_range_and_its_reason(model, write):
    words = Page(write(replace(model[0], trust=TRUST))).words
    assert "accuracy 93 % (80 % interval: 88–97 %)" in words
    assert "methods agree." in words
    declined = {**TRUST, "declined": True, "reason": "Adaptation was declined: it did not help."}
    words = Page(write(replace(model[0], trust=declined))).words
    assert "accuracy 93 %" in words
    assert "Adaptation was declined: it did not help." in words
    unknown = {**declined, "accuracy": None, "low": None, "high": None}
    words = Page(write(replace(model[0], trust=unknown))).words
    assert "Nobody has estimated how often this model is right" in words
    assert "Adaptation was declined: it did not help." in words


def test_the_estimate_is_that_of_the_target_only(model, write):
    value, X, _ = model
    value = replace(value, trust=TRUST)
    X = X[~value.novelty(X)][:40]
    for n_far, holds in ((0, True), (4, True), (5, False)):  # a tenth at most
        rows = X.copy()
        rows[:n_far] += 1e3
        words = Page(write(value, rows)).words
        assert ("Estimated accuracy 93 %" in words) is holds
        assert ("The estimate is for new site" in words) is holds
        sentence = "estimated for new site, the target of this model, does not hold"
        assert (sentence in words) is not holds
        assert ("Accuracy, estimated 93 %" in words) is holds
        assert ("Accuracy, estimated unknown" in words) is not holds


def test_that_no_sample_is_far_speaks_for_nothing(model, write):
    """What the model was adapted to is known to it, with whatever new class is in it."""
    value, X, _ = model
    X = X[~value.novelty(X)]
    words = Page(write(value, X)).words
    sentence = "No sample is unlike both the sources and new site, the target that the model was"
    assert sentence in words
    assert f"✓ good {sentence}" not in words
    assert "A new class inside that target is not found this way." in words
    X = np.vstack([X, X])
    X[0] += 1e3
    words = Page(write(value, X)).words
    assert re.search(r"Few samples \([\d.]+ %\) are unlike", words)
    assert "✓ good Few samples" not in words


@pytest.mark.parametrize(
    ("wrong", "low", "high", "verdict"),
    [
        (0, 0.97, 1.0, "agrees with it"),
        (40, 0.88, 0.97, "too hopeful: believe the labels"),
        (0, 0.1, 0.2, "was too careful"),
    ],
)
def test_labels_judge_the_estimate(model, write, wrong, low, high, verdict):
    value, X, _ = model
    y = value.predict(X)
    y[:wrong] = value.classes[(np.searchsorted(value.classes, y[:wrong]) + 1) % 3]
    value = replace(value, trust={**TRUST, "low": low, "high": high})
    words = Page(write(value, X, y)).words
    assert f"Measured on 80 labeled samples: right for {100 - wrong * 100 // 80} %" in words
    assert verdict in words


def test_with_labels_and_no_estimate_only_the_labels_speak(model, write):
    value, X, _ = model
    y = value.predict(X)
    words = Page(write(value, X, y)).words
    assert "Nobody has estimated" not in words
    assert "Accuracy, estimated" not in words
    assert "surer than it should be" not in words
    y[:40] = value.classes[(np.searchsorted(value.classes, y[:40]) + 1) % 3]
    assert (
        "It is surer than it should be: on average it gives its choice"
        in Page(write(value, X, y)).words
    )


def test_counts_in_the_page_are_the_confusion_matrix(model, write):
    from sklearn.metrics import confusion_matrix

    value, X, y = model
    y = y.copy()
    y[::9] = value.classes[0]
    text = write(value, X, y)
    counts = confusion_matrix(y, value.predict(X), labels=value.classes)
    row = re.search(r"true class</th>.*?<tbody>(.*?)</tbody>", text).group(1)
    shown = [int(n) for n in re.findall(r'class="number">(\d+)<', row)]
    np.testing.assert_array_equal(np.reshape(shown, (3, 3)), counts)


def test_labels_unknown_to_the_model_are_a_row_of_their_own(model, write):
    value, X, y = model
    y = y.astype("U9")
    y[0] = "new class"
    words = Page(write(value, X, y)).words
    assert "The model does not know new class" in words


def test_least_certain_rows_are_the_least_certain(model, write):
    value, X, _ = model
    text = write(value, X)
    least = value.predict_proba(X).max(axis=1).argsort(kind="stable")[:12] + 1
    table = text.split("The least certain samples")[1].split("<tbody>")[1].split("</tbody>")[0]
    shown = [int(n) for n in re.findall(r'<th scope="row" class="brief">(\d+)</th>', table)]
    np.testing.assert_array_equal(shown, least)
    X = value.target.mixture.means.copy()
    assert "far from everything the model knows" not in Page(write(value, X)).words
    X[3] += 1e3
    assert "1 row is far from everything the model knows, whatever" in Page(write(value, X)).words


def test_rows_are_called_by_their_numbers_in_the_data(model, write):
    value, X, _ = model
    X = X[~value.novelty(X)]
    X[3] += 1e3
    numbers = np.arange(len(X)) * 2 + 5
    text = write(value, X, row_numbers=numbers, n_dropped=7)
    least = numbers[value.predict_proba(X).max(axis=1).argsort(kind="stable")[:12]]
    table = text.split("The least certain samples")[1].split("<tbody>")[1].split("</tbody>")[0]
    shown = [int(n) for n in re.findall(r'<th scope="row" class="brief">(\d+)</th>', table)]
    np.testing.assert_array_equal(shown, least)
    assert "whatever their probabilities say: 11." in Page(text).words
    assert "7 rows with missing values were left out." in Page(text).words
    assert "left out" not in Page(write(value, X)).words


def test_rows_of_the_plan_are_the_source_s_where_labels_travel_to_the_target():
    """GMM-OTDA labels the target's own components, which may be as many as the source's."""
    from mixda.report._facts import collect_facts

    task = mixda.datasets.make_shifted_toy(random_state=2).as_task()
    estimator = mixda.GMMOTDA(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    facts = collect_facts(estimator.to_model())
    assert facts.adapted.n_components == facts.sources[0].n_components
    received = facts.plan.T @ facts.plan_rows.labels / facts.plan.sum(axis=0)[:, None]
    np.testing.assert_allclose(received, facts.adapted.labels, atol=1e-9)


def test_a_committee_says_whose_mixtures_are_shown(model, write):
    value = model[0]
    lam = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    value = replace(value, dictionary=replace(value.dictionary, coordinates=lam))
    for experts, several in (([], False), (["a"], False), (["a", "b"], True)):
        settings = {**value.settings, "experts": experts}
        words = Page(write(replace(value, method="AutoMSDA", settings=settings))).words
        sentence = "AutoMSDA decides by 2 classifiers together, but the mixtures on this page are"
        assert (sentence in words) is several
        assert ("fewer atoms may help" in words) is not several


def test_rare_classes_are_those_of_what_was_seen(model, write):
    value, X, y = model
    X = X[y == value.classes[0]]
    assert "In the predictions, some classes are much rarer" in Page(write(value, X)).words
    adapted = value.labeled_target
    weights = np.where(adapted.labels[:, 0] > 0.5, 1.0, 1e-3)
    adapted = replace(adapted, weights=weights / weights.sum())
    words = Page(write(replace(value, labeled_target=adapted, plan=None))).words
    assert "In the adapted mixture, some classes are much rarer" in words


def test_shares_of_the_sources_are_those_before_balancing(model, write):
    value, X, y = model
    y = value.predict(X)
    X = np.vstack(
        [
            np.repeat(X[y == name], n, axis=0)[:n]
            for name, n in zip(value.classes, (90, 7, 3), strict=True)
        ]
    )
    shares = [0.9, 0.07, 0.03]
    value = replace(value, settings={"parameters": {"class_prior": "uniform"}})
    old = Page(write(value, X)).words
    assert "were asked to hold every class in equal parts" in old
    assert "some classes are much rarer than in the sources" in old
    sources = [
        replace(d, mixture=replace(d.mixture, info={"class_shares": shares})) for d in value.sources
    ]
    sources[1] = replace(  # the same, in another order
        sources[1],
        mixture=replace(
            sources[1].mixture,
            labels=sources[1].mixture.labels[:, ::-1],
            classes=value.classes[::-1],
            info={"class_shares": shares[::-1]},
        ),
    )
    text = write(replace(value, sources=tuple(sources)), X)
    words = Page(text).words
    assert "equal parts" not in words
    assert "some classes are much rarer" not in words
    assert "Every class has a share of the target that is within 3 times" in words
    table = text.split("<h3>Class proportions</h3>")[1].split("<tbody>")[1].split("</tbody>")[0]
    assert [re.findall(r"(\d+)\s%", row)[1:] for row in table.split("</tr>")[:3]] == [
        [f"{100 * share:.0f}"] * 2 for share in shares
    ]


@pytest.mark.parametrize("shares", [[0.5, 0.5], ["a", "b", "c"], [2.0, -0.5, -0.5], {"a": 1}, 3])
def test_shares_that_cannot_be_are_not_believed(model, write, shares):
    value = model[0]
    source = value.sources[0]
    forged = replace(source, mixture=replace(source.mixture, info={"class_shares": shares}))
    assert write(replace(value, sources=(forged, value.sources[1]))) == write(value)


def test_sections_without_content_are_left_out(model, write):
    full = write(*model)
    for name in ("domains", "components", "plan", "predictions", "learning", "settings"):
        assert f'<section id="{name}"' in full
    bare = replace(model[0], dictionary=None, plan=None, labeled_target=None)
    text = write(bare)
    for name in ("plan", "predictions", "learning"):
        assert f'id="{name}"' not in text
        assert f'href="#{name}"' not in text
    assert "Barycentric coordinates" not in text
    assert "<script" not in text


def test_likelihoods_are_drawn_when_they_were_recorded(model, write):
    value = model[0]
    assert "likelihood of the samples was not recorded" in Page(write(value)).words
    past = value.dictionary.history
    past = replace(past, nll=np.abs(past.domain_loss) + 1)
    value = replace(value, dictionary=replace(value.dictionary, history=past))
    assert "How surprising the samples are" in Page(write(value)).words


def test_a_target_that_shares_no_atom_is_a_warning(model, write):
    value = model[0]
    lam = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    value = replace(value, dictionary=replace(value.dictionary, coordinates=lam))
    assert "Only 0 % of the target's blend of atoms" in Page(write(value)).words


def test_frames_follow_the_components(model):
    from mixda.views import interpolation_frames

    dictionary = model[0].dictionary
    for way, atom in zip(interpolation_frames(dictionary, 4), dictionary.atoms, strict=True):
        np.testing.assert_allclose(way[0].means, dictionary.target.means)
        assert mixda.mw2(way[-1], atom) < 1e-6
        for before, after in pairwise(way):
            plan = mixda.transport_plan(before, after).plan
            np.testing.assert_array_equal(plan.argmax(axis=1), np.arange(len(plan)))


def test_frames_without_feature_shapes_are_pixels_inside_the_picture(model, write):
    import json

    text = write(model[0])
    data = json.loads(text.split('id="frames">')[1].split("</script>")[0])
    numbers = np.array([frame["c"] for frame in data["frames"]])
    assert ((numbers[..., 3:] >= 0) & (numbers[..., 3:] <= 360)).all()
    assert [s["name"] for s in data["stops"]] == ["atom 1", "new site", "atom 2"]
    assert data["stops"][-1]["at"] == len(data["path"]) - 1
    lam = np.array([data["frames"][k]["l"] for k in data["path"]])
    np.testing.assert_allclose(lam[0], [1, 0], atol=1e-6)
    np.testing.assert_allclose(lam[-1], [0, 1], atol=1e-6)
    middle = lam[data["stops"][1]["at"]]
    np.testing.assert_allclose(middle, model[0].dictionary.coordinates[-1], atol=1e-6)


def test_mistakes_get_a_sentence(model, tmp_path):
    value, X, y = model
    with pytest.raises(ValueError, match="y was given without X"):
        write_report(value, tmp_path / "a.html", y=y)
    with pytest.raises(ValueError, match="y has 3 labels, but X has 80 rows"):
        write_report(value, tmp_path / "a.html", X, y[:3])
    with pytest.raises(ValueError, match="row_numbers must be 80 integers"):
        write_report(value, tmp_path / "a.html", X, row_numbers=[1, 2])
    with pytest.raises(ValueError, match="X is empty"):
        write_report(value, tmp_path / "a.html", X[:0])
    with pytest.raises(ValueError, match="cannot be written"):
        write_report(value, tmp_path / "no" / "a.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["GMMDaDiL", "GMMWBT", "SourceOnly"])
def test_estimators_report_themselves(method, tmp_path):
    task = mixda.datasets.make_toy(n_samples=40, random_state=2).as_task()
    estimator = getattr(mixda, method)().set_params(random_state=0)
    estimator.fit(task.X, task.y, sample_domain=task.sample_domain)
    path = estimator.report(tmp_path / "r.html", task.X_target, task.y_target)
    assert method in Page(path.read_text(encoding="utf-8")).words


def _luminance(color):
    rgb = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def _contrast(a, b):
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast_is_enough_for_text_and_for_marks(theme):
    style = files("mixda.report").joinpath("_style.css").read_text(encoding="utf-8")
    block = re.findall(r":root \{(.*?)\}", style, re.S)[theme]
    color = dict(re.findall(r"--(\w+): (#\w{6})", block))
    for paper in ("paper", "raised"):
        for text in ("ink", "dim", "accent", "warm", "good"):
            assert _contrast(color[text], color[paper]) >= 4.5, text
        for k in (*range(10), "n"):
            assert _contrast(color[f"k{k}"], color[paper]) >= 3.0, k
    assert _contrast(color["raised"], color["heat"]) >= 4.5  # numbers on dark cells
    assert _contrast(color["raised"], color["warm"]) >= 4.5
