import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from mixda import Mixture, plot, transport_plan
from mixda._core.errors import MixdaError
from mixda.views import common_plane

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


def test_mixture_ellipses(labeled):
    ax = plot.mixture(labeled, dims=(0, 2), n_stds=3.0)
    ellipses = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    np.testing.assert_allclose([e.center for e in ellipses], labeled.means[:, [0, 2]])
    np.testing.assert_allclose([[e.width, e.height] for e in ellipses], 6 * labeled.stds[:, [0, 2]])


def test_mixture_colors(labeled, unlabeled):
    first, second = (np.array(to_rgb(color)) for color in plot.colors(2))
    faces = [e.get_facecolor()[:3] for e in plot.mixture(labeled).patches]
    np.testing.assert_allclose(faces, [first, second, (first + second) / 2])
    for patch in plot.mixture(unlabeled).patches:
        assert patch.get_facecolor()[:3] == to_rgb(plot.UNLABELED)
    for patch in plot.mixture(labeled, color="#123456").patches:
        assert patch.get_facecolor()[:3] == to_rgb("#123456")


def test_mixture_dot_areas(labeled):
    sizes = plot.mixture(labeled).collections[0].get_sizes()
    np.testing.assert_allclose(sizes / sizes.sum(), labeled.weights)


def test_mixture_limits(labeled):
    ax = plot.mixture(labeled)
    assert ax.get_xlim()[0] <= -2
    assert ax.get_xlim()[1] >= 8
    assert ax.get_ylim()[0] <= -4


def test_samples_colors():
    X, y = np.arange(8.0).reshape(4, 2), np.array(["b", "c", "b", "c"])
    ax = plot.samples(X, y, classes=["a", "b", "c"])
    offsets = [collection.get_offsets() for collection in ax.collections]
    assert [len(o) for o in offsets] == [0, 2, 2]
    np.testing.assert_array_equal(offsets[1], X[[0, 2]])
    np.testing.assert_allclose(ax.collections[2].get_facecolor()[0][:3], to_rgb(plot.colors(3)[2]))
    assert len(plot.samples(X).collections) == 1


def test_plan_lines(labeled, unlabeled):
    result = transport_plan(labeled, unlabeled)
    ax = plot.plan(result, labeled, unlabeled)
    pairs = np.argwhere(result.plan > 0)
    assert len(ax.lines) == len(pairs)
    for line, (i, j) in zip(ax.lines, pairs, strict=True):
        ends = [labeled.means[i, :2], unlabeled.means[j, :2]]
        np.testing.assert_allclose(line.get_xydata(), ends)


def test_plan_matrix(unlabeled):
    p = Mixture(
        [0.2, 0.3, 0.5],
        [[0, 0, 0], [9, 9, 0], [1, 0, 0]],
        np.ones((3, 3)),
        [[1, 0], [0, 1], [1, 0]],
    )
    result = transport_plan(p, unlabeled)
    ax = plot.plan(result, p, unlabeled, kind="matrix")
    shown = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shown.sum(axis=1), [0.2, 0.5, 0.3])
    assert sorted(shown.sum(axis=0)) == sorted(result.plan.sum(axis=0))


def test_history_values(learned):
    loss, nll, coordinates = plot.history(learned, domain_names=["a", "b", "c"])
    np.testing.assert_array_equal(loss.lines[0].get_ydata(), learned.history.loss)
    assert [text.get_text() for text in loss.get_legend().get_texts()] == ["total", "a", "b", "c"]
    for k in range(3):
        np.testing.assert_array_equal(nll.lines[k].get_ydata(), learned.history.nll[:, k])
    drawn = [tuple(line.get_ydata()) for line in coordinates.lines]
    for k in range(3):
        for c in range(2):
            assert tuple(learned.history.coordinates[:, k, c]) in drawn


def test_history_without_nll(learned):
    learned.history.nll = None
    axes = plot.history(learned)
    assert "learn_dictionary" in axes[1].texts[0].get_text()


def test_coordinates_bars(learned):
    ax = plot.coordinates(learned)
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, 3).T
    np.testing.assert_allclose(widths, learned.coordinates)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["source 1", "source 2", "target"]


def test_given_axes(labeled, unlabeled, learned):
    _, ax = plt.subplots()
    assert plot.mixture(labeled, ax) is ax
    assert plot.samples([[0, 1]], None, ax) is ax
    assert plot.plan(transport_plan(labeled, unlabeled), labeled, unlabeled, ax) is ax
    assert plot.coordinates(learned, ax) is ax
    _, axes = plt.subplots(1, 3)
    assert all(a is b for a, b in zip(plot.history(learned, axes), axes, strict=True))


def test_domain_map_distances():
    places = np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 4.0], [3.0, -1.0]])
    mixtures = [Mixture([1.0], [[*place, 7.0]], [[1, 1, 1]]) for place in places]
    ax = plot.domain_map(mixtures, names=["a", "b", "c", "d"])
    drawn = np.concatenate([c.get_offsets() for c in ax.collections])
    shown = np.linalg.norm(drawn[:, None] - drawn, axis=2)
    np.testing.assert_allclose(shown, np.linalg.norm(places[:, None] - places, axis=2), atol=1e-6)
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c", "d"]
    assert "0%" in ax.get_title("left")


def test_components_match_projected_samples(labeled, unlabeled):
    rng = np.random.default_rng(0)
    shared = common_plane([labeled])
    centers, roots = shared.place(labeled)
    draws = labeled.means[0] + labeled.stds[0] * rng.standard_normal((200_000, 3))
    seen = (draws - shared.center) @ shared.axes
    np.testing.assert_allclose(seen.mean(axis=0), centers[0], atol=0.02)
    np.testing.assert_allclose(np.cov(seen.T), roots[0] @ roots[0], atol=0.02)
    axes = plot.components([labeled, unlabeled], names=["old", "new"])
    assert [ax.get_title() for ax in axes] == ["old", "new"]
    assert [len(ax.patches) for ax in axes] == [3, 2]
    drawn = np.array([patch.center for patch in axes[0].patches])
    np.testing.assert_allclose(drawn, centers)
    patch = axes[0].patches[0]
    outline = patch.get_transform().transform(patch.get_path().vertices)
    outline = axes[0].transData.inverted().transform(outline) - centers[0]
    inside = np.linalg.solve(roots[0], outline.T)
    np.testing.assert_allclose(np.abs(inside).max(), 1.0, atol=0.05)


def test_class_proportions():
    ax = plot.class_proportions([[0.5, 0.5], [0.2, 0.8]], classes=["a", "b"])
    drawn = [c.get_offsets()[:, 0] for c in ax.collections]
    np.testing.assert_allclose(drawn, [[0.5, 0.5], [0.2, 0.8]])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]


def test_certainty_counts():
    ax = plot.certainty([[0.95, 0.05], [0.5, 0.5], [0.0, 1.0], [0.45, 0.55]])
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == [0, 0, 0, 0, 0, 2, 0, 0, 0, 2]


def test_confusion_counts():
    from sklearn.metrics import confusion_matrix

    truth, guess = list("abcabcab"), list("abcaacbb")
    ax = plot.confusion(truth, guess)
    counts = confusion_matrix(truth, guess)
    shown = np.zeros_like(counts)
    for text in ax.texts:
        j, i = (int(x) for x in text.get_position())
        shown[i, j] = int(text.get_text())
    np.testing.assert_array_equal(shown, counts)
    shares = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shares, counts / counts.sum(axis=1, keepdims=True))


def test_confusion_numbers_and_text():
    for names in (None, [0, 1], ["0", "1"]):
        ax = plot.confusion([0, 1], ["0", "1"], classes=names)
        np.testing.assert_array_equal(ax.images[0].get_array(), np.eye(2))


@pytest.mark.parametrize("n", [1, 2, 10, 12, 31, 65])
def test_colors_distinct(n):
    assert len(set(plot.colors(n))) == n
    assert plot.UNLABELED not in plot.colors(n)


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda p, q, _: plot.mixture(p, dims=(0, 3)), r"dims .*0 to 2.*\(0, 3\)"),
        (lambda *_: plot.samples([[0.0, 1.0]], dims=(0,)), r"dims .*\(0,\)"),
        (lambda p, q, _: plot.plan(transport_plan(p, q), q, p), r"\(3, 2\).* 2 and 3"),
        (lambda p, q, _: plot.plan(transport_plan(p, q), p, q, kind="x"), "kind .*'lines'.*'x'"),
        (lambda p, q, d: plot.coordinates(d, domain_names=["a"]), "domain_names .*3.*got 1"),
        (lambda p, q, _: plot.domain_map([p, q], names=["a"]), "^names .*2.*got 1"),
        (lambda p, q, _: plot.components([p, q], [plt.gca()]), "axes .*2.*got 1"),
        (lambda *_: plot.confusion([0], [0, 1]), "y_true and y_pred .*1 and 2"),
        (lambda *_: plot.confusion(["c"], ["a"], classes=["a", "b"]), "classes .*'c'"),
        (lambda *_: plot.confusion(["a"], ["c"], classes=["a", "b"]), "classes .*'c'"),
        (lambda *_: plot.class_proportions([[0.5, 0.5]], classes=["a"]), "classes .*2.*got 1"),
        (lambda *_: plot.certainty([[0.5, 0.5]], bins=[1.0, 0.0]), r"bins .*\[1.0, 0.0\]"),
        (lambda p, q, d: plot.history(d, plt.subplots(1, 2)[1]), r"axes .*three.*\(2,\)"),
    ],
)
def test_errors(draw, match, labeled, unlabeled, learned):
    with pytest.raises(MixdaError, match=match):
        draw(labeled, unlabeled, learned)


def test_missing_matplotlib(monkeypatch, labeled):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"mixda\[report\]"):
        plot.mixture(labeled)


def test_import_without_matplotlib():
    code = "import sys, mixda.plot, mixda.datasets; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
