"""One thread, and a task whose target is turned further than its sources."""

import pytest

from .turned_domains import rotated


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def task():
    """Four classes on a circle; the target is turned and moved further than the sources."""
    return rotated({0: 0, 1: 15, 2: -15, -4: 35})
