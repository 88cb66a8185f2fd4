"""Devices and precisions of the tests with torch tensors, which are skipped without torch."""

import pytest

torch = pytest.importorskip("torch")

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device"
))]  # fmt: skip
PRECISIONS = ["float64", "float32"]


def tensor(array, device="cpu", precision="float64"):
    return torch.tensor(array, dtype=getattr(torch, precision), device=device)
