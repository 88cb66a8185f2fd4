"""Sphinx directive ``.. mixda-help:: fit``: insert the output of ``mixda fit --help``."""

import os
import subprocess
import sys

from docutils import nodes
from docutils.parsers.rst import Directive


class CommandHelp(Directive):
    """Run a command with ``--help`` and show its output."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        words = self.arguments[0].split() if self.arguments else []
        done = subprocess.run(
            [sys.executable, "-m", "mixda", *words, "--help"],
            env={**os.environ, "COLUMNS": "94", "TERM": "dumb", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        if done.returncode:
            raise self.error(f"mixda {' '.join(words)} --help failed: {done.stderr}")
        text = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
        return [nodes.literal_block(text, text, language="none")]


def setup(app):
    app.add_directive("mixda-help", CommandHelp)
    return {"parallel_read_safe": True}
