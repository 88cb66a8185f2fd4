"""Co-MDA: co-teaching of two networks on the target with the outputs of black-box sources."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from mixda._core.validation import check_number
from mixda.deep._training import (
    Batches,
    DeepClassifier,
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

_OUTPUT_MOMENTUM = 0.6  # of the outputs of the sources, between epochs
_SHARPNESS = 5.0  # of the weights of the sources
_RAMP_EPOCHS = 10  # until `forget_rate` is reached
_MIXUP = 0.3
_COUNT_FLOOR = 1e-3


class CoMDA(DeepClassifier):
    r"""Co-teaching on the target from black-box sources (Co-MDA).

    In epoch e of E, each source trains its network; only outputs :math:`p_k` on the target leave
    it, averaged over epochs, :math:`Z_k \leftarrow 0.6 Z_k + 0.4 p_k`,
    :math:`z_k = Z_k / (1 - 0.6^{e+1})`, and weighted by their separability,

    .. math:: w = \mathrm{softmax}(5 \, o), \qquad o_k = \frac{1}{n} \sum_c
              n_c (\mu_c^+ - \mu_c)^2 + (n - n_c) (\mu_c^- - \mu_c)^2,

    the means of :math:`z_{k,c}` over the samples predicted as c, over the others, and over all.
    Two networks learn in turn, each from the samples that the other finds easy,

    .. math:: \tilde y = \arg\max \bigl[ (1 - a) \sum_k w_k z_k(x) + a \, p(x) \bigr], \qquad
              a = \max(0, (2e - E) / E),

    the :math:`\lceil (1 - (1 - a) \tau_e) n \rceil` of a batch with the least cross-entropy of
    the peer against :math:`\tilde y`, mixed with each other,
    :math:`t = \max(t_0, 1 - t_0)`, :math:`t_0 \sim \mathrm{Beta}(0.3, 0.3)`. The probabilities of
    the target are the average of the two networks'.

    Parameters
    ----------
    forget_rate : float
        Fraction of a batch that is discarded, reached after ten epochs.
    warmup_epochs : int
        Epochs that train only the sources, at most half of `epochs`.
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
        Weights w of the sources in the last epoch, in the order of `sources_`.

    Notes
    -----
    The published code never steps the optimizer of the target's classifiers and feeds the
    corrected average back into itself; here whole networks learn and Z is the plain average.
    Separability rewards confidence, right or wrong. All networks start from the source-only one,
    as in the other deep methods; the two differ by their batches and mixtures.

    References
    ----------
    .. [1] X. Liu et al., "Co-MDA: federated multi-source domain adaptation on black-box models",
       IEEE Transactions on Circuits and Systems for Video Technology, 2023.

    Examples
    --------
    >>> from mixda.deep import CoMDA
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = CoMDA(epochs=2, pretrain_epochs=2, device="cpu", random_state=0)
    >>> model.fit(task.X, task.y, sample_domain=task.sample_domain).predict(task.X_target).shape
    (1000,)
    """

    def __init__(
        self,
        forget_rate: float = 0.06,
        warmup_epochs: int = 5,
        epochs: int = 30,
        steps_per_epoch: int | None = None,
        batch_size: int = 32,
        learning_rate: float = 5e-3,
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
        self.forget_rate = forget_rate
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
        check_number(self.forget_rate, "forget_rate", most=1.0)
        check_number(self.warmup_epochs, "warmup_epochs")

    def _adapt(
        self, network: Network, sources: list[LabeledTensors], target: Tensor, report: Report
    ) -> nn.Module:
        pair = NetworkPair(network)
        networks = [copy.deepcopy(network) for _ in sources]
        sgd = [
            momentum_sgd(each, self.learning_rate, self.weight_decay)
            for each in (*networks, *pair.networks)
        ]
        batches = [Batches(x, codes, batch_size=self.batch_size) for x, codes in sources]
        unlabeled = [Batches(target, batch_size=self.batch_size) for _ in pair.networks]
        n_steps = self._n_steps(sources, target)
        Z = torch.zeros(len(sources), len(target), len(self.classes_), device=target.device)
        for epoch in range(self.epochs):
            cosine_rate(sgd, self.learning_rate, epoch, self.epochs)
            losses = [
                cross_entropy_steps(each, labeled, optimizer, n_steps)
                for each, labeled, optimizer in zip(networks, batches, sgd, strict=False)
            ]
            p = torch.stack([proba_of(each, target) for each in networks])
            Z = _OUTPUT_MOMENTUM * Z + (1 - _OUTPUT_MOMENTUM) * p
            z = Z / (1 - _OUTPUT_MOMENTUM ** (epoch + 1))
            weights = source_weights(z)
            if epoch >= min(self.warmup_epochs, self.epochs // 2):
                guess = torch.einsum("k,knc->nc", weights, z)
                schedule = Schedule(epoch, self.epochs, self.forget_rate)
                losses = [
                    co_teach_steps(
                        pair.networks[i],
                        pair.networks[1 - i],
                        target,
                        guess,
                        unlabeled[i],
                        sgd[len(sources) + i],
                        n_steps,
                        schedule,
                    )
                    for i in range(2)
                ]
            report(sum(losses) / len(losses))
        self.source_weights_ = weights.double().cpu().numpy()
        return pair


class NetworkPair(nn.Module):  # type: ignore[misc]
    """Two copies of a network; their probabilities are averaged."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.networks = nn.ModuleList(copy.deepcopy(network) for _ in range(2))

    def proba(self, inputs: Tensor) -> Tensor:
        """Return the average of the two networks' probabilities."""
        return torch.stack([network.proba(inputs) for network in self.networks]).mean(dim=0)


class Schedule:
    """Weight of a network's own predictions (a) and fraction of samples kept, by epoch."""

    def __init__(self, epoch: int, epochs: int, forget_rate: float) -> None:
        self.trust = max(0.0, (2 * epoch - epochs) / epochs)
        self.forgotten = forget_rate * min(1.0, epoch / _RAMP_EPOCHS)

    def n_kept(self, n: int) -> int:
        """Return how many samples of a batch of n are used, at least two if available."""
        share = 1 - (1 - self.trust) * self.forgotten
        return max(min(2, n), math.ceil(share * n - 1e-9))


def co_teach_steps(
    network: Network,
    peer: Network,
    inputs: Tensor,
    guess: Tensor,
    batches: Batches,
    optimizer: torch.optim.Optimizer,
    n_steps: int,
    schedule: Schedule,
) -> float:
    """Train on the target samples with a small loss of the peer; return the average loss."""
    total = 0.0
    for _ in range(n_steps):
        rows = batches.draw_rows().to(inputs.device)
        own = proba_of(network, inputs[rows])
        labels = ((1 - schedule.trust) * guess[rows] + schedule.trust * own).argmax(dim=1)
        difficulty = cross_entropy(logits_of(peer, inputs[rows]), labels, reduction="none")
        easy = difficulty.argsort()[: schedule.n_kept(len(rows))]
        t = draw_beta(_MIXUP)
        soft = one_hot(labels[easy], guess.shape[1]).to(guess.dtype)
        mixed, targets = mixup(inputs[rows][easy], soft, max(t, 1 - t))
        network.train()
        total += descend(soft_cross_entropy(network(mixed), targets).mean(), optimizer)
    return total / n_steps


def logits_of(network: Network, inputs: Tensor) -> Tensor:
    """Return logits in evaluation mode, without gradients."""
    network.eval()
    with torch.no_grad():
        return network(inputs)


def source_weights(z: Tensor) -> Tensor:
    """Return weights of the sources from the separability of their outputs (N, n, nc)."""
    return torch.softmax(_SHARPNESS * torch.stack([separability(each) for each in z]), dim=0)


def separability(proba: Tensor) -> Tensor:
    """Return the between-class variance of the outputs (n, nc), by Otsu's criterion."""
    n, n_classes = proba.shape
    chosen = one_hot(proba.argmax(dim=1), n_classes).to(proba.dtype)
    counts = chosen.sum(dim=0)
    inside = (proba * chosen).sum(dim=0) / (counts + _COUNT_FLOOR)
    outside = (proba * (1 - chosen)).sum(dim=0) / (n - counts + _COUNT_FLOOR)
    mean = proba.mean(dim=0)
    return (counts * (inside - mean) ** 2 + (n - counts) * (outside - mean) ** 2).sum() / n
