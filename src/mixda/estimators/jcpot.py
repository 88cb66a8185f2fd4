"""JCPOT as a classifier: class proportions and labels of the target from one transport (POT)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Source
from mixda._core.validation import check_positive_int
from mixda.empirical import propagate_labels
from mixda.estimators.empirical import HeadClassifier, subsample

__all__ = ["JCPOT"]


class JCPOT(HeadClassifier):
    r"""Joint class proportions and optimal transport: estimate the proportions, propagate labels.

    .. math:: \min_{h \in \Delta_{nc}} \sum_\ell \lambda_\ell \,
              W_\epsilon\bigl((D_\ell^2 h)^\top \delta_{X_\ell}, \mu_T\bigr)

    The problem is solved by POT's ``JCPOTTransport``. Its plans propagate labels to the samples of
    the target, on which a classifier is trained. Sources without samples of some class are left
    out, because the problem is not defined for them. The method assumes that only the class
    proportions differ: it mistakes a translation for a change of proportions (accuracy on the
    shifted toy: 0.78, or 0.999 with ``scale="domain"``).

    Parameters
    ----------
    reg : float
        Entropic regularization, relative to the largest cost.
    max_samples : int
        Maximum number of samples per domain. Samples of a source are drawn by class, in its class
        proportions and at least one per class.
    classifier : classifier, optional
        Default: a logistic regression.
    encoder, scale, random_state : see `mixda.GMMWBT`

    Attributes
    ----------
    proportions_ : ndarray of shape (nc,)
        Estimated class proportions of the target.
    classifier_ : classifier

    References
    ----------
    .. [1] I. Redko, N. Courty, R. Flamary and D. Tuia, "Optimal transport for multi-source domain
       adaptation under target shift", AISTATS 2019.

    Examples
    --------
    >>> from mixda import JCPOT
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = JCPOT(scale="domain", random_state=0)
    >>> _ = model.fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model.proportions_.round(1)
    array([0.5, 0.5])
    """

    def __init__(
        self,
        reg: float = 0.05,
        max_samples: int = 500,
        classifier: Any = None,
        encoder: Any = None,
        scale: str | None = "auto",
        random_state: Any = None,
    ) -> None:
        self.reg = reg
        self.max_samples = max_samples
        self.classifier = classifier
        self.encoder = encoder
        self.scale = scale
        self.random_state = random_state

    def _training_set(
        self, sources: list[Source], target: Array, rng: np.random.Generator
    ) -> Source:
        size = check_positive_int(self.max_samples, "max_samples")
        nc = len(self.classes_)
        complete = [source for source in sources if len(np.unique(source[1])) == nc]
        if not complete:
            raise MixdaError(
                "JCPOT needs at least one source with samples of all classes; merge sources, or "
                "use another method."
            )
        kept = [subsample(source, size, rng) for source in complete]
        target = target[rng.permutation(len(target))[:size]]
        labels, self.proportions_ = propagate_labels(kept, target, nc, self.reg)
        return target, labels
