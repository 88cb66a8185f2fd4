"""Base class and training utilities of the deep methods.

A method subclasses `DeepClassifier` and implements `_adapt`, which starts from the source-only
network. Random numbers come from a fork of torch's generators, whose state is restored.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.typing import Array, Source
from mixda._core.validation import check_number, check_positive_int
from mixda.deep._export import network_rule
from mixda.estimators import MultiSourceClassifier
from mixda.rules import Rule

LabeledTensors = tuple[Tensor, Tensor]
Report = Callable[[float], None]

_FEATURE_WIDTH, _WIDE_INPUT, _WIDE_LAYER = 256, 512, 512
_PRETRAIN_BATCH = 128  # equal for all methods, so that a seed gives one source-only network
_PREDICT_BATCH = 1024
_FINAL_RATE = 0.02  # of the cosine schedule, relative to the initial rate


class PortableModules:
    """Mixin that pickles networks on the CPU, so that models load without a GPU."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[misc]
        return {
            name: copy.deepcopy(value).cpu() if isinstance(value, nn.Module) else value
            for name, value in state.items()
        }


class DeepClassifier(PortableModules, MultiSourceClassifier):
    """Base class of the deep methods: trains the source-only network, then adapts it.

    A subclass implements ``_adapt(network, sources, target, report)``. It gets a copy of the
    source-only `Network`, a list of ``(inputs, codes)`` and the inputs of the target, all on the
    device. It calls ``report(loss)`` after each epoch and returns a module with a method ``proba``
    (class probabilities of a batch of inputs).
    """

    epochs: int
    steps_per_epoch: int | None
    batch_size: int
    learning_rate: float
    weight_decay: float
    pretrain_epochs: int
    pretrain_learning_rate: float
    backbone: nn.Module | None
    input_shape: tuple[int, ...] | None
    device: str
    verbose: bool

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        self._check_parameters()
        device = resolve_device(self.device)
        seed = int(rng.integers(2**31))
        shape = check_input_shape(self.input_shape, sources[0][0].shape[1])
        with isolated_generators(seed, device):
            tensors = [
                (to_inputs(Z, shape, device), torch.tensor(codes, device=device))
                for Z, codes in sources
            ]
            encoder = self._make_encoder(tensors[0][0])
            network = Network(encoder, tensors[0][0], len(self.classes_)).to(device)
            name = type(self).__name__
            with reporting(self.pretrain_epochs, f"{name}: sources", self.verbose) as report:
                train_on_sources(
                    network,
                    pooled(tensors),
                    epochs=self.pretrain_epochs,
                    batch_size=_PRETRAIN_BATCH,
                    learning_rate=self.pretrain_learning_rate,
                    weight_decay=self.weight_decay,
                    report=report,
                )
            adapted: nn.Module = network
            losses: list[float] = []
            if target is not None and self.epochs > 0:
                start, unlabeled = copy.deepcopy(network), to_inputs(target, shape, device)
                with reporting(self.epochs, name, self.verbose, losses) as report:
                    adapted = self._adapt(start, tensors, unlabeled, report)
        self.history_ = np.array(losses)
        self.source_network_ = self._finished(network)
        self.network_ = self._finished(adapted)

    def _check_parameters(self) -> None:
        check_positive_int(self.batch_size, "batch_size")
        check_positive_int(self.pretrain_epochs, "pretrain_epochs")
        if self.epochs != 0:
            check_positive_int(self.epochs, "epochs")
        if self.steps_per_epoch is not None:
            check_positive_int(self.steps_per_epoch, "steps_per_epoch")
        check_number(self.learning_rate, "learning_rate", above=True)
        check_number(self.pretrain_learning_rate, "pretrain_learning_rate", above=True)
        check_number(self.weight_decay, "weight_decay")

    def _make_encoder(self, inputs: Tensor) -> nn.Module:
        if self.backbone is not None:
            return copy_module(self.backbone, "backbone")
        return feature_encoder(math.prod(inputs.shape[1:]))

    def _adapt(
        self, network: Network, sources: list[LabeledTensors], target: Tensor, report: Report
    ) -> nn.Module:
        raise NotImplementedError

    def _n_steps(self, sources: Sequence[LabeledTensors], target: Tensor) -> int:
        """Return the number of steps per epoch, by default one pass over the largest domain."""
        largest = max(len(x) for x in (*(x for x, _ in sources), target))
        return self.steps_per_epoch or math.ceil(largest / self.batch_size)

    def _finished(self, network: nn.Module) -> nn.Module:
        """Freeze for prediction, in float64 for small networks so that batches do not matter."""
        dtype = torch.float64 if self.backbone is None else torch.float32
        return copy.deepcopy(network).to(dtype).eval().requires_grad_(False)

    def _predict_encoded(self, Z: Array) -> Array:
        return self._predict_with(self.network_, Z)

    def _rule(self) -> Rule:
        return network_rule(self.network_)

    def _predict_with(self, network: nn.Module, Z: Array) -> Array:
        device = resolve_device(self.device)
        shape = check_input_shape(self.input_shape, Z.shape[1])
        return in_batches(network.to(device).proba, Z, shape, device, self.backbone is None)


class Network(nn.Module):  # type: ignore[misc]
    """An encoder and a linear head; the width between them is determined from one input."""

    def __init__(self, encoder: nn.Module, inputs: Tensor, n_classes: int) -> None:
        super().__init__()
        self.encoder = encoder.to(inputs.device)
        self.n_features = _output_width(self.encoder, inputs[:1])
        self.head = nn.Linear(self.n_features, n_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of the classes."""
        return self.head(self.encoder(inputs))

    def proba(self, inputs: Tensor) -> Tensor:
        """Return the probabilities of the classes."""
        return self(inputs).softmax(dim=1)


class Batches:
    """Infinite shuffled batches of a domain, all of the same size; small domains are repeated."""

    def __init__(self, *tensors: Tensor, batch_size: int) -> None:
        self._tensors = tensors
        self._n = len(tensors[0])
        self.size = min(batch_size, max(2, self._n))  # batch normalization needs two rows
        self._rows = torch.empty(0, dtype=torch.long)

    def draw_rows(self) -> Tensor:
        """Return the row indices of the next batch."""
        while len(self._rows) < self.size:
            self._rows = torch.cat([self._rows, torch.randperm(self._n)])
        rows, self._rows = self._rows[: self.size], self._rows[self.size :]
        return rows

    def draw(self) -> tuple[Tensor, ...]:
        """Return the next batch."""
        rows = self.draw_rows()
        return tuple(tensor[rows.to(tensor.device)] for tensor in self._tensors)


class DomainBatches:
    """Batches of all sources and of the target."""

    def __init__(self, sources: Sequence[LabeledTensors], target: Tensor, batch_size: int) -> None:
        self.sources = [Batches(x, codes, batch_size=batch_size) for x, codes in sources]
        self.target = Batches(target, batch_size=batch_size)

    def draw(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the inputs of the next batches, target last, and the codes of the sources."""
        drawn = [batches.draw() for batches in self.sources]
        return [x for x, _ in drawn] + list(self.target.draw()), [codes for _, codes in drawn]


def feature_encoder(n_features: int) -> nn.Module:
    """Return the encoder of features: d→256, or d→512→256 if d > 512, with BN and ReLU."""
    between = [_WIDE_LAYER] if n_features > _WIDE_INPUT else []
    widths = [n_features, *between, _FEATURE_WIDTH]
    layers: list[nn.Module] = [nn.Flatten()]
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out), nn.ReLU()]
    return nn.Sequential(*layers)


def train_on_sources(
    network: nn.Module,
    labeled: LabeledTensors,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float,
    report: Report,
) -> None:
    """Minimize the cross-entropy of labeled inputs with Adam, in place."""
    batches = Batches(*labeled, batch_size=batch_size)
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    n_steps = math.ceil(len(labeled[0]) / batch_size)
    for _ in range(epochs):
        report(cross_entropy_steps(network, batches, optimizer, n_steps))


def cross_entropy_steps(
    network: nn.Module, batches: Batches, optimizer: torch.optim.Optimizer, n_steps: int
) -> float:
    """Minimize the cross-entropy of labeled batches; return the average loss."""
    network.train()
    total = 0.0
    for _ in range(n_steps):
        inputs, codes = batches.draw()
        total += descend(cross_entropy(network(inputs), codes), optimizer)
    return total / n_steps


def descend(loss: Tensor, optimizer: torch.optim.Optimizer) -> float:
    """Take an optimizer step; return the loss."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def encode_together(encoder: nn.Module, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Encode the batches of all domains in one pass, so that they share batch statistics.

    Otherwise each domain would be normalized by its own moments in training, but by running
    averages over all domains in prediction.
    """
    features = encoder(torch.cat(list(inputs)))
    return tuple(torch.split(features, [len(batch) for batch in inputs]))


def momentum_sgd(network: nn.Module, learning_rate: float, weight_decay: float) -> Any:
    """Return stochastic gradient descent with momentum 0.9."""
    return torch.optim.SGD(
        network.parameters(), lr=learning_rate, momentum=0.9, weight_decay=weight_decay
    )


def cosine_rate(
    optimizers: Sequence[torch.optim.Optimizer], learning_rate: float, epoch: int, epochs: int
) -> None:
    """Set the learning rate of an epoch, which decays to one fiftieth along half a cosine."""
    share = 0.5 * (1 + math.cos(math.pi * epoch / max(epochs - 1, 1)))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * (_FINAL_RATE + (1 - _FINAL_RATE) * share)


def mixup(inputs: Tensor, targets: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Mix each row and its target with those of another row, with weights share and 1 - share."""
    order = torch.randperm(len(inputs), device="cpu").to(inputs.device)
    mixed_inputs = share * inputs + (1 - share) * inputs[order]
    return mixed_inputs, share * targets + (1 - share) * targets[order]


def draw_beta(parameter: float) -> float:
    """Draw from the symmetric Beta distribution."""
    return float(torch.distributions.Beta(parameter, parameter).sample())


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each row against a distribution over the classes."""
    return -(targets * logits.log_softmax(dim=1)).sum(dim=1)


def proba_of(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return the probabilities of all inputs in evaluation mode, without gradients."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network.proba(batch) for batch in inputs.split(_PREDICT_BATCH)])


def features_of(network: Network, inputs: Tensor) -> Tensor:
    """Return the features of all inputs in evaluation mode, without gradients."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network.encoder(batch) for batch in inputs.split(_PREDICT_BATCH)])


def pooled(labeled: Sequence[LabeledTensors]) -> LabeledTensors:
    """Concatenate the sources."""
    return torch.cat([x for x, _ in labeled]), torch.cat([codes for _, codes in labeled])


def in_batches(
    function: Callable[[Tensor], Tensor],
    Z: Array,
    shape: tuple[int, ...],
    device: torch.device,
    double: bool,
) -> Array:
    """Apply a function of input tensors to rows in batches, without gradients."""
    dtype = torch.float64 if double else torch.float32
    with torch.no_grad():
        parts = [
            function(to_inputs(Z[i : i + _PREDICT_BATCH], shape, device, dtype)).cpu()
            for i in range(0, len(Z), _PREDICT_BATCH)
        ]
    result: Array = torch.cat(parts).double().numpy()
    return result


def to_inputs(
    Z: Array, shape: tuple[int, ...], device: torch.device, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Return rows as a tensor of inputs of the given shape."""
    return torch.tensor(Z, dtype=dtype).reshape(len(Z), *shape).to(device)


def copy_module(module: Any, name: str) -> nn.Module:
    """Return a copy of a network after checking its type."""
    if not isinstance(module, nn.Module):
        raise MixdaError(
            f"{name} must be a torch.nn.Module that maps inputs to features, got {module!r}."
        )
    return copy.deepcopy(module)


def check_input_shape(shape: Any, n_features: int) -> tuple[int, ...]:
    """Return the shape of an input after checking its product against the features."""
    if shape is None:
        return (n_features,)
    if not isinstance(shape, (tuple, list)) or math.prod(shape) != n_features:
        raise MixdaError(
            f"input_shape must be a tuple of integers whose product is the number of features "
            f"({n_features}), got {shape!r}."
        )
    return tuple(int(size) for size in shape)


def resolve_device(device: Any) -> torch.device:
    """Return the torch device after checking that it is available."""
    name = str(device)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cpu":
        return torch.device("cpu")
    if name == "cuda" or (name.startswith("cuda:") and name[5:].isdigit()):
        if not torch.cuda.is_available():
            raise MixdaError(
                f"device={name!r} is not available: torch finds no CUDA device. Use device='auto' "
                "or 'cpu'."
            )
        return torch.device(name)
    raise MixdaError(f"device must be one of 'auto', 'cpu', 'cuda', got {device!r}.")


@contextmanager
def isolated_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's generators and restore their state afterwards."""
    on_gpu = device.type == "cuda"
    gpu = torch.cuda.current_device() if on_gpu and device.index is None else device.index
    with torch.random.fork_rng(devices=[gpu] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def reporting(
    epochs: int, what: str, verbose: bool, losses: list[float] | None = None
) -> Iterator[Report]:
    """Yield a function that records the loss of an epoch and shows progress."""
    seen: list[float] = [] if losses is None else losses
    with Progress(epochs, what, verbose) as progress:

        def report(loss: float) -> None:
            seen.append(loss)
            progress.update(len(seen), f"loss {loss:.4f}")

        yield report


def _output_width(encoder: nn.Module, one_input: Tensor) -> int:
    encoder.eval()
    with torch.no_grad():
        features = encoder(one_input)
    if features.ndim != 2 or len(features) != 1:
        raise MixdaError(
            f"backbone must return one row of features per input, got an output of shape "
            f"{tuple(features.shape)} for an input of shape {tuple(one_input.shape)}."
        )
    return int(features.shape[1])
