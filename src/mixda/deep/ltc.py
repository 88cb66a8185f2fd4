"""LtC-MSDA: classification on a graph of the prototypes of each class and domain."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from mixda._core.errors import MixdaError
from mixda._core.validation import check_number
from mixda.deep._training import (
    DeepClassifier,
    DomainBatches,
    LabeledTensors,
    Network,
    Report,
    descend,
    encode_together,
    features_of,
)

_PROTOTYPE_MOMENTUM = 0.7  # when the class is in the batch
_MAX_ENTROPY = 0.5  # nats; target predictions below it are pseudo-labels
_MEDIAN_SIMILARITY = 0.1  # between prototypes, if sigma="median"


class LtCMSDA(DeepClassifier):
    r"""Learning to combine: knowledge aggregation on a graph of prototypes (LtC-MSDA).

    Each of the M = N + 1 domains has one prototype per class, a running mean of encoded samples
    (of the target, of those with a confident prediction). Similarities are Gaussian,

    .. math:: A(a, b) = \exp\Bigl(-\frac{\|a - b\|^2}{2 f \sigma^2}\Bigr), \qquad
              \tilde A = \begin{pmatrix} A(c, c) & 0 \\ A(x, c) & I \end{pmatrix}, \qquad
              p = \mathrm{softmax}(\tilde A \, \mathrm{ReLU}(\tilde A [c; x] W_1) W_2)

    and encoder and graph network minimize

    .. math:: \mathcal{L}_{CE}(\text{prototypes}) + \mathcal{L}_{CE}(\text{sources})
              + \frac{1}{n_T n_c} \sum_{x \in T} H(p(x))
              + \lambda_g \mathcal{L}_{global} + \lambda_l \mathcal{L}_{local}

    .. math:: \mathcal{L}_{global} = \frac{2}{3 M (M - 1)} \sum_{i \neq j}
              MSE(A_{ii}, A_{jj}) + MSE(A_{ij}, A_{ii}) + MSE(A_{ij}, A_{jj})

    over the blocks of A between domains, and the local term pulls the class means of a batch to
    their prototypes.

    Parameters
    ----------
    sigma : "median" or float
        Width of the similarity. "median" sets it at each epoch such that the median similarity of
        the prototypes is 0.1. With 0.005, as in the published code, all similarities vanish for
        features of unit scale, and the graph has no effect.
    global_weight, local_weight : float
        λ of the global and the local alignment.
    warmup_epochs : int
        Epochs on the sources only (the first two terms), at most half of `epochs`, before target
        predictions are used as pseudo-labels.
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

    Notes
    -----
    In the published graph, prototypes also aggregate the samples of the batch, so a prediction
    depends on its batch mates. Here that block is zero, in training as in predictions. There the
    layers of the graph start at random; here from the source-only network (see `PrototypeGraph`),
    like the other methods' networks. Stored prototypes carry no gradient.

    References
    ----------
    .. [1] H. Wang et al., "Learning to combine: knowledge aggregation for multi-source domain
       adaptation", ECCV 2020.

    Examples
    --------
    >>> from mixda.deep import LtCMSDA
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = LtCMSDA(epochs=2, pretrain_epochs=2, device="cpu", random_state=0)
    >>> model.fit(task.X, task.y, sample_domain=task.sample_domain).predict(task.X_target).shape
    (1000,)
    """

    def __init__(
        self,
        sigma: Any = "median",
        global_weight: float = 20.0,
        local_weight: float = 0.01,
        warmup_epochs: int = 5,
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
        self.sigma = sigma
        self.global_weight = global_weight
        self.local_weight = local_weight
        self.warmup_epochs = warmup_epochs
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
        check_number(self.global_weight, "global_weight")
        check_number(self.local_weight, "local_weight")
        check_number(self.warmup_epochs, "warmup_epochs")
        if isinstance(self.sigma, str) and self.sigma != "median":
            raise MixdaError(f"sigma must be 'median' or a positive number, got {self.sigma!r}.")
        if not isinstance(self.sigma, str):
            check_number(self.sigma, "sigma", above=True)

    def _adapt(
        self, network: Network, sources: list[LabeledTensors], target: Tensor, report: Report
    ) -> nn.Module:
        n_classes = len(self.classes_)
        prototypes = first_prototypes(network, sources, target, n_classes)
        model = PrototypeGraph(network, prototypes, n_classes).to(target.device)
        optimizer = torch.optim.Adam(
            model.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        batches = DomainBatches(sources, target, self.batch_size)
        n_steps = self._n_steps(sources, target)
        for epoch in range(self.epochs):
            model.set_sigma(self.sigma)
            model.train()
            warming = epoch < min(self.warmup_epochs, self.epochs // 2)
            total = 0.0
            for _ in range(n_steps):
                total += descend(self._loss(model, *batches.draw(), warming), optimizer)
            report(total / n_steps)
        return model

    def _loss(
        self, model: PrototypeGraph, inputs: list[Tensor], labels: list[Tensor], warming: bool
    ) -> Tensor:
        """Return the loss of a step and update the prototypes."""
        *sources, target = encode_together(model.encoder, inputs)
        nc = model.n_classes
        features = torch.cat(sources)
        nodes = torch.cat([i * nc + codes for i, codes in enumerate(labels)])
        if not warming:
            rows, codes = model.confident(target)
            features = torch.cat([features, target[rows]])
            nodes = torch.cat([nodes, len(labels) * nc + codes])
        prototypes, local = moved_prototypes(model.prototypes, features, nodes)
        model.prototypes.copy_(prototypes.detach())
        of_prototypes, of_queries = model.logits(prototypes, torch.cat([*sources, target]))
        n_target = len(target)
        classes = torch.arange(nc, device=target.device).repeat(len(labels) + 1)
        loss = cross_entropy(of_prototypes, classes)
        loss = loss + cross_entropy(of_queries[:-n_target], torch.cat(labels))
        if warming:
            return loss
        log_p = of_queries[-n_target:].log_softmax(dim=1)
        adjacency = model.similarity(prototypes, prototypes)
        return (
            loss
            - (log_p.exp() * log_p).mean()
            + self.global_weight * global_alignment(adjacency, nc)
            + self.local_weight * local
        )


class PrototypeGraph(nn.Module):  # type: ignore[misc]
    """An encoder and a graph network of two layers over prototypes and samples.

    It starts as the identity and the source-only head: the source-only network, but on features
    that are already gathered over the graph.
    """

    prototypes: Tensor
    sigma: Tensor

    def __init__(self, network: Network, prototypes: Tensor, n_classes: int) -> None:
        super().__init__()
        self.encoder = network.encoder
        self.n_classes = n_classes
        self.register_buffer("prototypes", prototypes)
        self.register_buffer("sigma", prototypes.new_ones(()))
        width = network.n_features
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, n_classes)
        self.dropout = nn.Dropout(0.5)
        nn.init.eye_(self.first.weight)
        nn.init.zeros_(self.first.bias)
        self.second.load_state_dict(network.head.state_dict())

    def set_sigma(self, sigma: Any) -> None:
        """Set the width of the similarity, from the median distance unless it is given."""
        if sigma == "median":
            self.sigma.copy_(median_sigma(self.prototypes))
        else:
            self.sigma.fill_(float(sigma))

    def similarity(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the similarities of rows of `a` and rows of `b`."""
        return torch.exp(-mean_squares(a, b) / (2 * self.sigma**2))

    def logits(self, prototypes: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of prototypes and samples; samples are not connected in the graph."""
        A, S = self.similarity(prototypes, prototypes), self.similarity(queries, prototypes)
        hidden = self.dropout(torch.relu(self.first(A @ prototypes)))
        hidden_queries = self.dropout(torch.relu(self.first(S @ prototypes + queries)))
        return self.second(A @ hidden), self.second(S @ hidden + hidden_queries)

    def confident(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows whose prediction has a low entropy, and their predicted classes."""
        with torch.no_grad():
            self.dropout.eval()
            proba = self.logits(self.prototypes, features)[1].softmax(dim=1)
            self.dropout.train()
        return confident_rows(proba)

    def proba(self, inputs: Tensor) -> Tensor:
        """Return the probabilities of the classes."""
        return self.logits(self.prototypes, self.encoder(inputs))[1].softmax(dim=1)


def first_prototypes(
    network: Network, sources: list[LabeledTensors], target: Tensor, n_classes: int
) -> Tensor:
    """Return the class means of each domain, target last, under the source-only network.

    A class that a domain lacks (or of which no target sample is predicted with confidence) starts
    at its mean over the sources.
    """
    features = [features_of(network, x) for x, _ in sources]
    labels = [codes for _, codes in sources]
    overall, _ = class_means(torch.cat(features), torch.cat(labels), n_classes)
    of_target = features_of(network, target)
    rows, codes = confident_rows(network.head(of_target).softmax(dim=1).detach())
    prototypes = []
    for z, c in zip([*features, of_target[rows]], [*labels, codes], strict=True):
        means, counts = class_means(z, c, n_classes)
        prototypes.append(torch.where(counts[:, None] > 0, means, overall))
    return torch.cat(prototypes)


def moved_prototypes(prototypes: Tensor, features: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Return updated prototypes and the local loss; gradients flow only through the batch."""
    means, counts = class_means(features, nodes, len(prototypes))
    present = counts[:, None] > 0
    moved = torch.where(
        present, _PROTOTYPE_MOMENTUM * prototypes + (1 - _PROTOTYPE_MOMENTUM) * means, prototypes
    )
    local = torch.where(present, (means - prototypes) ** 2, 0.0).mean(dim=1).sum() / len(nodes)
    return moved, local


def class_means(features: Tensor, nodes: Tensor, n_nodes: int) -> tuple[Tensor, Tensor]:
    """Return the mean of the rows of each node (zero without rows) and their number."""
    counts = torch.bincount(nodes, minlength=n_nodes).to(features.dtype)
    sums = features.new_zeros(n_nodes, features.shape[1]).index_add(0, nodes, features)
    return sums / counts.clamp(min=1)[:, None], counts


def confident_rows(proba: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows with an entropy below half a nat and their most probable classes."""
    rows = torch.nonzero(torch.special.entr(proba).sum(dim=1) < _MAX_ENTROPY)[:, 0]
    return rows, proba[rows].argmax(dim=1)


def global_alignment(adjacency: Tensor, n_classes: int) -> Tensor:
    """Return L_global, the difference of class relations between domains."""
    M = len(adjacency) // n_classes
    blocks = adjacency.reshape(M, n_classes, M, n_classes).transpose(1, 2)
    terms = [
        mse_loss(blocks[i, i], blocks[j, j])
        + mse_loss(blocks[i, j], blocks[i, i])
        + mse_loss(blocks[i, j], blocks[j, j])
        for i in range(M)
        for j in range(M)
        if i != j
    ]
    return torch.stack(terms).sum() / (3 * M * (M - 1) / 2)


def median_sigma(prototypes: Tensor) -> Tensor:
    """Return the width for which the median similarity between prototypes is 0.1."""
    rows, columns = torch.triu_indices(len(prototypes), len(prototypes), offset=1)
    median = mean_squares(prototypes, prototypes)[rows, columns].median()
    return torch.sqrt(median.clamp(min=1e-12) / (-2 * math.log(_MEDIAN_SIMILARITY)))


def mean_squares(a: Tensor, b: Tensor) -> Tensor:
    """Return the mean over features of squared differences, for all pairs of rows."""
    squares = (a**2).sum(dim=1)[:, None] + (b**2).sum(dim=1) - 2 * a @ b.T
    return squares.clamp(min=0) / a.shape[1]
