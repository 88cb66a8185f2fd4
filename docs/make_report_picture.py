"""Take docs/img/report.png, a screenshot of the report written by the README's three commands.

Run ``python docs/make_report_picture.py [FILE]`` (requires the cli extra and Chromium).
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mixda.cli import run
from mixda.cli._demo import write_scanners

SIZE = "880,800"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    default = Path(__file__).parent / "img" / "report.png"
    picture = (Path(sys.argv[1]) if len(sys.argv) > 1 else default).resolve()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("Chromium was not found; install chromium or google-chrome.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_scanners(folder, 0)
        sources = [str(folder / f"{source}.csv") for source in ("office", "archive", "library")]
        target, model = str(folder / "phone.csv"), str(folder / "phone.mixda")
        page = folder / "report.html"
        adapt = ["adapt", *sources, "--target", target, "--label", "digit", "-o", model]
        if run(adapt) or run(["report", model, "--data", target, "-o", str(page)]):
            sys.exit("A command failed; the picture was not changed.")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        shot = [f"--window-size={SIZE}", f"--screenshot={picture}", page.as_uri()]
        subprocess.run([browser, *options, *shot], check=True, capture_output=True)
    print(f"{picture}: {picture.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
