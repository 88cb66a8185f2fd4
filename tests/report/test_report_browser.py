"""The report in a real browser: headless Chromium through Playwright."""

import re
import shutil

import pytest

from mixda.report import write_report

from .report_models import NAUGHTY, adapted_model

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for found in map(shutil.which, names) if found), None)
    if path is None:
        pytest.skip("no Chromium is installed; apt-get install chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield running
        running.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    model, X, y = adapted_model(classes=NAUGHTY, names=["site 0", "site 1", "<i>new</i>"])
    return write_report(model, tmp_path_factory.mktemp("report") / "report.html", X, y)


@pytest.fixture
def visit(browser, page_file):
    contexts = []

    def visit(path=page_file, open_experts=True, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.problems, page.requests = [], []
        page.on("console", lambda message: page.problems.append(message.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("dialog", lambda dialog: page.problems.append(dialog.message))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(path.as_uri())
        if open_experts:  # as a click on the fold does
            page.locator(".experts > summary").click()
        return page

    yield visit
    for context in contexts:
        context.close()


def places(page):
    """Where every moving component is in its picture, to a tenth of a pixel."""
    return page.evaluate(
        "(() => { const a = document.getElementById('moving').getBoundingClientRect();"
        "return [...document.querySelectorAll('#moving .e')].map(e => {"
        "const b = e.getBoundingClientRect();"
        "return [b.x - a.x, b.y - a.y, b.width, b.height].map(x => x.toFixed(1))})})()"
    )


def test_no_errors_no_requests_and_no_foreign_script(visit, page_file):
    page = visit()
    assert page.problems == []
    assert page.requests == [page_file.as_uri()]
    assert page.locator("img").count() == 0
    assert NAUGHTY[0] in page.inner_text("#components .legend")


def test_the_slider_moves_the_components_and_says_where_it_is(visit):
    page = visit()
    start, words = places(page), page.inner_text("#readout")
    assert words.startswith("<i>new</i>:")
    page.evaluate("document.getElementById('along').focus()")
    page.keyboard.press("Home")
    assert places(page) != start
    assert page.inner_text("#readout") == "atom 1: 100\xa0% atom 1 + 0\xa0% atom 2"
    assert page.get_attribute("#along", "aria-valuetext") == page.inner_text("#readout")
    atom = places(page)
    page.keyboard.press("ArrowRight")
    assert places(page) != atom
    page.click(".stops button:nth-child(2)")
    assert places(page) == start
    assert page.problems == []


def test_the_script_starts_from_what_the_page_shows_without_it(visit):
    quiet = visit(java_script_enabled=False)
    shown = quiet.locator("#moving .e").first.bounding_box()
    moved = visit().locator("#moving .e").first.bounding_box()
    for side in ("x", "y", "width", "height"):
        assert moved[side] == pytest.approx(shown[side], abs=0.3)  # frames have one decimal
    assert quiet.locator("#along").is_hidden()
    assert quiet.locator("#readout").is_visible()


@pytest.mark.parametrize("shape", [{}, {"n_classes": 30, "n_sources": 10}])
def test_a_phone_needs_no_sideways_scrolling(visit, tmp_path, shape):
    name = "x" * 70
    shape = {**shape, "names": [name] * (shape.get("n_sources", 2) + 1)}
    model, X, y = adapted_model(**shape)
    path = write_report(model, tmp_path / "wide.html", X, y)
    page = visit(path, viewport={"width": 360, "height": 740})
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('svg text')].map("
        "t => t.getBoundingClientRect().height))"
    )
    assert smallest >= 10  # pixels


def test_dark_mode_changes_paper_ink_and_marks(visit):
    read = (
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
        " getComputedStyle(document.querySelector('.k0')).color]"
    )
    light = visit(color_scheme="light").evaluate(read)
    dark = visit(color_scheme="dark").evaluate(read)
    assert all(a != b for a, b in zip(light, dark, strict=True))


def test_the_keyboard_reaches_the_slider_and_focus_is_visible(visit):
    page = visit()
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.evaluate("document.querySelector('.skip').focus()")
    seen = ["skip"]
    for _ in range(90):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        if seen[-1] == "along":
            break
    assert seen[0] == "skip"
    assert seen[-1] == "along"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_on_paper_the_page_is_light_and_without_controls(visit):
    page = visit(color_scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("#along").is_hidden()
    assert page.locator("nav").is_hidden()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")


LONG_CLASSES = [
    "normal operation after the scheduled maintenance of August 24",
    "normal operation after the scheduled maintenance of August 25",
    "bearing worn at the drive end, early stage, vibration only",
    "bearing worn at the drive end, late stage, vibration and heat",
]
OVERLAPS = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')];
  const boxes = texts.map(t => [t.getBoundingClientRect(), t.textContent])
    .filter(([b]) => b.width);
  const outside = boxes.filter(([b]) => b.left < frame.left - 3 || b.right > frame.right + 3
    || b.top < frame.top - 3 || b.bottom > frame.bottom + 3).map(([, t]) => 'outside: ' + t);
  const pairs = boxes.flatMap(([a, s], i) => boxes.slice(i + 1).filter(([b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4).map(([, t]) => s + ' | ' + t));
  return [...outside, ...pairs];
})"""


@pytest.fixture(scope="module", params=[2, 5, 30])
def long_names(request, tmp_path_factory):
    """A report with long names of classes, sources and features."""
    n = request.param
    model, X, y = adapted_model(
        n_classes=4,
        n_sources=n,
        n_features=12,
        classes=LONG_CLASSES,
        dictionary=n == 5,
        names=[f"production line {k} in hall {k % 7}, spring 2026" for k in range(n)] + ["hall 9"],
        feature_names=tuple(f"temperature of sensor {k} [°C]" for k in range(12)),
        trust={"accuracy": 0.88, "low": 0.8, "high": 0.94, "level": 0.8, "reason": "It was best"},
    )
    known = model.with_reference(X)
    path = tmp_path_factory.mktemp("long") / "report.html"
    return write_report(known, path, X + 0.5, None if n == 2 else y)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nothing_overlaps(visit, long_names, width, scheme):
    page = visit(long_names, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.problems == []


def test_four_pages_on_paper(visit, long_names):
    page = visit(long_names, open_experts=False)
    paper = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type /Page\b(?!s)", paper)) in range(1, 5)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 1035})  # 186 mm, without the margins
    wide = (
        "[...document.querySelectorAll('table')].filter("
        "t => t.offsetWidth > t.parentElement.offsetWidth + 1).map(t => t.innerText)"
    )
    assert page.evaluate(wide) == []
    assert page.evaluate(OVERLAPS) == []
