import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import mixda
import mixda.views
from mixda import Mixture, transport_plan

matplotlib = pytest.importorskip("matplotlib", reason="figures need the extra mixda[report]")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.patches import Ellipse  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def labeled():
    return Mixture(
        [0.5, 0.25, 0.25],
        [[0, 0, 9], [4, 1, 9], [2, 2, 9]],
        [[1, 2, 5], [2, 1, 5], [1, 1, 5]],
        [[1, 0], [0, 1], [0.5, 0.5]],
    )


@pytest.fixture
def unlabeled():
    return Mixture([0.5, 0.5], [[1, 1, 9], [5, 1, 9]], [[1, 1, 5], [1, 1, 5]])


@pytest.fixture
def learned():
    rng = np.random.default_rng(0)
    history = SimpleNamespace(
        loss=np.array([9.0, 4.0, 2.0]),
        domain_loss=rng.random((3, 3)),
        nll=rng.random((3, 3)),
        coordinates=rng.dirichlet([1, 1], (3, 3)),
    )
    return SimpleNamespace(history=history, coordinates=history.coordinates[-1])


def test_ellipses_have_the_components_places_and_sizes(labeled):
    ax = mixda.plot.mixture(labeled, dims=(0, 2), n_stds=3.0)
    ellipses = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    np.testing.assert_allclose([e.center for e in ellipses], labeled.means[:, [0, 2]])
    np.testing.assert_allclose([[e.width, e.height] for e in ellipses], 6 * labeled.stds[:, [0, 2]])


def test_colors_follow_labels_mix_when_soft_and_are_grey_without(labeled, unlabeled):
    first, second = (np.array(to_rgb(color)) for color in mixda.plot.colors(2))
    faces = [e.get_facecolor()[:3] for e in mixda.plot.mixture(labeled).patches]
    np.testing.assert_allclose(faces, [first, second, (first + second) / 2])
    for patch in mixda.plot.mixture(unlabeled).patches:
        assert patch.get_facecolor()[:3] == to_rgb(mixda.plot.UNLABELED)
    for patch in mixda.plot.mixture(labeled, color="#123456").patches:
        assert patch.get_facecolor()[:3] == to_rgb("#123456")


def test_dots_weigh_what_components_weigh(labeled):
    sizes = mixda.plot.mixture(labeled).collections[0].get_sizes()
    np.testing.assert_allclose(sizes / sizes.sum(), labeled.weights)


def test_the_whole_mixture_is_in_view(labeled):
    ax = mixda.plot.mixture(labeled)
    assert ax.get_xlim()[0] <= -2
    assert ax.get_xlim()[1] >= 8
    assert ax.get_ylim()[0] <= -4


def test_samples_are_grouped_by_class_in_the_order_of_the_colors():
    X, y = np.arange(8.0).reshape(4, 2), np.array(["b", "c", "b", "c"])
    ax = mixda.plot.samples(X, y, classes=["a", "b", "c"])
    offsets = [collection.get_offsets() for collection in ax.collections]
    assert [len(o) for o in offsets] == [0, 2, 2]
    np.testing.assert_array_equal(offsets[1], X[[0, 2]])
    np.testing.assert_allclose(
        ax.collections[2].get_facecolor()[0][:3], to_rgb(mixda.plot.colors(3)[2])
    )
    assert len(mixda.plot.samples(X).collections) == 1


def test_a_line_joins_every_pair_that_exchanges_mass(labeled, unlabeled):
    result = transport_plan(labeled, unlabeled)
    ax = mixda.plot.plan(result, labeled, unlabeled)
    pairs = np.argwhere(result.plan > 0)
    assert len(ax.lines) == len(pairs)
    for line, (i, j) in zip(ax.lines, pairs, strict=True):
        ends = [labeled.means[i, :2], unlabeled.means[j, :2]]
        np.testing.assert_allclose(line.get_xydata(), ends)


def test_the_matrix_holds_the_plan_with_rows_grouped_by_class(unlabeled):
    p = Mixture(
        [0.2, 0.3, 0.5],
        [[0, 0, 0], [9, 9, 0], [1, 0, 0]],
        np.ones((3, 3)),
        [[1, 0], [0, 1], [1, 0]],
    )
    result = transport_plan(p, unlabeled)
    ax = mixda.plot.plan(result, p, unlabeled, kind="matrix")
    shown = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shown.sum(axis=1), [0.2, 0.5, 0.3])
    assert sorted(shown.sum(axis=0)) == sorted(result.plan.sum(axis=0))


def test_history_shows_the_recorded_numbers(learned):
    loss, nll, coordinates = mixda.plot.history(learned, domain_names=["a", "b", "c"])
    np.testing.assert_array_equal(loss.lines[0].get_ydata(), learned.history.loss)
    assert [text.get_text() for text in loss.get_legend().get_texts()] == ["total", "a", "b", "c"]
    for k in range(3):
        np.testing.assert_array_equal(nll.lines[k].get_ydata(), learned.history.nll[:, k])
    drawn = [tuple(line.get_ydata()) for line in coordinates.lines]
    for k in range(3):
        for c in range(2):
            assert tuple(learned.history.coordinates[:, k, c]) in drawn


def test_history_without_likelihoods_says_how_to_get_them(learned):
    learned.history.nll = None
    axes = mixda.plot.history(learned)
    assert "give samples" in axes[1].texts[0].get_text()


def test_coordinates_are_bars_that_fill_the_row(learned):
    ax = mixda.plot.coordinates(learned)
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, 3).T
    np.testing.assert_allclose(widths, learned.coordinates)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["source 1", "source 2", "target"]


def test_figures_are_drawn_into_the_given_axes(labeled, unlabeled, learned):
    _, ax = plt.subplots()
    assert mixda.plot.mixture(labeled, ax) is ax
    assert mixda.plot.samples([[0, 1]], None, ax) is ax
    assert mixda.plot.plan(transport_plan(labeled, unlabeled), labeled, unlabeled, ax) is ax
    assert mixda.plot.coordinates(learned, ax) is ax
    _, axes = plt.subplots(1, 3)
    assert all(a is b for a, b in zip(mixda.plot.history(learned, axes), axes, strict=True))


def test_the_map_keeps_the_distances_of_domains_that_fit_in_a_plane():
    places = np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 4.0], [3.0, -1.0]])
    mixtures = [Mixture([1.0], [[*place, 7.0]], [[1, 1, 1]]) for place in places]
    ax = mixda.plot.domain_map(mixtures, names=["a", "b", "c", "d"])
    drawn = np.concatenate([c.get_offsets() for c in ax.collections])
    shown = np.linalg.norm(drawn[:, None] - drawn, axis=2)
    np.testing.assert_allclose(shown, np.linalg.norm(places[:, None] - places, axis=2), atol=1e-6)
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c", "d"]
    assert "misses 0% of" in ax.get_title("left")


def test_components_are_seen_as_their_samples_would_be(labeled, unlabeled):
    from mixda.views import common_plane

    rng = np.random.default_rng(0)
    shared = common_plane([labeled])
    centers, roots = shared.place(labeled)
    draws = labeled.means[0] + labeled.stds[0] * rng.standard_normal((200_000, 3))
    seen = (draws - shared.center) @ shared.axes
    np.testing.assert_allclose(seen.mean(axis=0), centers[0], atol=0.02)
    np.testing.assert_allclose(np.cov(seen.T), roots[0] @ roots[0], atol=0.02)
    axes = mixda.plot.components([labeled, unlabeled], names=["old", "new"])
    assert [ax.get_title() for ax in axes] == ["old", "new"]
    assert [len(ax.patches) for ax in axes] == [3, 2]
    drawn = np.array([patch.center for patch in axes[0].patches])
    np.testing.assert_allclose(drawn, centers)
    patch = axes[0].patches[0]
    outline = patch.get_transform().transform(patch.get_path().vertices)
    outline = axes[0].transData.inverted().transform(outline) - centers[0]
    inside = np.linalg.solve(roots[0], outline.T)
    np.testing.assert_allclose(np.abs(inside).max(), 1.0, atol=0.05)


def test_the_plane_tells_classes_apart_that_differ_in_one_feature_of_many():
    means = np.random.default_rng(0).normal(size=(8, 50))
    labels = np.repeat(np.eye(2), 4, axis=0)
    means[:, 17] += 30 * labels[:, 0]
    p = Mixture(np.full(8, 1 / 8), means, np.ones((8, 50)), labels)
    centers = mixda.views.common_plane([p]).place(p)[0]
    assert (
        centers[:4, 0].min() > centers[4:, 0].max() or centers[:4, 0].max() < centers[4:, 0].min()
    )


def test_class_proportions_show_every_share():
    ax = mixda.plot.class_proportions([[0.5, 0.5], [0.2, 0.8]], classes=["a", "b"])
    drawn = [c.get_offsets()[:, 0] for c in ax.collections]
    np.testing.assert_allclose(drawn, [[0.5, 0.5], [0.2, 0.8]])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]


def test_certainty_counts_every_sample_once():
    ax = mixda.plot.certainty([[0.95, 0.05], [0.5, 0.5], [0.0, 1.0], [0.45, 0.55]])
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == [0, 0, 0, 0, 0, 2, 0, 0, 0, 2]


def test_confusion_agrees_with_scikit_learn():
    from sklearn.metrics import confusion_matrix

    truth, guess = list("abcabcab"), list("abcaacbb")
    ax = mixda.plot.confusion(truth, guess)
    counts = confusion_matrix(truth, guess)
    shown = np.zeros_like(counts)
    for text in ax.texts:
        j, i = (int(x) for x in text.get_position())
        shown[i, j] = int(text.get_text())
    np.testing.assert_array_equal(shown, counts)
    shares = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shares, counts / counts.sum(axis=1, keepdims=True))


def test_confusion_compares_numbers_and_texts_as_texts():
    for names in (None, [0, 1], ["0", "1"]):
        ax = mixda.plot.confusion([0, 1], ["0", "1"], classes=names)
        np.testing.assert_array_equal(ax.images[0].get_array(), np.eye(2))


def test_the_range_of_a_share_is_wilsons():
    from scipy.stats import binomtest

    for hits, n in ((0, 5), (8, 10), (449, 449)):
        range_ = binomtest(hits, n).proportion_ci(0.95, method="wilson")
        expected = (range_.low, range_.high)
        np.testing.assert_allclose(mixda.views.wilson_interval(hits, n), expected, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 10, 12, 31, 65])
def test_every_class_has_its_own_color_and_none_is_the_grey_of_no_label(n):
    assert len(set(mixda.plot.colors(n))) == n
    assert mixda.plot.UNLABELED not in mixda.plot.colors(n)


def test_mistakes_get_a_sentence(labeled, unlabeled, learned):
    with pytest.raises(ValueError, match="dims must be two features among 0 to 2"):
        mixda.plot.mixture(labeled, dims=(0, 3))
    with pytest.raises(ValueError, match="dims must be two features"):
        mixda.plot.samples([[0.0, 1.0]], dims=(0,))
    with pytest.raises(ValueError, match="give the mixtures it was computed for"):
        mixda.plot.plan(transport_plan(labeled, unlabeled), unlabeled, labeled)
    with pytest.raises(ValueError, match="kind must be one of 'lines', 'matrix'"):
        mixda.plot.plan(transport_plan(labeled, unlabeled), labeled, unlabeled, kind="arrows")
    with pytest.raises(ValueError, match="domain_names must be 3 names"):
        mixda.plot.coordinates(learned, domain_names=["a"])
    with pytest.raises(ValueError, match="axes must be 2 matplotlib Axes"):
        mixda.plot.components([labeled, unlabeled], [plt.gca()])
    with pytest.raises(ValueError, match="y_true has 1 labels, but y_pred has 2"):
        mixda.plot.confusion([0], [0, 1])
    with pytest.raises(ValueError, match="classes does not hold 'c'"):
        mixda.plot.confusion(["c"], ["a"], classes=["a", "b"])
    with pytest.raises(ValueError, match="classes must be 2 names"):
        mixda.plot.class_proportions([[0.5, 0.5]], classes=["a"])
    with pytest.raises(ValueError, match="three matplotlib Axes"):
        mixda.plot.history(learned, plt.subplots(1, 2)[1])


def test_without_matplotlib_the_extra_is_named(monkeypatch, labeled):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"mixda\[report\]"):
        mixda.plot.mixture(labeled)


def test_importing_the_module_does_not_import_matplotlib():
    code = "import sys, mixda.plot, mixda.datasets; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
