"""The report as a document: what it says, what it must not say, and that it is valid."""

import re
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest

import mixda
from mixda._core.errors import MixdaError
from mixda.report import write_report
from mixda.report._facts import collect_facts
from mixda.report._sentences import distance_summary, next_steps, shared_atoms, signs
from mixda.rules import Chain, Linear, ReLU
from mixda.views import interpolation_frames

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
def test_valid_html(shape, write):
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
    pointed = links + [a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a]
    assert set(pointed) - {""} <= set(ids)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1
    for svg in page.all("svg"):
        assert svg.get("aria-hidden") == "true" or (svg["role"] == "img" and svg["aria-label"])
    assert len(text.encode()) < 500_000


@pytest.mark.parametrize("dictionary", [True, False])
def test_names_are_escaped(write, dictionary):
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


def test_content_security_policy(model, write):
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


def test_deterministic(model, write):
    assert write(*model) == write(*model)
    assert write(*model) == write(*adapted_model())


def test_inputs_unchanged(model, tmp_path):
    value, X, y = model
    before = X.copy(), y.copy()
    path = write_report(value, str(tmp_path / "a.html"), X, y)
    assert path == tmp_path / "a.html"
    assert list(tmp_path.iterdir()) == [path]
    np.testing.assert_array_equal(before[0], X)
    np.testing.assert_array_equal(before[1], y)


def test_headline(model, write):
    page = Page(write(model[0]))
    lede = page.words.split("Summary")[0]
    for fact in ("GMMDaDiL", "new site", "2 labeled domains", "site 0 and site 1", "200 samples"):
        assert fact in lede
    for fact in ("(50 samples)", "3 classes", "3 features"):
        assert fact in lede
    assert "Another title" in Page(write(model[0], title="Another title")).words


def test_distances_are_mw2(model, write):
    value = model[0]
    near = min(mixda.mw2(d.mixture, value.target.mixture) for d in value.sources)
    between = mixda.mw2(value.sources[0].mixture, value.sources[1].mixture)
    words = Page(write(value)).words
    assert f"at a distance of {near:.3g}" in words
    assert f"{near:.3g}" in words.split("MW2 distance")[1]
    assert f"{between:.3g}" in words


def test_distance_relative_to_classes(write):
    def moved(by):
        value, _, _ = adapted_model(n_sources=1)
        p = value.sources[0].mixture
        target = replace(p, means=p.means + np.array([by, 0, 0]), labels=None, classes=None)
        return replace(value, target=replace(value.target, mixture=target))

    near, far = collect_facts(moved(0.5)), collect_facts(moved(50.0))
    assert "is close to the sources" in distance_summary(near)
    assert "is very far from the sources" in distance_summary(far)
    assert len(signs(near)) == len(signs(far)) - 1
    assert signs(far)[0].kind == "note"
    bare = replace(moved(50.0), dictionary=None, plan=None, labeled_target=None)
    assert signs(collect_facts(bare))[0].kind == "bad"


def test_no_estimate(model, write):
    page = write(model[0])
    assert cards(page)["Estimated accuracy"] == "unknown"
    assert "--label" in Page(page).words


def cards(text):
    """Name and value of each key number."""
    found = re.findall(r'<dt>(.*?)</dt><dd class="value">(.*?)</dd>', text)
    return {name: value.replace("\xa0", " ") for name, value in found}


TRUST = {"accuracy": 0.93, "low": 0.88, "high": 0.97, "level": 0.8, "reason": "methods agree"}


def test_estimate_interval_and_reason(model, write):
    text = write(replace(model[0], trust=TRUST))
    assert cards(text)["Estimated accuracy"] == "93 %"
    for fact in ("93 %", "88–97 %", "80 %", "methods agree."):
        assert fact in Page(text).words
    declined = {**TRUST, "declined": True, "reason": "Adaptation was declined: it did not help."}
    text = write(replace(model[0], trust=declined))
    assert cards(text)["Estimated accuracy"] == "93 %"
    assert declined["reason"] in Page(text).words
    unknown = {**declined, "accuracy": None, "low": None, "high": None}
    text = write(replace(model[0], trust=unknown))
    assert cards(text)["Estimated accuracy"] == "unknown"
    assert declined["reason"] in Page(text).words


def test_estimate_not_for_outliers(model, write):
    value, X, _ = model
    value = replace(value, trust=TRUST)
    X = X[~value.novelty(X)][:40]
    for n_outliers, holds in ((0, True), (4, True), (5, False)):  # at most a tenth
        rows = X.copy()
        rows[:n_outliers] += 1e3
        assert cards(write(value, rows))["Estimated accuracy"] == ("93 %" if holds else "unknown")


def test_few_outliers_are_no_good_sign(model):
    """The target has few outliers by construction, even if it contains a new class."""
    value, X, _ = model
    X = X[~value.novelty(X)]
    X = np.vstack([X, X])
    for n_outliers, kind in ((0, "note"), (1, "note"), (len(X) // 10, "bad")):
        rows = X.copy()
        rows[:n_outliers] += 1e3
        sign = signs(collect_facts(value, rows))[-1]
        assert "outlier" in sign.text
        assert sign.kind == kind


@pytest.mark.parametrize(
    ("wrong", "low", "high", "verdict"),
    [
        (0, 0.97, 1.0, "agrees"),
        (40, 0.88, 0.97, "too optimistic"),
        (0, 0.1, 0.2, "too pessimistic"),
    ],
)
def test_measured_against_estimated(model, write, wrong, low, high, verdict):
    value, X, _ = model
    y = value.predict(X)
    y[:wrong] = value.classes[(np.searchsorted(value.classes, y[:wrong]) + 1) % 3]
    value = replace(value, trust={**TRUST, "low": low, "high": high})
    text = write(value, X, y)
    assert cards(text)["Measured accuracy"] == f"{100 - wrong * 100 // 80} %"
    assert verdict in Page(text).words


def test_measured_without_estimate(model, write):
    value, X, _ = model
    y = value.predict(X)
    text = write(value, X, y)
    assert cards(text)["Measured accuracy"] == "100 %"
    assert "Estimated accuracy" not in cards(text)
    assert "overconfident" not in text
    y[:40] = value.classes[(np.searchsorted(value.classes, y[:40]) + 1) % 3]
    assert "overconfident" in write(value, X, y)


def test_confusion_table(model, write):
    from sklearn.metrics import confusion_matrix

    value, X, y = model
    y = y.copy()
    y[::9] = value.classes[0]
    text = write(value, X, y)
    counts = confusion_matrix(y, value.predict(X), labels=value.classes)
    row = re.search(r"true class</th>.*?<tbody>(.*?)</tbody>", text).group(1)
    shown = [int(n) for n in re.findall(r'class="number">(\d+)<', row)]
    np.testing.assert_array_equal(np.reshape(shown, (3, 3)), counts)


def test_unknown_labels(model, write):
    value, X, y = model
    y = y.astype("U9")
    y[0] = "new class"
    words = Page(write(value, X, y)).words
    assert "not trained on new class" in words


def test_least_certain(model, write):
    value, X, _ = model
    text = write(value, X)
    least = value.predict_proba(X).max(axis=1).argsort(kind="stable")[:10] + 1
    table = text.split("Least certain samples")[1].split("<tbody>")[1].split("</tbody>")[0]
    shown = [int(n) for n in re.findall(r'<th scope="row" class="brief">(\d+)</th>', table)]
    np.testing.assert_array_equal(shown, least)
    X = value.target.mixture.means.copy()
    assert cards(write(value, X))["Outliers"] == "none"
    X[3] += 1e3
    assert "1 row is an outlier" in Page(write(value, X)).words


def test_row_numbers(model, write):
    value, X, _ = model
    X = X[~value.novelty(X)]
    X[3] += 1e3
    numbers = np.arange(len(X)) * 2 + 5
    text = write(value, X, row_numbers=numbers, n_dropped=7)
    least = numbers[value.predict_proba(X).max(axis=1).argsort(kind="stable")[:10]]
    table = text.split("Least certain samples")[1].split("<tbody>")[1].split("</tbody>")[0]
    shown = [int(n) for n in re.findall(r'<th scope="row" class="brief">(\d+)</th>', table)]
    np.testing.assert_array_equal(shown, least)
    assert "probability: 11." in Page(text).words
    assert "7 rows with missing values" in Page(text).words
    assert "missing values" not in Page(write(value, X)).words


def test_otda_plan_rows():
    """GMM-OTDA labels the target's own components, which may be as many as the source's."""
    task = mixda.datasets.make_shifted_toy(random_state=2).as_task()
    estimator = mixda.GMMOTDA(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    facts = collect_facts(estimator.to_model())
    assert facts.adapted.n_components == facts.sources[0].n_components
    mass = facts.plan.mass
    received = mass.T @ facts.plan_source.labels[facts.plan.rows] / mass.sum(axis=0)[:, None]
    np.testing.assert_allclose(received, facts.adapted.labels[facts.plan.columns], atol=1e-9)


def test_committee(model, write):
    value = model[0]
    lam = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    value = replace(value, dictionary=replace(value.dictionary, coordinates=lam))
    for experts, several in (([], False), (["a"], False), (["a", "b"], True)):
        settings = {**value.settings, "experts": experts}
        words = Page(write(replace(value, method="AutoMSDA", settings=settings))).words
        assert ("AutoMSDA combines 2 classifiers" in words) is several
        assert ("Fewer atoms may help" in words) is not several


def test_rare_classes(model):
    value, X, y = model
    X = X[y == value.classes[0]]
    rare = "Much rarer than in the sources: class"
    assert any(s.kind == "bad" and rare in s.text for s in signs(collect_facts(value, X)))
    adapted = value.labeled_target
    weights = np.where(adapted.labels[:, 0] > 0.5, 1.0, 1e-3)
    adapted = replace(adapted, weights=weights / weights.sum())
    facts = collect_facts(replace(value, labeled_target=adapted, plan=None))
    assert any(s.kind == "bad" and rare in s.text for s in signs(facts))


def test_source_proportions_before_balancing(model, write):
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
    assert "same weight" in old
    assert "Much rarer" in old
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
    assert "same weight" not in words
    assert "Much rarer" not in words
    table = text.split("<h3>Class proportions</h3>")[1].split("<tbody>")[1].split("</tbody>")[0]
    assert [re.findall(r"(\d+)\s%", row)[1:] for row in table.split("</tr>")[:3]] == [
        [f"{100 * share:.0f}"] * 2 for share in shares
    ]


@pytest.mark.parametrize("shares", [[0.5, 0.5], ["a", "b", "c"], [2.0, -0.5, -0.5], {"a": 1}, 3])
def test_invalid_class_shares_ignored(model, write, shares):
    value = model[0]
    source = value.sources[0]
    forged = replace(source, mixture=replace(source.mixture, info={"class_shares": shares}))
    assert write(replace(value, sources=(forged, value.sources[1]))) == write(value)


def test_empty_sections_omitted(model, write):
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


def test_nll_section(model, write):
    value = model[0]
    assert "<h3>Negative log-likelihood</h3>" not in write(value)
    past = value.dictionary.history
    past = replace(past, nll=np.abs(past.domain_loss) + 1)
    value = replace(value, dictionary=replace(value.dictionary, history=past))
    assert "<h3>Negative log-likelihood</h3>" in write(value)


def test_no_shared_atom(model):
    value = model[0]
    lam = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    value = replace(value, dictionary=replace(value.dictionary, coordinates=lam))
    sign = shared_atoms(collect_facts(value))
    assert sign.kind == "bad"
    assert "atoms" in sign.text


def test_frames_match_components(model):
    dictionary = model[0].dictionary
    for way, atom in zip(interpolation_frames(dictionary, 4), dictionary.atoms, strict=True):
        np.testing.assert_allclose(way[0].means, dictionary.target.means)
        assert mixda.mw2(way[-1], atom) < 1e-6
        for before, after in pairwise(way):
            plan = mixda.transport_plan(before, after).plan
            np.testing.assert_array_equal(plan.argmax(axis=1), np.arange(len(plan)))


def test_frame_data(model, write):
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


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (lambda X, y: {"y": y}, "y requires X"),
        (lambda X, y: {"X": X, "y": y[:3]}, "y .*80.*3"),
        (lambda X, y: {"X": X, "row_numbers": [1, 2]}, r"row_numbers .*80.*\(2,\)"),
        (lambda X, y: {"X": X[:0]}, "X has 0 rows"),
    ],
)
def test_errors(arguments, match, model, tmp_path):
    value, X, y = model
    with pytest.raises(MixdaError, match=match):
        write_report(value, tmp_path / "a.html", **arguments(X, y))
    assert not list(tmp_path.iterdir())


def test_missing_folder(model, tmp_path):
    with pytest.raises(ValueError, match=r"a\.html"):
        write_report(model[0], tmp_path / "no" / "a.html")


@pytest.mark.parametrize("method", ["GMMDaDiL", "GMMWBT", "SourceOnly"])
def test_estimator_report(method, tmp_path):
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
def test_contrast(theme):
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


def test_checks_before_the_fit(write):
    blocker = {"severity": "blocker", "code": "c", "sentence": "<b>two</b>", "remedy": "r"}
    note = {**blocker, "severity": "note"}
    settings = {"checks": [note, blocker, "forged"], "left_out": {"id": "it is an identifier"}}
    forced, X, _ = adapted_model(settings=settings)
    text = write(forced, X)
    assert not Page(text).mistakes
    assert "found 1 blocker" in text
    assert text.count("&lt;b&gt;two&lt;/b&gt;") == 2
    assert "it is an identifier" in text
    plain, X, _ = adapted_model(settings={"checks": 5, "left_out": [1]})
    assert "Checks" not in write(plain, X)


def sections(text):
    """The text of each section, and whether it is in the fold for experts."""
    fold = text.index('<details class="experts"')
    starts = [(m[1], m.start()) for m in re.finditer(r'<section id="(\w+)"', text)]
    places = sorted([fold, len(text), *(start for _, start in starts)])
    ends = [places[places.index(start) + 1] for _, start in starts]
    return {name: (text[a:b], a > fold) for (name, a), b in zip(starts, ends, strict=True)}


def test_experts_fold(model, write):
    shown = sections(write(*model))
    assert [name for name, (_, hidden) in shown.items() if hidden] == [
        *("distances", "components", "plan", "learning", "settings"),
    ]
    plain = " ".join(Page(text).words for text, hidden in shown.values() if not hidden)
    for word in ("MW2", "atom", "barycent", "Wasserstein", "coordinates"):
        assert word not in plain


def test_declined(model, write):
    """A mixture that does not decide says nothing about the result."""
    value = replace(model[0], trust={"declined": True}, settings={"experts": ["a", "b"]})
    text = write(value)
    assert "Distance left" not in text
    assert "adapted mixture fits" not in text
    assert "not of the committee" in text
    assert "Distance left" in write(model[0])


def test_next_steps(model):
    value, X, y = model
    for n_samples, words in ((500, "Label about 50"), (None, "Label about 50"), (6, "Label some")):
        sized = replace(value, target=replace(value.target, n_samples=n_samples))
        steps = next_steps(collect_facts(sized))
        assert any(words in step for step in steps)
    assert "mixda monitor" in steps[-1]
    known = value.with_reference(X)
    assert "mixda update" not in " ".join(next_steps(collect_facts(known, X, y)))
    assert "mixda update" in next_steps(collect_facts(known, X + 9.0, y))[0]


def test_drift(model, write):
    value, X, _ = model
    assert "monitor" not in sections(write(value, X))  # without a reference
    known = value.with_reference(X)
    assert "quiet" in sections(write(known, X))["monitor"][0]
    moved = X.copy()
    moved[:, 1] += 3 * X[:, 1].std()
    drift = Page(sections(write(known, moved))["monitor"][0]).words
    assert "ALARM" in drift
    assert drift.index("x1") < drift.index("x0")


def test_shifts(model, write):
    value = model[0]
    shown = Page(sections(write(value))["shifts"][0]).words
    for label in value.classes:
        largest = max(
            (s for s in value.shifts(None) if s.label == label), key=lambda s: abs(s.size)
        )
        assert f"{largest.size:+.1f} sd" in shown
    encoded = replace(value, encoder=Chain((Linear(np.eye(3), np.zeros(3)), ReLU())))
    assert "learned features" in sections(write(encoded))["shifts"][0]


def test_reasons_hold_no_values(model, write):
    value, X, _ = model
    text = sections(write(value, X))["reasons"][0]
    least = int(value.predict_proba(X).max(axis=1).argmin())
    assert f"Row {least + 1} (least certain)" in text
    why = value.explain(X[least])
    assert f"{why.contributions[0].log_odds:+.3g}" in text
    for x in X[least]:
        assert f"{x:.3g}" not in Page(text).words


def test_thirty_sources(write):
    value, X, _ = adapted_model(n_sources=30, dictionary=False)
    facts = collect_facts(value)
    assert len(facts.nearest_sources) == 6
    near = np.argsort(facts.to_target)[:6]
    np.testing.assert_array_equal(facts.nearest_sources, near)
    text = write(value, X)
    picture = text.split('aria-label="Map of the domains')[1].split("</svg>")[0]
    assert len(re.findall(r"<text[^>]*>site \d+</text>", picture)) == 6
    assert picture.count("<circle") >= 30
    assert "24 other sources" in text
