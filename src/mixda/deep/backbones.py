"""Backbones from raw inputs to features, and `BackboneEncoder`, which trains one on the sources.

`BackboneEncoder` is a scikit-learn transformer and can be the ``encoder`` of any estimator.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import (
    check_choice,
    check_number,
    check_positive_int,
    check_random_state,
    is_word,
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
from mixda.deep.images import ImageBackbone as ImageBackbone  # its former module
from mixda.rules import Rule


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
    """Train a backbone on labeled samples of the sources and return the fitted transformer.

    Parameters
    ----------
    X : array-like of shape (n, d) or (n, channels, steps) or (n, ...)
        Samples, already standardized.
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
    r"""Features of a network that was trained to classify the sources.

    .. math:: \min_{\phi, W, b} \; \frac{1}{n} \sum_i
              \mathcal{L}_{CE}\bigl(W \phi(x_i) + b, \, y_i\bigr), \qquad x \mapsto \phi(x)

    Parameters
    ----------
    architecture : {"mlp", "fcn"} or torch.nn.Module
        `MLPBackbone` (256 features), `FCNBackbone` (128 features, for multivariate time series),
        or any network from inputs to rows of features. A copy is trained, starting from its
        weights.
    input_shape : tuple of int, optional
        Shape of an input if the rows of `X` are flattened, ``(channels, steps)`` for "fcn". By
        default the shape of ``X[0]``.
    epochs : int
        Passes over the samples; 0 keeps the initial weights.
    batch_size : int
    learning_rate, weight_decay : float
        Of Adam. For TEP, `eddardd/tep-domain-adaptation`, code of the same authors for another
        paper, uses 70 epochs, batches of 256 and a rate of 1e-4.
    device : {"auto", "cpu", "cuda"}
    random_state : None, int or numpy generator
    verbose : bool
        Show progress on a terminal.

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
        """Train the backbone with a linear head to classify `y`."""
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
        """Copy of the trained backbone, for instance to use as ``backbone``."""
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
        return is_word(self.architecture, "mlp")

    def _make_backbone(self) -> nn.Module:
        if not isinstance(self.architecture, str):
            return copy_module(self.architecture, "architecture")
        if self.architecture == "mlp":
            return MLPBackbone(math.prod(self._shape))
        if len(self._shape) != 2 or self._shape[1] < 2:
            raise MixdaError(
                "architecture='fcn' requires inputs of shape (channels, steps) with at least two "
                f"steps, got {self._shape}. Pass input_shape=(channels, steps)."
            )
        return FCNBackbone(self._shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class MLPBackbone(nn.Sequential):  # type: ignore[misc]
    """A fully connected network, d→1024→512→256, with ReLU.

    The paper says that its backbone for CWRU is a multi-layer perceptron with 256 features. The
    widths are those of the authors' earlier experiments (in `Stevan-LS/Online-DaDiL`).

    Parameters
    ----------
    n_features : int
        d; 2048 in those experiments.

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
    """A fully convolutional network: three convolutions and an average over time.

    Channels c→128→256→128 with kernels 9, 5, 3, each with instance normalization and ReLU. The
    paper says that its backbone for TEP is a CNN with 128 features. The architecture is that of
    `eddardd/tep-domain-adaptation`, code of the same authors for another paper. Instance
    normalization removes the level and the amplitude of each series.

    Parameters
    ----------
    n_channels : int
        c, the number of variables; 34 for TEP.

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


def _flattened(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Return samples as rows, and the shape of a sample if it was not a row."""
    shape = getattr(X, "shape", None)
    if shape is None or len(shape) <= 2:
        return X, None
    return np.asarray(X).reshape(len(X), -1), tuple(shape[1:])
