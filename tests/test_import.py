"""Importing mixda is light, and everything it announces is there."""

import subprocess
import sys

import pytest

import mixda

HEAVY = ("torch", "matplotlib", "dask", "plotly", "pandas", "skada", "ot", "typer", "rich")


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after the statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing_heavy():
    loaded = loaded_by("import mixda")
    assert "mixda" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_all_names_load_nothing_heavy_that_scikit_learn_does_not():
    # scikit-learn loads pandas and rich by itself where they are installed
    loaded = loaded_by("from mixda import *")
    assert "sklearn" in loaded
    assert (loaded - loaded_by("import sklearn.linear_model")).isdisjoint(HEAVY)


@pytest.mark.parametrize("name", mixda.__all__)
def test_every_public_name_resolves(name):
    assert getattr(mixda, name) is not None
    assert name in dir(mixda)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'mixtures_of_unicorns'"):
        mixda.mixtures_of_unicorns  # noqa: B018
