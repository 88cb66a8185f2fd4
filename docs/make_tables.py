"""Turn folders of ``mixda bench run`` into the tables of the Results page.

python docs/make_tables.py out/cwru out/tep …   (writes docs/tables/cwru.rst, …)
"""

import re
import sys
from pathlib import Path

from mixda import benchmark

HERE = Path(__file__).parent


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        text = benchmark.table(folder)
        path = HERE / "tables" / f"{folder.name}.rst"
        path.parent.mkdir(exist_ok=True)
        path.write_text(to_rst(text), encoding="utf-8")
        print(path)


def to_rst(markdown: str) -> str:
    """Markdown tables become list tables; bold stays bold, underlined becomes italic."""
    lines, in_table = [], False
    for line in re.sub(r"</?u>", "*", markdown).splitlines():
        if not line.startswith("|"):
            lines.append(line)
            in_table = False
        elif not set(line) <= set("|- :"):
            if not in_table:
                lines += ["", ".. list-table::", "   :header-rows: 1", ""]
            in_table = True
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            lines += [f"   {'* -' if i == 0 else '  -'} {c}" for i, c in enumerate(cells)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
