"""GMM-DaDiL: the reconstruction of the target from a learned dictionary classifies it.

The numerics are in `mixda.dictionary`, those of `partial_fit` also in `mixda.barycenters`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.typing import PathArgument
from mixda._core.validation import (
    check_number,
    check_positive_int,
    check_random_state,
    is_word,
)
from mixda.barycenters import merge_mixtures
from mixda.dictionary import Dictionary, dictionary_checkpoint, learn_dictionary
from mixda.em import fit_mixture
from mixda.estimators._canonical import CanonicalOrder
from mixda.estimators._mixture_classifier import MixtureClassifier
from mixda.estimators.utils import check_domains, check_samples
from mixda.mixture import Mixture
from mixda.transport import transport_plan

__all__ = ["GMMDaDiL"]

_MAX_STEPS = 100
_MIN_STEPS = 5  # before learning stops early; see benchmarks/unlearning.py
_MIN_DECREASE = 0.02  # of the loss in one step


class GMMDaDiL(MixtureClassifier):
    r"""Classify the target by its reconstruction from a learned dictionary (GMM-DaDiL).

    .. math:: \min_{\Lambda, \mathcal{P}} \;
              \mathcal{MW}_2(Q_T, \mathcal{B}(\lambda_T, \mathcal{P}))^2
              + \sum_{\ell=1}^{N} \mathcal{SMW}_2(Q_\ell, \mathcal{B}(\lambda_\ell, \mathcal{P}))^2

    The target is classified by the labeled mixture :math:`\mathcal{B}(\lambda_T, \mathcal{P})`.

    Parameters
    ----------
    n_components, target_components, class_prior, min_std, n_init, min_component_rows : see `GMMWBT`
        How the mixtures of the domains are fitted.
    n_atoms : int
        Number of atoms of the dictionary.
    atom_components : int, optional
        Components of each atom. Default: as many as the largest source mixture has, or more if a
        source lacks a class; see `mixda.learn_dictionary`.
    beta, optimizer, learning_rate, damping, tol, init, component_weights, precision
        As in `mixda.learn_dictionary`.
    n_iter : int or "auto"
        Most iterations of the dictionary. "auto" is 100, but if ``preset="default"`` and the block
        optimizer starts from the sources, learning stops early: after at least 5 iterations, at the
        first that lowers the loss by less than 2 %. The loss would go on falling, but on average
        over real datasets the accuracy falls with it.
    target_fit : float or "auto"
        How well the target is reconstructed, relative to the sources, when learning stops. "auto"
        is that of `mixda.learn_dictionary`, or 0 if learning stops early.
    atom_min_std : float or "auto"
        `min_std` of `mixda.learn_dictionary`: floor of the standard deviations of the atoms.
    reg, reg_m : float, float or None
        If `reg_m` is given, the reconstruction of the target gets the weights of an unbalanced plan
        from it to the target mixture, so that its class proportions may differ from those of the
        sources; see `mixda.transport_plan`.
    callback : callable, optional
        Called after each iteration of the dictionary; see `mixda.learn_dictionary`.
    forgetting : float
        Minimum share of a new batch in the target mixture (`partial_fit`).
    max_target_components : int, optional
        Maximum number of components of the target mixture (`partial_fit`). Default: those of the
        fit.
    online_iter : int
        Iterations of the dictionary per batch (`partial_fit`).
    encoder, scale, classifier, n_samples, checkpoint, random_state, verbose, preset : see `GMMWBT`

    Attributes
    ----------
    target_mixture_ : Mixture
        The classifier: a labeled mixture in the encoded space. Without a target, the mixture of
        all labeled samples.
    dictionary_ : Dictionary
        Rows of its coordinates: sources in the order of `sources_`, target last.
    n_target_seen_ : int
        Samples of the target so far (`partial_fit`).
    source_mixtures_, unlabeled_mixture_, encoder_, classifier_, sources_, classes_ : see `GMMWBT`

    References
    ----------
    .. [1] E. Fernandes Montesuma, F. Ngolè Mboula and A. Souloumiac, "Lighter, better, faster
       multi-source domain adaptation with Gaussian mixture models and optimal transport",
       ECML-PKDD 2024.

    Examples
    --------
    >>> from mixda import GMMDaDiL
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = GMMDaDiL(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model.score(task.X_target, task.y_target) > 0.99
    True
    """

    def __init__(
        self,
        n_components: int | str = 3,
        target_components: int | str | None = None,
        class_prior: str = "auto",
        min_std: ArrayLike = "auto",
        n_init: int | str = "auto",
        n_atoms: int = 3,
        atom_components: int | None = None,
        beta: float | str = "auto",
        optimizer: str = "block",
        learning_rate: float = 0.1,
        damping: float = 0.1,
        n_iter: int | str = "auto",
        tol: float = 1e-4,
        target_fit: float | str = "auto",
        init: str = "sources",
        component_weights: str = "fixed",
        atom_min_std: float | str = "auto",
        precision: str = "auto",
        reg: float = 0.0,
        reg_m: float | None = None,
        callback: Callable[[Dictionary], Any] | None = None,
        forgetting: float = 0.05,
        max_target_components: int | None = None,
        online_iter: int = 10,
        encoder: Any = "auto",
        scale: str | None = "auto",
        classifier: Any = "auto",
        n_samples: int | None = None,
        checkpoint: PathArgument | None = None,
        random_state: Any = None,
        verbose: bool = False,
        min_component_rows: int | str = "auto",
        preset: str = "default",
    ) -> None:
        self.n_components = n_components
        self.target_components = target_components
        self.class_prior = class_prior
        self.min_std = min_std
        self.n_init = n_init
        self.min_component_rows = min_component_rows
        self.n_atoms = n_atoms
        self.atom_components = atom_components
        self.beta = beta
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.damping = damping
        self.n_iter = n_iter
        self.tol = tol
        self.target_fit = target_fit
        self.init = init
        self.component_weights = component_weights
        self.atom_min_std = atom_min_std
        self.precision = precision
        self.reg = reg
        self.reg_m = reg_m
        self.callback = callback
        self.forgetting = forgetting
        self.max_target_components = max_target_components
        self.online_iter = online_iter
        self.encoder = encoder
        self.scale = scale
        self.classifier = classifier
        self.n_samples = n_samples
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.preset = preset

    def partial_fit(
        self, X: Any, y: Any = None, sample_domain: Any = None, classes: Any = None
    ) -> GMMDaDiL:
        """Update the model with a new batch of the target (online GMM-DaDiL).

        The target mixture summarizes the stream. The components of the batch are added to it with
        the batch's share of the samples seen (at least `forgetting`), the nearest components in W2
        are merged until `max_target_components` are left, and the dictionary takes `online_iter`
        more iterations. The source mixtures are kept, so they are not forgotten.

        Before a `fit` with a target, a call with `y` is that `fit`.

        With ``classifier="product"`` one factor stays with the sources, so "map" follows a target
        that drifts far from them better.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Samples of the target.
        y : ignored
        sample_domain : array-like of shape (n,) or int, optional
            Negative ids only, because all rows belong to the target.
        classes : ignored
            The classes are those of `fit`.

        Returns
        -------
        self

        References
        ----------
        .. [1] E. Fernandes Montesuma, S. Le Stanc and F. Ngolè Mboula, "Online multi-source
           domain adaptation through Gaussian mixtures and dataset dictionary learning", 2024.
        """
        if hasattr(self, "targets_"):
            self._check_adapted()  # raises an error that names the targets
        if not hasattr(self, "dictionary_"):
            if y is not None:
                if hasattr(self, "n_features_in_"):
                    check_samples(self, X, reset=False)
                return self.fit(X, y, sample_domain)
            raise MixdaError(
                "partial_fit needs a fit with sources and a first target batch; call "
                "fit(X, y, sample_domain=...) with some negative ids first."
            )
        X = check_samples(self, X, reset=False)
        if (check_domains(sample_domain, len(X), default=-1) >= 0).any():
            raise MixdaError("sample_domain of partial_fit must be negative (target rows only).")
        forgetting = check_number(self.forgetting, "forgetting", most=1)
        Z = self.encoder_.transform(X)
        rng = check_random_state(self.random_state)
        most = self.unlabeled_mixture_.n_components
        if self.max_target_components is not None:
            most = check_positive_int(self.max_target_components, "max_target_components")
        batch = fit_mixture(
            Z,
            "bic",
            max_components=min(most, 10),
            min_std=self._floor,
            random_state=rng,
            **self._em_options(),
        )
        self._sizes = [*self._sizes[:-1], self.n_target_seen_ + len(Z)]
        share = max(len(Z) / self.n_target_seen_, forgetting)
        self.unlabeled_mixture_ = merge_mixtures(
            self.unlabeled_mixture_, batch, share=share, max_components=most
        )
        self._learn(self.source_mixtures_, self.unlabeled_mixture_, rng, self.dictionary_)
        self.target_mixture_ = self._reconstruction(self.unlabeled_mixture_)
        self._train()
        return self

    @property
    def n_target_seen_(self) -> int:
        """Samples of the target so far; 100 per component if their number is unknown."""
        size = self._sizes[-1] if self._sizes else 0
        return 100 * self.unlabeled_mixture_.n_components if size is None else size

    def _adapted(self) -> dict[str, Any]:
        plan = transport_plan(self.target_mixture_, self.unlabeled_mixture_).plan
        return {**super()._adapted(), "dictionary": self.dictionary_, "plan": plan}

    def _adapt(self, sources: list[Mixture], target: Mixture, rng: np.random.Generator) -> Mixture:
        self._learn(sources, target, rng, None)
        return self._reconstruction(target)

    def _reconstruction(self, target: Mixture) -> Mixture:
        """Return the reconstructed target, with the weights of an unbalanced plan if wanted."""
        mixture = self.dictionary_.target
        if self.reg_m is None:
            return mixture
        mass = transport_plan(mixture, target, reg=self.reg, reg_m=self.reg_m).plan.sum(axis=1)
        return replace(mixture, weights=mass / mass.sum())

    def _learn(
        self,
        sources: list[Mixture],
        target: Mixture,
        rng: np.random.Generator,
        start: Dictionary | None,
    ) -> None:
        order, classes = CanonicalOrder.of(sources), np.asarray(sources[0].classes)
        sources = order.sorted_sources(sources)
        init = self.init if start is None else start
        if isinstance(init, Dictionary) and order.fits(init, classes):
            init = order.sorted_dictionary(init)
        given = self.callback
        callback = None if given is None else lambda now: given(order.restored(now, classes))
        checkpoint = None
        if self.checkpoint is not None and start is None:
            settings = self._settings()["parameters"], self._seed
            checkpoint = dictionary_checkpoint(self.checkpoint, [*sources, target], settings)
        n_iter: Any = _MAX_STEPS if is_word(self.n_iter, "auto") else self.n_iter
        target_fit = self.target_fit
        if self._stops_early() and start is None:
            callback = _with_early_stop(callback)
            target_fit = 0.0 if is_word(target_fit, "auto") else target_fit
        dictionary = learn_dictionary(
            sources,
            target,
            n_atoms=self.n_atoms,
            n_components=self.atom_components,
            beta=self.beta,
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            damping=self.damping,
            n_iter=n_iter if start is None else self.online_iter,
            tol=self.tol,
            target_fit=target_fit,
            init=init,
            component_weights=self.component_weights,
            min_std=self.atom_min_std,
            precision=self.precision,
            callback=callback,
            checkpoint=checkpoint,
            verbose=self.verbose,
            random_state=rng,
        )
        self.dictionary_ = order.restored(dictionary, classes)

    def _stops_early(self) -> bool:
        from_sources = self.optimizer == "block" and is_word(self.init, "sources")
        return is_word(self.n_iter, "auto") and self.preset == "default" and from_sources


def _with_early_stop(callback: Callable[[Dictionary], Any] | None) -> Callable[[Dictionary], bool]:
    """Return a callback that also stops at the first step that hardly lowers the loss."""

    def stop(now: Dictionary) -> bool:
        done = callback is not None and bool(callback(now))
        losses = now.history.loss
        small = len(losses) > _MIN_STEPS and losses[-1] > (1.0 - _MIN_DECREASE) * losses[-2]
        return done or bool(small)

    return stop
