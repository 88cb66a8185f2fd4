"""Sphinx settings; ``make docs`` builds with warnings as errors and without the network."""

import os

from sphinx.ext import autosummary

import mixda

os.environ.setdefault("MPLBACKEND", "Agg")

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
    "sphinx_gallery.gen_gallery",
]
templates_path = ["templates"]
exclude_patterns = ["_build", "templates"]
default_role = "code"

autosummary_generate = True
autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "eqs.")  # do not end a summary
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the docstrings say the types
numpydoc_show_class_members = False  # the class template lists them

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"demo\.py",
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
html_sidebars = {"index": [], "quickstart": [], "benchmarks": []}
