"""Conversion of fitted networks (linear layers, batch normalization, ReLU) to rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda.rules import Average, Chain, Linear, ReLU, Rule, Softmax

_NO_OPERATION = (nn.Flatten, nn.Dropout, nn.Identity)  # on rows, in evaluation mode


def network_rule(network: nn.Module) -> Rule:
    """Return the probabilities of a fitted network as a rule.

    A network is an encoder with a head or with several heads whose probabilities are averaged, or
    an average of such networks. Other networks raise an error.
    """
    if hasattr(network, "networks"):
        return _average([network_rule(part) for part in network.networks])
    if hasattr(network, "heads"):
        heads: list[Rule] = [
            Chain((layer_rule(h), Softmax())) for pair in network.heads for h in pair
        ]
        return Chain((layer_rule(network.encoder), _average(heads)))
    if hasattr(network, "head"):
        return Chain((layer_rule(network.encoder), layer_rule(network.head), Softmax()))
    raise MixdaError(
        f"A {type(network).__name__} cannot be stored in a model, which supports only a few kinds "
        "of formulas. Save the estimator with joblib, or use another method."
    )


def layer_rule(layer: nn.Module) -> Rule:
    """Return a layer in evaluation mode as a rule."""
    if isinstance(layer, nn.Linear):
        coef = _to_numpy(layer.weight).T
        bias = np.zeros(coef.shape[1]) if layer.bias is None else _to_numpy(layer.bias)
        return Linear(coef, bias)
    if isinstance(layer, nn.ReLU):
        return ReLU()
    if isinstance(layer, nn.Sequential):
        return Chain(tuple(_sequence(layer)))
    raise MixdaError(
        f"A layer {type(layer).__name__} cannot be stored in a model, which supports Linear, "
        "BatchNorm1d and ReLU. Save the estimator with joblib, or encode the data first."
    )


def _sequence(layers: Any) -> list[Rule]:
    """Return the steps of a sequence, with batch normalization merged into the linear layer."""
    steps: list[Rule] = []
    for layer in layers:
        before = steps[-1] if steps else None
        if isinstance(layer, nn.BatchNorm1d) and isinstance(before, Linear):
            gain, shift = _normalization(layer)
            steps[-1] = Linear(before.coef * gain, before.intercept * gain + shift)
        elif not isinstance(layer, _NO_OPERATION):
            steps.append(layer_rule(layer))
    return steps


def _normalization(layer: Any) -> tuple[Array, Array]:
    """Return gain and shift of batch normalization in evaluation mode, gain · x + shift."""
    gain = 1.0 / np.sqrt(_to_numpy(layer.running_var) + layer.eps)
    shift = -_to_numpy(layer.running_mean) * gain
    if layer.weight is not None:
        weight = _to_numpy(layer.weight)
        gain, shift = gain * weight, shift * weight + _to_numpy(layer.bias)
    return gain, shift


def _average(rules: list[Rule]) -> Rule:
    return Average(np.full(len(rules), 1.0 / len(rules)), tuple(rules))


def _to_numpy(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().cpu().double().numpy())
