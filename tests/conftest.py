"""How hypothesis draws its examples: the same ones in every run, unless asked to search."""

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)  # pytest --hypothesis-profile=search
settings.load_profile("same")


@pytest.fixture
def dispatch(monkeypatch):
    """Turn scikit-learn's switch on; the real one also wants SCIPY_ARRAY_API=1 before imports."""
    monkeypatch.setattr("sklearn.get_config", lambda: {"array_api_dispatch": True})
