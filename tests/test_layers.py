"""The order of the packages: each imports only from those to its left, and nothing goes in circles.

Every import counts: at the top of a file, inside a function, under ``TYPE_CHECKING``.
"""

import ast
from pathlib import Path

import pytest

import mixda

ORDER = (
    *("_version", "_core", "mixture", "transport", "tables", "chunks", "em", "checks"),
    *("barycenters", "online", "dictionary", "empirical", "rules", "model", "estimators"),
    *("monitoring", "deep", "selection", "datasets", "views", "plot", "report", "benchmark"),
    *("workflow", "cli", "__main__"),
)
EXCEPTIONS = {("model._model", "report")}  # AdaptedModel.report, for the reader's convenience
ROOT = Path(mixda.__file__).parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(ROOT.rglob("*.py"))
    if path != ROOT / "__init__.py"
}


def imports_of(source: str) -> list[str]:
    """Modules of mixda that a source names in any import, relative to the package."""
    imported = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            imported += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name.removeprefix("mixda.") for name in imported if name.split(".")[0] == "mixda"]


def violations(module: str, source: str) -> list[str]:
    own = module.split(".")[0]
    wrong = []
    for name in imports_of(source):
        package, *rest = name.split(".")
        if package == own or (module, package) in EXCEPTIONS:
            continue
        if package not in ORDER:
            wrong.append(f"{module} imports mixda.{package} through the root")
        elif ORDER.index(package) > ORDER.index(own):
            wrong.append(f"{module} imports mixda.{package}, which stands to its right")
        elif package != "_core" and len(rest) > 1 and rest[0].startswith("_"):
            wrong.append(f"{module} imports the private mixda.{package}.{rest[0]}")
    return wrong


@pytest.mark.parametrize("module", FILES)
def test_imports_go_left(module):
    assert violations(module, FILES[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "from mixda.cli import main",
        "def f():\n    import mixda.selection",
        "if TYPE_CHECKING:\n    from mixda.estimators import GMMWBT",
        "from mixda import GMMDaDiL",
        "import mixda",
        "from mixda.mixture._density import log_gaussians",
    ],
)
def test_wrong_import_is_noticed(line):
    assert violations("em._fit", line)


def test_no_private_file_at_the_root():
    private = [path.name for path in ROOT.glob("_*.py") if not path.name.startswith("__")]
    assert private == ["_version.py"]


def test_modules_do_not_import_in_circles():
    graph = {}
    for module, path in FILES.items():
        names = imports_of(path.read_text(encoding="utf-8"))
        graph[module] = {
            name if name in FILES else name.rpartition(".")[0] for name in names
        } & set(FILES)

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join((*trail[trail.index(module) :], module))
        if module not in done:
            for other in graph[module]:
                visit(other, (*trail, module))
            done.add(module)

    done: set[str] = set()
    for module in graph:
        visit(module, ())
