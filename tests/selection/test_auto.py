"""AutoMSDA as a whole: what it decides, what it says about it, and what it must not do."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from mixda import GMMWBT, AdaptedModel, AutoMSDA, GMMDaDiL, MixdaError, SourceOnly, load
from mixda.datasets import load_digit_scanners, make_shifted_toy

from .domains import make_domain, stacked


def quick(**parameters):
    """An AutoMSDA whose transport experts are one cheap candidate."""
    candidates = {"dadil": GMMDaDiL(1, n_iter=3)}
    return AutoMSDA(**{"candidates": candidates, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def moved():
    """Three sources that differ a little, and a target moved by half the distance of classes."""
    sources = [make_domain(k, shift) for k, shift in enumerate((0.0, 0.6, -0.6))]
    return stacked(*sources, target=make_domain(9, 2.0))


@pytest.fixture(scope="module")
def auto(moved):
    X, y, ids, _ = moved
    return AutoMSDA(random_state=0).fit(X, y, sample_domain=ids)


def test_better_than_the_sources_alone(moved, auto):
    X, y, ids, truth = moved
    alone = SourceOnly().fit(X, y, sample_domain=ids).score(X[ids < 0], truth)
    assert alone < 0.9
    assert auto.score(X[ids < 0], truth) > alone + 0.1
    assert not auto.trust_.declined
    assert auto.trust_.low <= auto.score(X[ids < 0], truth) <= auto.trust_.high


def test_weights_and_scores(auto):
    assert sum(auto.weights_.values()) == pytest.approx(1.0, abs=0.05)  # tiny ones are left out
    assert len(auto.weights_) > 10
    assert auto.scores_["committee"] == pytest.approx(np.mean(list(auto.trust_.folds.values())))
    assert list(auto.trust_.folds) != []
    assert set(auto.trust_.folds) == {"1", "2", "3"}
    (reference,) = [c for c in auto.trust_.candidates if c.get("reference")]
    assert reference["name"] in auto.trust_.reason
    ordinary = [c for c in auto.trust_.candidates[1:] if "GMM" not in c["name"]]
    assert reference["score"] >= max(c["score"] for c in ordinary if "adapted" not in c["name"])


def test_order_of_rows_sources_and_classes_changes_nothing(moved, auto):
    X, y, ids, _ = moved
    turned = np.random.default_rng(0).permutation(len(X))
    other = np.where(ids < 0, -1, 9 - ids)
    again = AutoMSDA(random_state=0).fit(X[turned], 2 - y[turned], sample_domain=other[turned])
    np.testing.assert_allclose(
        again.predict_proba(X)[:, ::-1], auto.predict_proba(X), rtol=0, atol=1e-9
    )
    assert again.trust_.accuracy == pytest.approx(auto.trust_.accuracy, abs=1e-9)


@pytest.mark.parametrize("kind", ["shuffled", "nan", "new class"])
def test_target_labels_are_never_read(moved, kind):
    X, y, ids, truth = moved
    poisoned = y.astype(float)
    poisoned[ids < 0] = {"shuffled": truth[::-1], "nan": np.nan, "new class": 99}[kind]
    one = quick(max_folds=2).fit(X, y.astype(float), sample_domain=ids)
    other = quick(max_folds=2).fit(X, poisoned, sample_domain=ids)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.trust_ == other.trust_


def test_target_labels_are_used_if_asked(moved):
    X, y, ids, truth = moved
    labels = y.astype(object)
    rows = np.flatnonzero(ids < 0)
    labels[rows] = None
    labels[rows[:30]] = truth[:30]
    model = quick(target_labels="use").fit(X, labels, sample_domain=ids)
    without = quick().fit(X, y, sample_domain=ids)
    assert model.trust_.accuracy != without.trust_.accuracy
    assert model.trust_.high - model.trust_.low <= without.trust_.high - without.trust_.low + 0.05
    labels[rows[0]] = "unheard of"
    with pytest.raises(MixdaError, match="unheard of"):
        quick(target_labels="use").fit(X, labels.astype(str), sample_domain=ids)


def test_labels_teach_the_members():
    """Classes change places in the target: nothing but its labels can tell."""
    sources = [make_domain(k, 0.2 * k) for k in range(2)]
    X, y = make_domain(9)
    X, y, ids, truth = stacked(*sources, target=(X, (y + 1) % 3))
    labels = y.astype(float)
    rows = np.flatnonzero(ids < 0)
    labels[rows] = np.nan
    labels[rows[::3]] = truth[::3]
    model = quick(target_labels="use").fit(X, labels, sample_domain=ids)
    blind = quick().fit(X, y, sample_domain=ids)
    rest = rows[1::3]
    assert blind.score(X[rest], truth[1::3]) < 0.1
    assert model.score(X[rest], truth[1::3]) > 0.5  # chance is a third
    assert model.trust_.accuracy < blind.trust_.accuracy  # half of the evidence was wrong


def test_labels_give_an_estimate_for_a_single_source():
    X, y, ids, truth = stacked(make_domain(0), target=make_domain(5, 0.3))
    labels = y.astype(float)
    rows = np.flatnonzero(ids < 0)
    labels[rows] = np.nan
    labels[rows[::4]] = truth[::4]
    trust = quick(target_labels="use").fit(X, labels, sample_domain=ids).trust_
    assert trust.accuracy is not None
    assert trust.n_labels == len(rows[::4])
    assert quick().fit(X, y, sample_domain=ids).trust_.accuracy is None


def test_given_shares_shift_the_answers(moved):
    X, y, ids, _ = moved
    model = quick(target_shares={1: 0.8}).fit(X, y, sample_domain=ids)
    shares = model.predict_proba(X[ids < 0]).mean(axis=0)
    assert shares[1] == pytest.approx(0.8, abs=0.02)


def test_mostly_one_class_without_shift_is_not_taken_for_a_shift():
    """The everyday case of a plant: nearly all rows are healthy, and nothing else has changed."""
    sources = [make_domain(k, 0.1 * k, n=40, spread=1.4) for k in range(3)]
    X, y = make_domain(7, 0.1, n=60, spread=1.4)
    rows = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y != 0)[:6]])
    target = (X[rows], y[rows])
    X, y, ids, truth = stacked(*sources, target=target)
    model = AutoMSDA(random_state=0).fit(X, y, sample_domain=ids)
    alone = SourceOnly().fit(X, y, sample_domain=ids).score(X[ids < 0], truth)
    assert model.choice_ == "matched committee"
    assert "proportions" in model.trust_.reason
    assert model.score(X[ids < 0], truth) > alone - 0.02


@pytest.fixture(scope="module")
def moved_and_skewed():
    """A target with another offset, nine tenths of it of one class."""
    sources = [make_domain(k, 0.3 * k, spread=1.2) for k in range(3)]
    X, y = make_domain(7, 2.5, n=60, spread=1.2)
    rows = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y != 0)[:7]])
    return stacked(*sources, target=(X[rows], y[rows]))


@pytest.mark.parametrize("sources", [3, 1])
def test_given_shares_match_own_scales(moved_and_skewed, sources):
    """Other shares look like a shift on own scales; a shift looks like other shares elsewhere."""
    X, y, ids, truth = moved_and_skewed
    kept = ids <= sources
    X, y, ids = X[kept], y[kept], ids[kept]
    unaware = quick().fit(X, y, sample_domain=ids).score(X[ids < 0], truth)
    model = quick(target_shares={0: 0.9}).fit(X, y, sample_domain=ids)
    assert model.choice_ == "matched committee"
    assert model.trust_.declined
    assert "given" in model.trust_.reason
    assert (model.trust_.accuracy is None) == (sources == 1)
    assert model.score(X[ids < 0], truth) > max(0.85, unaware + 0.05)
    again = model.to_model().predict_proba(X[ids < 0])  # the matched scales are in the model
    np.testing.assert_allclose(again, model.predict_proba(X[ids < 0]), atol=1e-12)


def test_given_shares_and_labels(moved_and_skewed):
    X, y, ids, truth = moved_and_skewed
    some = y.astype(float)
    some[ids < 0] = np.where(np.arange(len(truth)) % 5 == 0, truth, np.nan)
    options = {"target_shares": {0: 0.9}, "target_labels": "use"}
    model = quick(**options).fit(X, some, sample_domain=ids)
    assert model.trust_.n_labels == -(-len(truth) // 5)
    assert abs(model.trust_.accuracy - model.score(X[ids < 0], truth)) < 0.15


def test_shuffled_labels_are_called_chance(moved):
    X, y, ids, _ = moved
    rng = np.random.default_rng(0)
    shuffled = np.where(ids >= 0, rng.permutation(np.maximum(y, 0)), -1)
    trust = quick().fit(X, shuffled, sample_domain=ids).trust_
    assert trust.accuracy is None
    assert "chance" in trust.reason


def test_few_target_rows_have_no_estimate(moved):
    X, y, ids, _ = moved
    for n in (1, 3):
        kept = np.concatenate([np.flatnonzero(ids >= 0), np.flatnonzero(ids < 0)[:n]])
        model = quick(max_folds=2).fit(X[kept], y[kept], sample_domain=ids[kept])
        assert model.trust_.accuracy is None
        assert f"{n} row" in model.trust_.reason
        assert np.isfinite(model.predict_proba(X)).all()


def test_few_target_rows_do_no_harm():
    """Five of ten classes are no reason to believe in other proportions or in own scales."""
    data = load_digit_scanners(random_state=0)
    rng = np.random.default_rng(5)
    rows = [rng.choice(np.flatnonzero(data.domain == k), 120, replace=False) for k in range(3)]
    rows.append(np.flatnonzero(data.domain == 3))
    few = rng.choice(rows[3], 5, replace=False)
    taught = np.concatenate([*rows[:3], few])
    ids = np.where(data.domain[taught] == 3, -1, data.domain[taught])
    X, y = data.X[taught], data.y[taught]
    alone = SourceOnly().fit(X, y, sample_domain=ids).score(data.X[rows[3]], data.y[rows[3]])
    model = AutoMSDA(random_state=0).fit(X, y, sample_domain=ids)
    assert model.score(data.X[rows[3]], data.y[rows[3]]) > alone
    assert "reduced to the size of the target (5 rows)" in model.trust_.reason


def test_confounded_sources_have_no_estimate():
    X, y, ids, _ = stacked(
        *(make_domain(k, classes=(k,), n=40) for k in range(3)), target=make_domain(5)
    )
    trust = quick().fit(X, y, sample_domain=ids).trust_
    assert trust.accuracy is None
    assert "confounded" in trust.reason


def test_one_source_promises_nothing():
    X, y, ids, truth = stacked(make_domain(0, n=40), target=make_domain(1, 0.8, n=40))
    model = quick().fit(X, y, sample_domain=ids)
    assert model.trust_.accuracy is model.trust_.low is model.trust_.high is None
    assert model.trust_.folds == {}
    assert model.scores_ == {}
    assert model.score(X[ids < 0], truth) > 0.9


def test_class_missing_from_sources():
    X, y, ids, truth = stacked(
        make_domain(0),
        make_domain(1, classes=(0, 1)),
        make_domain(2, classes=(0, 1)),
        target=make_domain(3, 0.3),
    )
    model = quick().fit(X, y, sample_domain=ids)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X[ids < 0], truth) > 0.9


@pytest.mark.parametrize("kind", ["flat within classes", "one sample per class"])
def test_members_that_fail_are_left_out(kind):
    rng = np.random.default_rng(0)
    if kind == "flat within classes":
        y = rng.integers(0, 3, 160)
        X, ids = 5.0 * np.eye(3)[y], np.repeat([1, 2, -1], [60, 60, 40])
    else:
        y = np.arange(90) % 30
        X, ids = rng.normal(size=(90, 4)) + 9.0 * y[:, None], np.repeat([1, 2, -1], 30)
    model = AutoMSDA(random_state=0).fit(X, np.where(ids < 0, -1, y), sample_domain=ids)
    assert model.score(X[ids < 0], y[ids < 0]) > 0.8


def test_rows_of_sources_have_their_own_scale():
    """Domains with classes side by side, moved by several times their distance."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 320)
    ids = np.repeat([3, 5, 9, -1], 80)
    shift = np.array([[0, 0], [12, 3], [-12, 5], [25, -4]]).repeat(80, axis=0)
    X = rng.normal(size=(320, 2)) + np.c_[4.0 * y, 0.0 * y] + shift
    model = AutoMSDA(random_state=0).fit(X, np.where(ids < 0, -1, y), sample_domain=ids)
    source = ids >= 0
    assert model.score(X[source], y[source], sample_domain=ids[source]) > 0.95
    assert model.score(X[source], y[source]) < 0.8  # taken for rows of the target
    together = model.predict_proba(X, sample_domain=ids)[~source]
    assert np.allclose(together, model.predict_proba(X[~source]), atol=1e-12)


def test_threads_do_not_change_the_result(moved):
    X, y, ids, _ = moved
    one, two = (quick(n_jobs=n, max_folds=2).fit(X, y, sample_domain=ids) for n in (1, 2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_budget_stops_after_the_first_source(moved):
    X, y, ids, _ = moved
    with pytest.warns(UserWarning, match="budget"):
        model = quick(budget=1e-9).fit(X, y, sample_domain=ids)
    assert len(model.trust_.folds) == 1


def test_interrupted_trials_resume(moved, tmp_path, monkeypatch):
    X, y, ids, _ = moved
    whole = quick().fit(X, y, sample_domain=ids)
    calls = []

    def interrupted(*args):
        calls.append(args)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return original(*args)

    from mixda.selection import _trials

    original = _trials.fit_members
    with monkeypatch.context() as patch:
        patch.setattr(_trials, "fit_members", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quick(checkpoint=tmp_path / "kept").fit(X, y, sample_domain=ids)
    assert len(list((tmp_path / "kept").glob("*.trial"))) == 2
    again = quick(checkpoint=tmp_path / "kept").fit(X, y, sample_domain=ids)
    assert np.array_equal(again.predict_proba(X), whole.predict_proba(X))


def test_own_classifiers_join(moved, tmp_path):
    X, y, ids, _ = moved
    own = {"forest": RandomForestClassifier(20), "neighbors": KNeighborsClassifier()}
    model = quick(classifiers=own, max_folds=2).fit(X, y, sample_domain=ids)
    assert any(name.startswith("neighbors, ") for name in model.scores_)
    with pytest.raises(MixdaError, match="KNeighborsClassifier"):
        model.save(tmp_path / "m.mixda")
    del own["neighbors"]
    model = quick(classifiers=own, max_folds=2).fit(X, y, sample_domain=ids)
    model.save(tmp_path / "m.mixda")
    np.testing.assert_allclose(
        load(tmp_path / "m.mixda").predict_proba(X), model.predict_proba(X), atol=1e-12
    )


def test_without_a_target_it_is_a_logistic_regression(moved):
    X, y, ids, _ = moved
    X, y = X[ids >= 0], y[ids >= 0]
    model = AutoMSDA(random_state=0).fit(X, y)
    assert np.mean(model.predict(X) == SourceOnly().fit(X, y).predict(X)) > 0.98
    assert not hasattr(model, "trust_")
    with pytest.raises(MixdaError, match="without a target"):
        model.to_model()


def test_model_and_its_file_predict_the_same(moved, auto, tmp_path):
    X, _, ids, _ = moved
    auto.save(tmp_path / "m.mixda", ["a", "b", "c", "hall"])
    assert (tmp_path / "m.mixda").stat().st_size < 5_000_000
    model = load(tmp_path / "m.mixda")
    assert isinstance(model, AdaptedModel)
    np.testing.assert_allclose(model.predict_proba(X), auto.predict_proba(X), atol=1e-12)
    assert model.method == "AutoMSDA"
    assert model.trust == auto.trust_
    assert [domain.name for domain in model.sources] == ["a", "b", "c"]
    assert model.novelty(X[ids < 0]).mean() < 0.05
    assert model.novelty(X[:1] + 1e3).all()


def test_file_holds_no_sample(moved, auto):
    """No array of the model has a row of the data, as given, scaled or ranked."""
    from mixda._core.archive import pack
    from mixda.model._model import _KINDS

    X, _, ids, _ = moved
    model = auto.to_model()
    parts = [model.rule, model.encoder, model.sources, model.target, model.labeled_target]
    arrays = pack(tuple(part for part in parts if part is not None), _KINDS)[1]
    domain = X[ids == 1]
    forms = [X, (domain - domain.mean(axis=0)) / domain.std(axis=0)]
    rows = {tuple(np.round(row, 6)) for form in forms for row in form}
    for name, array in arrays.items():
        if array.ndim == 2 and array.shape[1] == X.shape[1] and array.dtype.kind == "f":
            assert not rows & {tuple(np.round(row, 6)) for row in array.astype(float)}, name


def test_names_of_classes_and_columns(moved):
    pd = pytest.importorskip("pandas")
    X, y, ids, truth = moved
    names = np.array(["worn", "ok", "broken"])
    frame = pd.DataFrame(X, columns=["speed", "load", "heat"])
    model = quick(max_folds=2).fit(frame, pd.Series(names[y]), sample_domain=pd.Series(ids))
    assert model.classes_.tolist() == ["broken", "ok", "worn"]
    assert model.score(frame[ids < 0], names[truth]) > 0.9
    saved = model.to_model()
    assert saved.feature_names == ("speed", "load", "heat")
    turned = frame[["heat", "speed", "load"]][ids < 0]
    assert np.array_equal(saved.predict(turned), model.predict(frame[ids < 0]))


def test_report_begins_with_the_verdict(moved, auto, tmp_path):
    X, _, ids, _ = moved
    page = auto.report(tmp_path / "r.html", X=X[ids < 0]).read_text(encoding="utf-8")
    assert "Estimated accuracy" in page
    assert auto.trust_.reason in page


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"candidates": {}}, "candidates"),
        ({"candidates": {"wbt": GMMWBT}}, "candidates"),
        ({"candidates": {"logistic": LogisticRegression()}}, "candidates"),
        ({"classifiers": {"mine": object()}}, "classifiers.*mine"),
        ({"classifiers": {"extra trees": RandomForestClassifier()}}, "extra trees"),
        ({"target_labels": "yes"}, "target_labels.*yes"),
        ({"max_folds": 0}, "max_folds.*0"),
        ({"max_rows": 0}, "max_rows.*0"),
        ({"budget": 0}, "budget.*0"),
        ({"level": 1.5}, "level.*1.5"),
    ],
)
def test_bad_parameters_get_a_sentence(moved, parameters, message):
    X, y, ids, _ = moved
    with pytest.raises(MixdaError, match=message):
        quick(**parameters).fit(X, y, sample_domain=ids)


def test_adapts_to_the_shifted_toy():
    """A seed on which the sources alone are right on four of five."""
    task = make_shifted_toy(random_state=2).as_task()
    rows = slice(None, None, 9)
    given = (task.X[rows], task.y[rows], task.sample_domain[rows])
    alone = SourceOnly().fit(*given).score(task.X_target, task.y_target)
    model = AutoMSDA(random_state=0).fit(*given)
    assert alone < 0.85
    assert model.score(task.X_target, task.y_target) > 0.97


def test_benchmark_judges_members_and_ablations():
    path = Path(__file__).parents[2] / "benchmarks" / "selection.py"
    spec = importlib.util.spec_from_file_location("selection_benchmark", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert not set(script.DEVELOPMENT) & set(script.CONFIRMATION)
    task = make_shifted_toy(random_state=2).as_task()
    rows = np.arange(0, len(task.X), 10)
    X, ids = task.X[rows], task.sample_domain[rows]
    y = np.where(ids < 0, 0, task.y[rows])
    model = script.Judged(random_state=0, max_folds=2).fit(X, y, sample_domain=ids)
    found = script.ablations(model, X[ids < 0], y[ids < 0])
    assert set(found["ablations"]) >= {"pick", "equal weights", "ordinary only", "pool"}
