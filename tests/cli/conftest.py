"""A folder with four domains, and a terminal without colors."""

import pandas as pd
import pytest

from mixda.cli import run

from .four_domains import SHIFTS, adapt, make_domain, sources


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the files of four domains and a model, to be read only."""
    folder = tmp_path_factory.mktemp("home")
    for name in SHIFTS:
        make_domain(name).to_csv(folder / f"{name}.csv", index=False)
    everything = pd.concat([make_domain(name) for name in SHIFTS])
    everything.to_parquet(folder / "all.parquet")
    assert run(adapt(folder, *sources(folder), "--method", "wbt", out=folder / "m.mixda")) == 0
    return folder


@pytest.fixture
def plain(monkeypatch):
    for name, value in (("COLUMNS", "100"), ("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
