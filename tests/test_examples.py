"""The gallery, the picture and the code of the README run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the examples draw; install the report extra")

ROOT = Path(__file__).parents[1]
GALLERY = sorted((ROOT / "examples").glob("plot_*.py"))
PAGES = [ROOT / "README.md", ROOT / "docs" / "quickstart.rst"]

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
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def code_blocks(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"^\.\. code-block:: python\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    return [re.sub("^    ", "", block, flags=re.MULTILINE) for block in blocks]


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_gallery_script_draws(script, tmp_path):
    run("-c", SAVE_FIGURES, script, folder=tmp_path)
    assert list(tmp_path.glob("*.png"))


def test_there_is_a_gallery():
    assert GALLERY


def test_picture_of_the_readme_is_drawn_by_its_script_and_small(tmp_path):
    run(ROOT / "docs" / "make_readme_figure.py", tmp_path / "picture.png", folder=tmp_path)
    assert (tmp_path / "picture.png").stat().st_size < 200_000
    assert "docs/img/shifted_toy.png" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "img" / "shifted_toy.png").stat().st_size < 200_000


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_code_of_the_page_runs(page, tmp_path):
    blocks = code_blocks(page)
    assert blocks
    assert "right" in run("-c", "\n".join(blocks), folder=tmp_path)
