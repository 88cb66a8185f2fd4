"""Convert the output folders of ``mixda bench run`` to the tables of the Results page.

Run ``python docs/make_tables.py out/cwru out/tep …``. It writes docs/tables/cwru.rst, … and, for
datasets with published results, docs/tables/cwru-compared.rst, ….
The output of a benchmark, in a file such as out/selection.md, becomes docs/tables/selection.rst.
``python docs/make_tables.py --ranks cwru digits4 …`` ranks the methods over the written tables.
"""

import re
import sys
from pathlib import Path

import numpy as np

from mixda import benchmark

HERE = Path(__file__).parent


def main() -> None:
    if sys.argv[1:2] == ["--ranks"]:
        print_ranks(sys.argv[2:])
        return
    for folder in map(Path, sys.argv[1:]):
        if folder.suffix == ".md":
            write(folder.stem, folder.read_text(encoding="utf-8"))
            continue
        write(folder.name, benchmark.table(folder))
        try:
            write(f"{folder.name}-compared", benchmark.compare(folder))
        except ValueError as error:  # no published results for this dataset
            print(error)


def write(name: str, markdown: str) -> None:
    path = HERE / "tables" / f"{name}.rst"
    path.parent.mkdir(exist_ok=True)
    path.write_text(to_rst(markdown), encoding="utf-8")
    print(path)


def to_rst(markdown: str) -> str:
    """Convert Markdown tables to list tables, and underlined text to italics."""
    markdown = markdown.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    lines, in_table = [], False
    for line in re.sub(r"</?u>", "*", markdown).splitlines():
        if not line.startswith("|"):
            lines.append(line)
            in_table = False
        elif not set(line) <= set("|- :"):
            if not in_table:
                lines += ["", ".. list-table::", "   :header-rows: 1", ""]
            in_table = True
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
            lines += [f"   {'* -' if i == 0 else '  -'} {c}" for i, c in enumerate(cells)]
    return "\n".join(lines) + "\n"


def print_ranks(names: list[str]) -> None:
    """Print the average ranks of the methods that have a result on each target of the tables."""
    tables = [read_means(HERE / "tables" / f"{name}.rst") for name in names]
    methods = [method for method in tables[0] if all(method in table for table in tables)]
    accuracies = np.column_stack([np.hstack([t[method] for t in tables]) for method in methods])
    ranking = benchmark.rank_accuracies(methods, accuracies)
    print(f"{ranking.n_targets} targets, critical difference {ranking.critical_difference:.2f}")
    for i in np.argsort(ranking.ranks):
        print(f"{ranking.ranks[i]:5.2f}  {methods[i]}")


def read_means(path: Path) -> dict[str, list[float]]:
    """Read the accuracies per target of the ranked methods from a written table."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[5:7] == "- "]
    rows: list[list[str]] = []
    for line in lines:
        if line.startswith("   * - "):
            rows.append([])
        rows[-1].append(line[7:])
    n_targets = rows[0].index("average") - 1
    means = {}
    for name, *cells in rows[1:]:
        found = [re.search(r"\d+\.\d+", cell) for cell in cells[:n_targets]]
        if all(found) and not name.endswith(("(oracle)", "(MAP)")):
            means[name] = [float(number.group()) for number in found if number]
    return means


if __name__ == "__main__":
    main()
