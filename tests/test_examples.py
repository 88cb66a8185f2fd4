"""The gallery, the pictures, the reference and the code of the README and the pages hold."""

import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import mixda

plt = pytest.importorskip("matplotlib.pyplot", reason="the examples draw; install the report extra")

ROOT = Path(__file__).parents[1]
GALLERY = sorted((ROOT / "examples").glob("*/plot_*.py"))
README = ROOT / "README.md"
QUICKSTART = ROOT / "docs" / "quickstart.rst"
CHOOSING = ROOT / "docs" / "choosing.rst"
NEEDS_CLI = {"plot_csv_files"}
ESTIMATE = re.compile(r"estimated.*\d ?%", re.IGNORECASE | re.DOTALL)  # as `trust_` is printed

# Runs a gallery script and saves what it would show.
SAVE_FIGURES = """
import itertools, runpy, sys
import matplotlib.pyplot as plt
numbers = itertools.count()
def show():
    for k in plt.get_fignums():
        plt.figure(k).savefig(f"{next(numbers)}.png")
    plt.close("all")
plt.show = show
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def run(*arguments: object, folder: Path) -> str:
    """Run Python on the arguments in a folder; errors of the script are shown."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def code_blocks(path: Path, language: str) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        return [block.strip() for block in blocks]
    block = rf"^\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)"
    found = re.findall(block, text, re.MULTILINE)
    return [re.sub("^    ", "", block, flags=re.MULTILINE).strip() for block in found]


def write_scanners(folder: Path) -> np.ndarray:
    """Write small files of the names that the pages use; return the truth of the target."""
    pandas = pytest.importorskip("pandas", reason="the pages read csv files with pandas")
    data = mixda.datasets.load_digit_scanners(random_state=0)
    truth = None
    for name in data.domain_names:
        X, y = (values[::4] for values in data.samples_of(name))
        frame = pandas.DataFrame(X, columns=[f"pixel{k}" for k in range(X.shape[1])])
        if name == "phone":
            truth = y
        else:
            frame["digit"] = y
        frame.to_csv(folder / f"{name}.csv", index=False)
    return truth


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_gallery_script_draws(script, tmp_path):
    if script.stem in NEEDS_CLI:
        pytest.importorskip("typer", reason="the command line needs the cli extra")
        pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
    run("-c", SAVE_FIGURES, script, folder=tmp_path)
    assert list(tmp_path.glob("*.png"))


def test_there_is_a_gallery():
    assert len(GALLERY) > 3


def test_pictures_of_the_readme_are_there_and_small():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = set(re.findall(r"docs/img/\w+\.png", text))
    assert pictures == {"docs/img/shifted_toy.png", "docs/img/report.png"}
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 200_000


def test_picture_of_the_readme_is_drawn_by_its_script(tmp_path):
    run(ROOT / "docs" / "make_readme_figure.py", tmp_path / "picture.png", folder=tmp_path)
    assert (tmp_path / "picture.png").stat().st_size < 200_000


def test_ten_lines_of_the_readme_run(tmp_path):
    truth = write_scanners(tmp_path)
    (block,) = code_blocks(README, "python")
    assert ESTIMATE.search(run("-c", block, folder=tmp_path))
    check_results(tmp_path / "phone_labeled.csv", "digit", truth, tmp_path / "phone_report.html")


def test_three_commands_of_the_readme_run(tmp_path):
    pytest.importorskip("typer", reason="the command line needs the cli extra")
    pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
    truth = write_scanners(tmp_path)
    (block,) = code_blocks(README, "bash")
    commands = block.splitlines()
    assert len(commands) == 3
    for command in commands:
        program, *arguments = shlex.split(command)
        run("-m", program, *arguments, folder=tmp_path)
    check_results(tmp_path / "predictions.csv", "label", truth, tmp_path / "report.html")


def test_quickstart_begins_as_the_readme_and_its_other_code_runs(tmp_path):
    assert code_blocks(QUICKSTART, "bash") == code_blocks(README, "bash")
    first, *others = code_blocks(QUICKSTART, "python")
    assert [first] == code_blocks(README, "python")
    printed = run("-c", "\n".join(["import mixda", *others]), folder=tmp_path)
    assert re.search(r"^(9\d|100)% right$", printed, re.MULTILINE)
    assert "source 1: " in printed


def test_code_of_the_page_on_methods_runs(tmp_path):
    first, tuning, with_skada = code_blocks(CHOOSING, "python")
    assert ESTIMATE.search(run("-c", first, folder=tmp_path))
    assert "on held-out sources" in run("-c", tuning, folder=tmp_path)
    if importlib.util.find_spec("skada"):
        assert "n_components" in run("-c", with_skada, folder=tmp_path)


def check_results(table: Path, column: str, truth: np.ndarray, page: Path) -> None:
    """Integer labels, right far more often than by chance (one in ten), and an HTML page."""
    import pandas

    predicted = pandas.read_csv(table)[column]
    assert predicted.dtype == int
    assert np.mean(predicted.to_numpy() == truth) > 0.5
    assert "<html" in page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def near_sources():
    """The method that the page "How to add a method" writes."""
    before = plt.get_backend()
    plt.switch_backend("Agg")
    path = ROOT / "examples" / "tutorials" / "plot_your_method.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that it can be pickled, as scikit-learn demands
    spec.loader.exec_module(module)
    plt.close("all")
    plt.switch_backend(before)
    yield module.NearSources
    del sys.modules[path.stem]


def test_method_of_the_page_passes_scikit_learns_checks(near_sources):
    check_estimator(near_sources())


def test_method_of_the_page_never_reads_target_labels_and_becomes_a_model(near_sources):
    task = mixda.datasets.make_toy(n_samples=40, random_state=2).as_task()
    model = near_sources(random_state=0)
    first = model.fit(task.X, task.y, sample_domain=task.sample_domain).predict_proba(task.X_target)
    other = np.where(task.sample_domain < 0, 99, task.y)
    again = clone(model).fit(task.X, other, sample_domain=task.sample_domain)
    assert np.array_equal(first, again.predict_proba(task.X_target))
    assert np.array_equal(first, again.to_model().predict_proba(task.X_target))


INTERNAL = {  # public in their modules for the sake of others, no part of the reference
    "model.default_names",
    "model.novelty_threshold",
    "model.Trust",  # listed as selection.Trust
    "model.outlier_threshold",
    "rules.Doubt",
    "tables.check_different",
    "tables.check_writable",
}
MODULES = (
    *(
        "benchmark",
        "chunks",
        "datasets",
        "empirical",
        "estimators",
        "estimators.utils",
        "model",
        "online",
        "plot",
    ),
    *("report", "rules", "selection", "tables", "workflow"),
)


@pytest.mark.parametrize("module", ["", *MODULES], ids=lambda name: name or "mixda")
def test_reference_has_every_public_name(module):
    text = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = {line.strip() for line in text.splitlines() if line.startswith("   ")}
    found = importlib.import_module(f"mixda.{module}".rstrip("."))
    own = [
        name for name, v in vars(found).items() if getattr(v, "__module__", "") == found.__name__
    ]
    for name in getattr(found, "__all__", own):
        value = getattr(found, name)
        if name.startswith("_") or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        full = f"{module}.{name}".lstrip(".")
        assert full in listed or name in listed or full in INTERNAL, full
