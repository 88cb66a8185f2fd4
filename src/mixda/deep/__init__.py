"""Deep multi-source adaptation and backbones in PyTorch, the baselines of the paper."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "mixda.deep requires PyTorch, which is not installed. Install it with: "
        "pip install 'mixda[deep]'"
    ) from error

from mixda.deep.backbones import (
    BackboneEncoder,
    FCNBackbone,
    MLPBackbone,
    train_backbone,
)
from mixda.deep.comda import CoMDA
from mixda.deep.images import ImageBackbone
from mixda.deep.kd3a import KD3A
from mixda.deep.ltc import LtCMSDA
from mixda.deep.m3sda import M3SDA

__all__ = [
    "KD3A",
    "M3SDA",
    "BackboneEncoder",
    "CoMDA",
    "FCNBackbone",
    "ImageBackbone",
    "LtCMSDA",
    "MLPBackbone",
    "train_backbone",
]
