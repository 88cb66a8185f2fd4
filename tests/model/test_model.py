"""An adapted model predicts what its estimator predicts, and is the same after a file."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import mixda
from mixda import (
    GMMOTDA,
    GMMWBT,
    JCPOT,
    WBT,
    WJDOT,
    AdaptedModel,
    DaDiL,
    GMMDaDiL,
    Mixture,
    SourceOnly,
    TargetOnly,
)
from mixda._core.archive import pack
from mixda.datasets import make_toy
from mixda.estimators import MLPEncoder
from mixda.model import Domain, novelty_threshold
from mixda.model._model import _KINDS
from mixda.rules import Average, Chain, Linear, ReLU, Softmax

TASK = make_toy(45, separation=6.0, target_shift=(-3.0, 3.0), random_state=2).as_task()
rng = np.random.default_rng(0)
WIDE = np.hstack([TASK.X, rng.normal(size=(len(TASK.X), 2))])  # an encoder has something to drop
NAMES = np.array(["worn", "idle", "?"])[TASK.y]  # strings, sorted otherwise than the codes
TRUTH = np.array(["worn", "idle"])[TASK.y_target]
NEW = np.vstack([WIDE[:50], WIDE[-50:], 4.0 * rng.normal(size=(50, 4))])

ESTIMATORS = [
    SourceOnly(),
    SourceOnly(classifier=LinearSVC()),
    TargetOnly(),
    WBT(random_state=0),
    DaDiL("R", n_epochs=2, random_state=0),
    DaDiL("E", n_epochs=2, random_state=0),
    WJDOT(n_iter=5, batch_size=30, random_state=0),
    JCPOT(max_samples=40, random_state=0),
    GMMWBT(random_state=0),
    GMMWBT(classifier=LogisticRegression(), random_state=0),
    GMMDaDiL(n_iter=5, random_state=0),
    GMMDaDiL(n_iter=3, init="random", classifier=LinearSVC(), random_state=0),
    GMMOTDA(random_state=0),
    GMMOTDA("samples", random_state=0),
]
ENCODERS = {
    "none": None,
    "lda": "lda",
    "mlp": MLPEncoder((8, 5), max_iter=15, random_state=0),
    "pca": PCA(3, whiten=True),
}


def fitted(estimator, X=WIDE, **parameters):
    estimator = mixda.estimators.MultiSourceClassifier.__sklearn_clone__(estimator)
    estimator.set_params(**parameters)
    extra = {"target_labels": TRUTH} if type(estimator) is TargetOnly else {}
    return estimator.fit(X, NAMES, sample_domain=TASK.sample_domain, **extra)


@pytest.fixture(scope="module")
def model():
    estimator = GMMDaDiL(n_iter=5, preset="paper", random_state=0)
    return fitted(estimator, scale=None).to_model(["A", "B", "C", "hall 7"])


@pytest.mark.parametrize("scale", ["domain", "sources", None])
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_predicts_what_its_estimator_predicts(estimator, encoder, scale, tmp_path):
    estimator = fitted(estimator, encoder=ENCODERS[encoder], scale=scale)
    model = estimator.to_model()
    expected = estimator.predict_proba(NEW)
    np.testing.assert_allclose(model.predict_proba(NEW), expected, atol=1e-12)
    assert model.classes.tolist() == ["idle", "worn"]
    assert model.method == type(estimator).__name__
    estimator.save(tmp_path / "m.mixda", allow_exposed_rows=True)
    again = AdaptedModel.load(tmp_path / "m.mixda")
    assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    assert (again.predict(NEW) == model.classes[expected.argmax(axis=1)]).all()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_file_gives_the_same_model_to_the_bit(estimator, tmp_path):
    model = fitted(estimator).to_model()
    model.save(tmp_path / "m.mixda", allow_exposed_rows=True)
    again = mixda.load(tmp_path / "m.mixda")
    assert_same(again, model)
    again.save(tmp_path / "n.mixda", allow_exposed_rows=True)
    assert (tmp_path / "n.mixda").read_bytes() == (tmp_path / "m.mixda").read_bytes()


def assert_same(one, other):
    (tree, arrays), (other_tree, other_arrays) = pack(one, _KINDS), pack(other, _KINDS)
    assert tree == other_tree
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        assert array.dtype == other_arrays[name].dtype
        assert array.tobytes() == other_arrays[name].tobytes(), name


def unbalanced(*sizes):
    """Sources with 36 rows of the first class and `sizes` of the second, and the target."""
    rows, shares = [], []
    for k, rare in enumerate(sizes, 1):
        of = TASK.sample_domain == k
        rows += [*np.flatnonzero(of & (NAMES == "idle"))[:36]]
        rows += [*np.flatnonzero(of & (NAMES == "worn"))[:rare]]
        shares.append([36 / (36 + rare), rare / (36 + rare)])
    rows += [*np.flatnonzero(TASK.sample_domain < 0)]
    return WIDE[rows], NAMES[rows], TASK.sample_domain[rows], np.array(shares)


def noted(model, path):
    model.save(path, allow_exposed_rows=True)
    sources = AdaptedModel.load(path).sources
    return np.array([domain.mixture.info["class_shares"] for domain in sources])


@pytest.mark.parametrize("estimator", [GMMWBT(), GMMDaDiL(n_iter=2), mixda.GMMOTDA()], ids=repr)
@pytest.mark.parametrize("scale", ["domain", None])
def test_balanced_sources_note_the_shares_of_their_samples(estimator, scale, tmp_path):
    X, y, domain, shares = unbalanced(4, 8, 12)
    estimator = clone(estimator).set_params(preset="paper", random_state=0, scale=scale)
    one = isinstance(estimator, mixda.GMMOTDA)
    if one:  # the pool of all sources: 36 + 36 + 36 and 4 + 8 + 12 rows
        shares = np.array([[108 / 132, 24 / 132]])
    model = estimator.fit(X, y, sample_domain=domain).to_model()
    np.testing.assert_allclose(noted(model, tmp_path / "m.mixda"), shares)
    masses = [source.mixture.class_proportions for source in model.sources]
    np.testing.assert_allclose(masses, 0.5)
    parts = [
        mixda.fit_labeled_mixture(X[domain == k], y[domain == k], random_state=0) for k in (1, 2, 3)
    ]
    goal = mixda.fit_mixture(X[domain < 0], 6, random_state=0)
    estimator.fit_mixtures(parts, goal)
    np.testing.assert_allclose(noted(estimator.to_model(), tmp_path / "m.mixda"), shares)
    if not one:  # mixtures that were balanced before, with their classes in another order
        again = [
            replace(p, labels=p.labels[:, ::-1], classes=p.classes[::-1], info={**p.info, **turned})
            for p in estimator.source_mixtures_
            for turned in [{"class_shares": p.info["class_shares"][::-1]}]
        ]
        estimator.fit_mixtures(again, goal)
        np.testing.assert_allclose(noted(estimator.to_model(), tmp_path / "m.mixda"), shares)


def test_the_shares_reach_the_model_of_a_committee(tmp_path):
    X, y, domain, shares = unbalanced(24, 28, 32)
    candidates = {"wbt": GMMWBT(random_state=0)}
    auto = mixda.AutoMSDA(candidates, random_state=0)
    auto.fit(X, y, sample_domain=domain)
    np.testing.assert_allclose(noted(auto.to_model(), tmp_path / "m.mixda"), shares)


def test_the_parts_of_a_model(model):
    assert [domain.name for domain in model.sources] == ["A", "B", "C"]
    assert model.target.name == "hall 7"
    assert model.target.n_samples == (TASK.sample_domain < 0).sum()
    assert all(domain.mixture.is_labeled for domain in model.sources)
    assert not model.target.mixture.is_labeled
    assert model.labeled_target.is_labeled
    assert model.encoder is None
    assert model.dictionary.coordinates.shape == (4, 3)
    np.testing.assert_allclose(model.plan.sum(axis=0), model.target.mixture.weights)
    np.testing.assert_allclose(model.plan.sum(axis=1), model.labeled_target.weights)
    assert model.settings["parameters"]["n_iter"] == 5
    assert model.settings["versions"]["mixda"] == mixda.__version__
    assert model.trust is None


@pytest.mark.parametrize(
    "estimator",  # a component of its own would make a sample a mean: one per class
    [SourceOnly(), WBT(random_state=0), GMMWBT(1, preset="paper"), GMMDaDiL(1, preset="paper")],
)
def test_a_model_holds_no_sample(estimator):
    _, arrays = pack(fitted(estimator).to_model(), _KINDS)
    rows = {row.tobytes() for row in WIDE}
    held = [array for array in arrays.values() if array.ndim == 2 and array.shape[1] == 4]
    assert held
    assert not rows & {row.tobytes() for array in held for row in array}


def test_methods_without_mixtures_remember_one_gaussian_per_class():
    estimator = fitted(SourceOnly(scale=None))
    sample = WIDE[(TASK.sample_domain == 1) & (NAMES == "worn")]
    mixture = estimator.to_model().sources[0].mixture
    component = int(mixture.labels[:, 1].argmax())
    np.testing.assert_allclose(mixture.means[component], sample.mean(axis=0))
    np.testing.assert_allclose(mixture.stds[component], sample.std(axis=0))
    target = WIDE[TASK.sample_domain < 0]
    predicted = estimator.predict(target)
    share = [(predicted == name).mean() for name in ("idle", "worn")]
    np.testing.assert_allclose(estimator.to_model().target.mixture.weights, share)


def test_sources_that_a_method_takes_as_one_are_one_in_its_model():
    model = fitted(GMMOTDA(random_state=0)).to_model(["A", "B", "C", "T"])
    assert [(d.name, d.n_samples) for d in model.sources] == [
        ("A + B + C", (TASK.sample_domain >= 0).sum())
    ]


def test_novelty_is_about_distance_from_all_domains():
    estimator = GMMWBT(preset="paper", random_state=0)  # one scale for all domains
    model = fitted(estimator, encoder="lda").to_model()
    assert model.novelty(WIDE).mean() < 0.02
    assert model.novelty(WIDE + 100.0).all()
    p = Mixture([1.0], [[0.0]], [[1.0]])
    q = Mixture([1.0], [[50.0]], [[1.0]])
    from scipy.stats import norm

    # one in a thousand of a normal law lies beyond 3.29; ten draws below: wide tolerance
    np.testing.assert_allclose(novelty_threshold([p, q]), norm.logpdf(3.2905), atol=0.6)


def test_frames_are_matched_by_name():
    pd = pytest.importorskip("pandas")
    names = ["b", "a", "d", "c"]
    frame = pd.DataFrame(WIDE, columns=names)
    model = fitted(GMMWBT(random_state=0), X=frame).to_model()
    assert model.feature_names == tuple(names)
    shuffled = frame[["c", "a", "b", "d"]].assign(note="text", zero=0)
    assert np.array_equal(model.predict_proba(shuffled), model.predict_proba(WIDE))
    with pytest.raises(ValueError, match=r"no column 'd' \(1 of 4 features are missing\)"):
        model.predict(frame.drop(columns="d"))
    with pytest.raises(ValueError, match="3 features, but 4 are expected"):
        model.predict(WIDE[:, :3])


def test_a_model_of_unnamed_columns_takes_frames_by_position(model):
    pd = pytest.importorskip("pandas")
    expected = model.predict_proba(WIDE)
    assert np.array_equal(model.predict_proba(pd.DataFrame(WIDE)), expected)
    assert np.array_equal(model.predict_proba(pd.DataFrame(WIDE, columns=list("wxyz"))), expected)
    swapped = pd.DataFrame(WIDE[:, ::-1], columns=["x3", "x2", "x1", "x0"])
    assert np.array_equal(model.predict_proba(swapped), expected)


def test_many_rows_are_predicted_in_parts(model):
    rows = np.tile(WIDE, (100, 1))
    proba = model.predict_proba(rows)
    np.testing.assert_allclose(proba[-len(WIDE) :], model.predict_proba(WIDE), atol=1e-12)


def test_without_a_target_there_is_no_model():
    for estimator in (SourceOnly(), GMMWBT()):
        with pytest.raises(ValueError, match="fitted without a target"):
            estimator.fit(WIDE, NAMES).to_model()


def test_a_head_that_holds_samples_is_refused():
    estimator = fitted(SourceOnly(KNeighborsClassifier()))
    with pytest.raises(ValueError, match="KNeighborsClassifier cannot be kept in a model"):
        estimator.to_model()


def test_wrong_names_of_domains():
    with pytest.raises(ValueError, match="domain_names must be 4 names"):
        fitted(SourceOnly()).to_model(["A", "B"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"classes": np.arange(3)}, "3 classes"),
        ({"feature_names": ("a", "a")}, "different names"),
        ({"settings": {"f": print}}, "settings must be a dictionary of JSON values"),
        ({"target": Domain("t", Mixture([1.0], [[0.0]], [[1.0]]))}, "encoder returns 4"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(model, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace(model, **change)


def test_a_dictionary_with_wrong_alignments_is_refused(model):
    wrong = replace(model.dictionary, alignments=model.dictionary.alignments + 10_000)
    with pytest.raises(ValueError, match="dictionary do not fit"):
        replace(model, dictionary=wrong)


def test_parameters_that_are_objects_are_kept_in_words():
    estimator = GMMDaDiL(n_iter=2, callback=lambda d: None, encoder=PCA(2), random_state=0)
    parameters = fitted(estimator).to_model().settings["parameters"]
    assert parameters["callback"] == "function"
    assert parameters["encoder"] == "PCA(n_components=2)"


def test_a_model_goes_on_after_partial_fit():
    estimator = fitted(GMMDaDiL(n_iter=3, random_state=0))
    estimator.partial_fit(WIDE[TASK.sample_domain < 0] + 1.0)
    model = estimator.to_model()
    assert model.target.n_samples == 2 * (TASK.sample_domain < 0).sum()
    np.testing.assert_allclose(model.predict_proba(NEW), estimator.predict_proba(NEW), atol=1e-12)


@pytest.mark.parametrize("name", ["M3SDA", "KD3A", "CoMDA"])
def test_networks_of_plain_layers_become_rules(name):
    pytest.importorskip("torch")
    estimator = getattr(mixda, name)(epochs=2, pretrain_epochs=2, random_state=0)
    estimator = fitted(estimator)
    model = estimator.to_model()
    np.testing.assert_allclose(model.predict_proba(NEW), estimator.predict_proba(NEW), atol=1e-12)


def test_networks_of_other_layers_are_refused_in_a_sentence():
    torch = pytest.importorskip("torch")
    graph = fitted(mixda.LtCMSDA(epochs=1, pretrain_epochs=1, random_state=0))
    with pytest.raises(ValueError, match="PrototypeGraph cannot be stored"):
        graph.to_model()
    odd = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())
    network = fitted(mixda.M3SDA(epochs=0, pretrain_epochs=1, backbone=odd, random_state=0))
    with pytest.raises(ValueError, match="layer Tanh cannot be stored"):
        network.to_model()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"rule": Linear(np.zeros((2, 2)), np.array([0.9, 0.9]))}, "rule"),
        ({"rule": Linear(np.eye(2), np.array([0.5, 0.5]))}, "rule"),
        ({"classes": np.array(["ok", "ok"])}, "classes"),
        ({"feature_names": 1}, "feature_names"),
    ],
)
def test_forged_models(change, name):
    p = Mixture([1.0], [[0.0, 0.0]], [[1.0, 1.0]])
    parts = {
        "feature_names": ("a", "b"),
        "classes": np.array(["ok", "worn"]),
        "method": "Forged",
        "rule": Chain((Linear(np.eye(2), np.zeros(2)), Softmax())),
        "encoder": None,
        "sources": (),
        "target": Domain("t", p),
    }
    AdaptedModel(**parts)
    with pytest.raises(mixda.MixdaError, match=name):
        AdaptedModel(**{**parts, **change})


def test_forged_rule_far_away():
    """A rule whose rows sum to one only near zero is caught when it predicts."""
    p = Mixture([1.0], [[0.0]], [[1.0]])
    bump = Chain((Linear(np.array([[1.0, 1.0]]), np.array([-100.0, -100.0])), ReLU()))
    rule = Average(
        np.array([1.0, 1.0]), (Chain((Linear(np.eye(1, 2), np.zeros(2)), Softmax())), bump)
    )
    model = AdaptedModel(("a",), np.array([0, 1]), "Forged", rule, None, (), Domain("t", p))
    model.predict([[0.0]])
    with pytest.raises(mixda.MixdaError, match="rule"):
        model.predict([[1000.0]])
