"""All deep methods, with few epochs."""

import pytest

pytest.importorskip("torch")

from mixda.deep import KD3A, M3SDA, CoMDA, LtCMSDA

METHODS = {
    "M3SDA": M3SDA,
    "M3SDA beta": lambda **options: M3SDA(variant="beta", **options),
    "LtCMSDA": LtCMSDA,
    "KD3A": KD3A,
    "CoMDA": CoMDA,
}
every = pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)


def quick(make, **options):
    return make(**{"epochs": 3, "pretrain_epochs": 3, "random_state": 0, **options})
