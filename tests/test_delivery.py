"""What stands in several files of the repository is the same in all of them."""

import re
import sys
from pathlib import Path

import pytest

import mixda

ROOT = Path(__file__).parent.parent
if not (ROOT / ".github").exists():
    pytest.skip("these tests need the repository", allow_module_level=True)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_version():
    cited = re.search(r"^version: (.*)$", read("CITATION.cff"), re.M)[1]
    assert cited == mixda.__version__
    assert f"## [{mixda.__version__}]" in read("CHANGELOG.md")


def test_python_versions():
    supported = re.findall(r"Python :: (3\.\d+)", read("pyproject.toml"))
    tested = re.search(r"python: \[(.*)\]", read(".github/workflows/tests.yml"))[1]
    assert re.findall(r"3\.\d+", tested) == supported
    assert f'requires-python = ">={supported[0]}"' in read("pyproject.toml")
    image = re.findall(r"FROM python:(3\.\d+)", read("Dockerfile"))
    assert set(image) <= set(supported)


def test_image_copies_what_the_build_reads():
    ignored = read(".dockerignore")
    for name in ("src", "pyproject.toml", "README.md", "LICENSE"):
        assert f"!{name}" in ignored
        assert re.search(rf"^COPY .*\b{re.escape(name)}", read("Dockerfile"), re.M)


def test_changelog_becomes_rst():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from changelog import as_rst
    except ModuleNotFoundError:
        pytest.skip("docutils is not installed")
    finally:
        sys.path.remove(str(ROOT / "docs"))
    text = as_rst("# Log\n\n## [1.0] - today\n\n### Added\n\n- `a`, [b](https://c.d)\n")
    assert text.split("\n")[1:] == [
        "1.0 – today",
        "-------------",
        "",
        "**Added**",
        "",
        "- ``a``, `b <https://c.d>`__",
        "",
    ]
