"""Convert the output folders of ``mixda bench run`` to the tables of the Results page.

Run ``python docs/make_tables.py out/cwru out/tep …``. It writes docs/tables/cwru.rst, … and, for
datasets with published results, docs/tables/cwru-compared.rst, ….
"""

import re
import sys
from pathlib import Path

from mixda import benchmark

HERE = Path(__file__).parent


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
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


if __name__ == "__main__":
    main()
