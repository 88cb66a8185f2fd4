"""Deep multi-source adaptation and backbones, in PyTorch: what the paper compares with."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "the deep estimators and backbones of mixda need PyTorch, which is not installed; "
        "install it with: pip install 'mixda[deep]'"
    ) from error

from mixda.deep.m3sda import M3SDA

__all__ = ["M3SDA"]
