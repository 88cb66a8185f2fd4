"""Sphinx configuration. ``make docs`` treats warnings as errors and does not use the network."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from sphinx.ext import autosummary

import mixda

os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.insert(0, str(Path(__file__).parent))  # changelog, command_help

project = "mixda"
author = "The mixda developers"
copyright = "The mixda developers, BSD-3-Clause"
version = release = mixda.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
    "changelog",
    "command_help",
]
templates_path = ["templates"]
exclude_patterns = ["_build", "templates", "tables"]
default_role = "code"

autosummary_generate = True
autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "eqs.")  # these do not end a summary
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # types are in the docstrings
numpydoc_show_class_members = False  # the class template lists them
# Document the deep methods even if torch is not installed.
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]

plot_formats = [("png", 120)]
plot_html_show_formats = False
plot_html_show_source_link = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "subsection_order": ["../examples/tutorials", "../examples/figures"],
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "mixda"
html_static_path = ["static"]
html_css_files = ["mixda.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
_WIDE = ("index", "quickstart", "choosing", "guide", "command_line", "file_formats", "results")
_WIDE += ("installation", "data", "faq", "glossary", "related", "benchmarks", "scaling")
_WIDE += ("gallery/tutorials/*", "gallery/figures/*")
html_sidebars = {page: [] for page in _WIDE}  # no subpages to list
