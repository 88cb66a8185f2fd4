"""M3SDA: moment matching of all domains with a shared encoder and one classifier per source."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer

from mixda._core.validation import check_choice, check_number, check_positive_int
from mixda.deep._training import (
    DeepClassifier,
    DomainBatches,
    LabeledTensors,
    Network,
    Report,
    descend,
    encode_together,
)

_ENCODER_STEPS = 4  # per step of the classifiers, in the variant "beta"
_INITIAL_SPREAD = 0.1  # between the classifiers of a pair, in standard deviations of the weights


class M3SDA(DeepClassifier):
    r"""Moment matching between all pairs of domains, with one classifier per source (M3SDA).

    .. math:: \min_{G, C} \; \sum_i \mathcal{L}_{CE}(C_i \circ G; X_i, y_i) + \lambda \,
              MD^2(G(X_1), \dots, G(X_N), G(X_T))

    .. math:: MD^2 = \frac{1}{\sqrt{f}} \sum_{k=1}^{n} \Bigl[
              \frac{1}{N} \sum_i \| E[G(X_i)^k] - E[G(X_T)^k] \|_2 +
              \frac{2}{N(N-1)} \sum_{i<j} \| E[G(X_i)^k] - E[G(X_j)^k] \|_2 \Bigr]

    with elementwise powers and f the number of features of G. The probabilities of the target are
    averaged over the classifiers. The variant "beta" has a pair of classifiers per source and adds
    the steps of maximum classifier discrepancy: the pairs are trained to disagree on the target,
    then G is trained, for four steps, to make them agree.

    Parameters
    ----------
    variant : {"plain", "beta"}
        One classifier per source, or pairs with discrepancy steps.
    moment_weight : float
        λ, for distances divided by √f; [1]_ uses 5e-4 without that division.
    n_moments : int
        Number of raw moments to match; high moments grow quickly.
    epochs : int
        Epochs of adaptation; 0 keeps the source-only network. The network of the last epoch is used
        for prediction, as no target labels are available for early stopping.
    steps_per_epoch : int, optional
        By default the number of batches of the largest domain.
    batch_size : int
        Number of rows per domain and step.
    learning_rate, weight_decay : float
        Of Adam in the adaptation.
    pretrain_epochs, pretrain_learning_rate : int, float
        Source-only training before the adaptation, identical for all deep methods with the same
        seed.
    backbone : torch.nn.Module, optional
        Network from inputs to features; a copy of it is trained end to end. By default the inputs
        are already features, and G is a small network: d→256, or d→512→256 if d > 512, with
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

    Notes
    -----
    The published code centers the features, compares batches row by row, shares two classifiers
    between all sources and counts some pairs of domains twice. This is the formula above. All
    domains go through G in one batch, so that they share the statistics of batch normalization.

    References
    ----------
    .. [1] X. Peng et al., "Moment matching for multi-source domain adaptation", ICCV 2019.

    Examples
    --------
    >>> from mixda.deep import M3SDA
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = M3SDA(epochs=2, pretrain_epochs=2, device="cpu", random_state=0)
    >>> model.fit(task.X, task.y, sample_domain=task.sample_domain).predict(task.X_target).shape
    (1000,)
    """

    def __init__(
        self,
        variant: str = "plain",
        moment_weight: float = 1.0,
        n_moments: int = 2,
        epochs: int = 30,
        steps_per_epoch: int | None = None,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
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
        self.variant = variant
        self.moment_weight = moment_weight
        self.n_moments = n_moments
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
        check_choice(self.variant, "variant", ("plain", "beta"))
        check_number(self.moment_weight, "moment_weight")
        check_positive_int(self.n_moments, "n_moments")

    def _adapt(
        self, network: Network, sources: list[LabeledTensors], target: Tensor, report: Report
    ) -> nn.Module:
        model = HeadVote(network, len(sources), 2 if self.variant == "beta" else 1)
        G, C = (
            torch.optim.Adam(
                part.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
            )
            for part in (model.encoder, model.heads)
        )
        batches = DomainBatches(sources, target, self.batch_size)
        n_steps = self._n_steps(sources, target)
        for _ in range(self.epochs):
            model.train()
            total = 0.0
            for _ in range(n_steps):
                total += self._step(model, *batches.draw(), G, C)
            report(total / n_steps)
        return model

    def _step(
        self,
        model: HeadVote,
        inputs: list[Tensor],
        labels: list[Tensor],
        G: Optimizer,
        C: Optimizer,
    ) -> float:
        """Take the steps of a batch with the optimizers of the encoder and of the heads."""
        features = encode_together(model.encoder, inputs)
        loss = model.cross_entropy(features, labels)
        loss = loss + self.moment_weight * moment_distance(features, self.n_moments)
        C.zero_grad()
        value = descend(loss, G)
        C.step()
        if self.variant == "beta":
            with torch.no_grad():
                features = encode_together(model.encoder, inputs)
            descend(model.cross_entropy(features, labels) - model.discrepancy(features[-1]), C)
            for _ in range(_ENCODER_STEPS):
                features = encode_together(model.encoder, inputs)
                descend(model.discrepancy(features[-1]), G)
        return value


class HeadVote(nn.Module):  # type: ignore[misc]
    """An encoder and, per source, a classifier or a pair; their probabilities are averaged.

    All classifiers start from the source-only one. A pair starts slightly apart: two equal
    classifiers with equal gradients would never disagree.
    """

    def __init__(self, network: Network, n_sources: int, n_heads: int) -> None:
        super().__init__()
        self.encoder = network.encoder
        self.heads = nn.ModuleList(
            nn.ModuleList(copy.deepcopy(network.head) for _ in range(n_heads))
            for _ in range(n_sources)
        )
        if n_heads > 1:
            for head in (head for pair in self.heads for head in pair):
                noise = torch.randn(head.weight.shape).to(head.weight.device)
                head.weight.data += _INITIAL_SPREAD * head.weight.data.std() * noise

    def cross_entropy(self, features: Sequence[Tensor], labels: Sequence[Tensor]) -> Tensor:
        """Return the sum over sources, each with its own classifiers."""
        losses = [
            cross_entropy(head(z), codes)
            for z, codes, heads in zip(features, labels, self.heads, strict=False)
            for head in heads
        ]
        return torch.stack(losses).sum()

    def discrepancy(self, features: Tensor) -> Tensor:
        """Return the sum over sources of the mean absolute difference within its pair."""
        pairs = [[head(features).softmax(dim=1) for head in heads] for heads in self.heads]
        return torch.stack([(p - q).abs().mean() for p, q in pairs]).sum()

    def proba(self, inputs: Tensor) -> Tensor:
        """Return the average of the classifiers' probabilities."""
        features = self.encoder(inputs)
        votes = [head(features).softmax(dim=1) for heads in self.heads for head in heads]
        return torch.stack(votes).mean(dim=0)


def moment_distance(features: Sequence[Tensor], n_moments: int = 2) -> Tensor:
    """Return MD² of batches of features, sources first and the target last, divided by √f."""
    n_sources = len(features) - 1
    total = features[0].new_zeros(())
    for k in range(1, n_moments + 1):
        moments = [(z**k).mean(dim=0) for z in features]
        to_target = [torch.linalg.vector_norm(m - moments[-1]) for m in moments[:-1]]
        total = total + torch.stack(to_target).mean()
        if n_sources > 1:
            between = [torch.linalg.vector_norm(a - b) for a, b in combinations(moments[:-1], 2)]
            total = total + torch.stack(between).mean()
    return total / features[0].shape[1] ** 0.5
