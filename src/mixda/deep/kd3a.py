"""KD3A: decentralized adaptation by knowledge distillation from the votes of the sources."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_choice, check_number
from mixda.deep._training import (
    Batches,
    DeepClassifier,
    DomainBatches,
    LabeledTensors,
    Network,
    Report,
    cosine_rate,
    cross_entropy_steps,
    descend,
    draw_beta,
    mixup,
    momentum_sgd,
    proba_of,
    soft_cross_entropy,
)

_MAX_SOURCES = 16  # exact Shapley values enumerate all subsets of the sources
_WEIGHT_MOMENTUM = 0.9  # of the domain weights, between epochs
_NO_VOTE_WEIGHT = 1e-3  # of a sample for which no source is confident


class KD3A(DeepClassifier):
    r"""Knowledge distillation from decentralized sources (KD3A).

    Every domain has its own network, an encoder E and a head. In each epoch the sources train on
    their labels; the target's network learns the consensus q of the sources on mixed target
    samples,

    .. math:: \min \; E_{x, x', t} \; w(x) \, \mathcal{L}_{CE}(t q(x) + (1 - t) q(x'),
              f_T(t x + (1 - t) x')), \qquad t \sim \mathrm{Beta}(2, 2);

    then the encoders (with their BatchNorm statistics) are averaged and given back to all, with
    weights :math:`\alpha_T = r / (N + 1)`, r the share of samples with a consensus, and
    :math:`\alpha_k \propto \phi_k` the sources' Shapley values,

    .. math:: \phi_k = \sum_{S \not\ni k} \frac{|S|! \, (N - |S| - 1)!}{N!}
              \bigl(V(S \cup k) - V(S)\bigr), \qquad
              V(S) = \sum_{x \in T} \max_c \sum_{k \in S} g_k(x) \, \max p_k(x) \,
              1[\arg\max p_k(x) = c],

    where :math:`g_k(x) = 1[\max p_k(x) > g]`, a gate that rises from 0.9 to 0.95.

    Parameters
    ----------
    consensus : {"soft", "hard"}
        Pseudo-label where confident sources vote for a class: the average of its supporters,
        weighted by their number, or the class itself with weight 1 (as in the published code).
        Where no source is confident: the average of all sources with weight 0.001, or none.
    gate : tuple of float
        Minimum confidence of a vote, in the first epoch and after the last.
    epochs : int
        Epochs of adaptation; 0 keeps the source-only network. The network of the last epoch is used
        for prediction, as no target labels are available for early stopping.
    steps_per_epoch : int, optional
        By default the number of batches of the largest domain.
    batch_size : int
        Number of rows per domain and step.
    learning_rate, weight_decay : float
        Of stochastic gradient descent with momentum 0.9 in the adaptation; the rate decays to one
        fiftieth along a cosine.
    pretrain_epochs, pretrain_learning_rate : int, float
        Source-only training before the adaptation, identical for all deep methods with the same
        seed.
    backbone : torch.nn.Module, optional
        Network from inputs to features; a copy of it is trained end to end. By default the inputs
        are already features, and E is a small network: d→256, or d→512→256 if d > 512, with
        batch normalization and ReLU.
    input_shape : tuple of int, optional
        Shape of an input, if the rows of `X` are flattened.
    encoder : {"lda", "mlp"}, transformer or None
        Feature space learned from the sources before the network; see `mixda.GMMWBT`.
    scale : {"sources", "domain", "auto", None}
        Standardization of `X`: over all sources, per domain (which BatchNorm cannot do), "sources"
        only if there is an encoder, or none.
    device : {"auto", "cpu", "cuda"}
    random_state : None, int or numpy generator
    verbose : bool
        Show progress on a terminal.

    Attributes
    ----------
    network_ : torch.nn.Module
        The classifier of the target; ``proba`` gives probabilities.
    source_network_ : torch.nn.Module
        The source-only network where the adaptation started.
    history_ : ndarray of shape (epochs,)
        Average loss of each epoch of the adaptation.
    encoder_ : DomainEncoder
    sources_ : ndarray of shape (N,)
    classes_ : ndarray of shape (nc,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only if `X` had column names.

    source_weights_ : ndarray of shape (N,)
        Weights of the sources' encoders in the last average, in the order of `sources_`.
    target_weight_ : float
        Weight of the target's encoder.

    Notes
    -----
    In [1]_ the networks start from ImageNet weights; here all start from the source-only network,
    as the other deep methods do, which a decentralized use would have to train federatedly.

    References
    ----------
    .. [1] H. Feng et al., "KD3A: unsupervised multi-source decentralized domain adaptation via
       knowledge distillation", ICML 2021.

    Examples
    --------
    >>> from mixda.deep import KD3A
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = KD3A(epochs=2, pretrain_epochs=2, device="cpu", random_state=0)
    >>> model.fit(task.X, task.y, sample_domain=task.sample_domain).predict(task.X_target).shape
    (1000,)
    """

    def __init__(
        self,
        consensus: str = "soft",
        gate: tuple[float, float] = (0.9, 0.95),
        epochs: int = 30,
        steps_per_epoch: int | None = None,
        batch_size: int = 50,
        learning_rate: float = 0.05,
        weight_decay: float = 5e-4,
        pretrain_epochs: int = 20,
        pretrain_learning_rate: float = 1e-3,
        backbone: Any = None,
        input_shape: tuple[int, ...] | None = None,
        encoder: Any = None,
        scale: str | None = "sources",
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.consensus = consensus
        self.gate = gate
        self.epochs = epochs
        self.steps_per_epoch = steps_per_epoch
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_learning_rate = pretrain_learning_rate
        self.backbone = backbone
        self.input_shape = input_shape
        self.encoder = encoder
        self.scale = scale
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.consensus, "consensus", ("soft", "hard"))
        if not isinstance(self.gate, (tuple, list)) or len(self.gate) != 2:
            raise MixdaError(f"gate must hold two numbers between 0 and 1, got {self.gate!r}.")
        for value in self.gate:
            check_number(value, "gate", most=1.0)

    def _adapt(
        self, network: Network, sources: list[LabeledTensors], target: Tensor, report: Report
    ) -> nn.Module:
        check_number_of_sources(len(sources))
        networks = [copy.deepcopy(network) for _ in range(len(sources) + 1)]
        optimizers = [
            momentum_sgd(each, self.learning_rate, self.weight_decay) for each in networks
        ]
        batches = DomainBatches(sources, target, self.batch_size)
        n_steps = self._n_steps(sources, target)
        weights: Array | None = None
        for epoch in range(self.epochs):
            cosine_rate(optimizers, self.learning_rate, epoch, self.epochs)
            for k, labeled in enumerate(batches.sources):
                cross_entropy_steps(networks[k], labeled, optimizers[k], n_steps)
            gate = self.gate[0] + (self.gate[1] - self.gate[0]) * epoch / self.epochs
            votes = torch.stack([proba_of(source, target) for source in networks[:-1]])
            consensus, certainty = knowledge_vote(votes, gate, self.consensus)
            loss = distill_steps(
                networks[-1], target, consensus, certainty, batches.target, optimizers[-1], n_steps
            )
            fresh = domain_weights(votes, gate)
            weights = (
                fresh
                if weights is None
                else _WEIGHT_MOMENTUM * weights + (1 - _WEIGHT_MOMENTUM) * fresh
            )
            average_encoders(networks, weights)
            report(loss)
        if weights is not None:
            self.source_weights_, self.target_weight_ = weights[:-1], float(weights[-1])
        return networks[-1]


def distill_steps(
    network: Network,
    inputs: Tensor,
    consensus: Tensor,
    certainty: Tensor,
    batches: Batches,
    optimizer: torch.optim.Optimizer,
    n_steps: int,
) -> float:
    """Train on the mixup of target batches with their consensus; return the average loss."""
    network.train()
    total = 0.0
    for _ in range(n_steps):
        rows = batches.draw_rows().to(inputs.device)
        mixed, labels = mixup(inputs[rows], consensus[rows], draw_beta(2.0))
        loss = (certainty[rows] * soft_cross_entropy(network(mixed), labels)).mean()
        total += descend(loss, optimizer)
    return total / n_steps


def knowledge_vote(proba: Tensor, gate: float, consensus: str = "soft") -> tuple[Tensor, Tensor]:
    """Return the consensus (n, nc) of predictions (N, n, nc) and its weights (n,)."""
    votes = gated_votes(proba, gate)
    mass = votes.sum(dim=0)
    passed = mass.sum(dim=1) > 0
    winner = mass.argmax(dim=1)
    if consensus == "hard":
        return nn.functional.one_hot(winner, proba.shape[2]).to(proba.dtype), passed.to(proba.dtype)
    supports = votes[:, torch.arange(len(winner), device=winner.device), winner] > 0  # (N, n)
    n_supporters = supports.sum(dim=0)
    supported = (proba * supports[:, :, None]).sum(dim=0) / n_supporters.clamp(min=1)[:, None]
    weights = torch.where(passed, n_supporters / len(proba), _NO_VOTE_WEIGHT)
    return torch.where(passed[:, None], supported, proba.mean(dim=0)), weights.to(proba.dtype)


def gated_votes(proba: Tensor, gate: float) -> Tensor:
    """Return the vote of each source for each sample, (N, n, nc): its confidence or 0."""
    confidence, predicted = proba.max(dim=2)
    votes = nn.functional.one_hot(predicted, proba.shape[2]) * confidence[:, :, None]
    return votes * (confidence > gate)[:, :, None]


def domain_weights(proba: Tensor, gate: float) -> Array:
    """Return the weights of the encoders of the sources and, last, of the target."""
    n_sources = len(proba)
    passed = float((proba.amax(dim=(0, 2)) > gate).double().mean())
    of_target = passed / (n_sources + 1)
    focus = shapley_values(coalition_values(proba, gate))
    share = focus / focus.sum() if focus.sum() > 0 else np.full(n_sources, 1 / n_sources)
    return np.append((1 - of_target) * share, of_target)


def coalition_values(proba: Tensor, gate: float) -> Array:
    """Return V(S) of all sets of sources, (2^N,): the winning vote, summed over the samples.

    Bit k of a position says whether source k is in the set.
    """
    votes = gated_votes(proba, gate).double()
    n_sources = len(votes)
    values = np.zeros(2**n_sources)
    for coalition in range(1, 2**n_sources):
        members = [k for k in range(n_sources) if coalition >> k & 1]
        values[coalition] = float(votes[members].sum(dim=0).amax(dim=1).sum())
    return values


def shapley_values(values: Array) -> Array:
    """Return the Shapley value of each player from the values of all coalitions, (2^N,)."""
    n = len(values).bit_length() - 1
    coalitions = np.arange(len(values))
    sizes = np.array([coalition.bit_count() for coalition in range(len(values))])
    orders = np.array([1 / (n * math.comb(n - 1, s)) if s < n else 0.0 for s in range(n + 1)])
    result = np.zeros(n)
    for k in range(n):
        without = coalitions[coalitions >> k & 1 == 0]
        gains = values[without | 1 << k] - values[without]
        result[k] = (orders[sizes[without]] * gains).sum()
    return result


def average_encoders(networks: list[Network], weights: Array) -> None:
    """Replace all encoders by their weighted average, including running statistics."""
    states = [network.encoder.state_dict() for network in networks]
    average = {
        name: sum(float(w) * state[name] for w, state in zip(weights, states, strict=True))
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in states[-1].items()
    }
    for network in networks:
        network.encoder.load_state_dict(average)


def check_number_of_sources(n_sources: int) -> None:
    """Raise an error if exact Shapley values are not feasible."""
    if n_sources > _MAX_SOURCES:
        raise MixdaError(
            f"KD3A enumerates all subsets of the sources and supports at most {_MAX_SOURCES} "
            f"sources, got {n_sources}. Merge some of them."
        )
