"""GMM-WBT and GMM-DaDiL as classifiers: domains become mixtures, a labelled target mixture decides.

The numerics are in `mixda.em`, `mixda.barycenters`, `mixda.transport` and `mixda.dictionary`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from mixda._validation import Array, check_positive_int
from mixda.barycenters import barycenter
from mixda.dictionary import learn_dictionary
from mixda.em import fit_labeled_mixture, fit_mixture
from mixda.estimators._base import MultiSourceClassifier, Source
from mixda.mixture import Mixture
from mixda.transport import barycentric_map, transport_plan


class MixtureClassifier(MultiSourceClassifier):
    """Base of the methods whose outcome is a labelled mixture of the target.

    A subclass implements ``_adapt(sources, target, rng)``: labelled mixtures of the sources and
    an unlabelled one of the target in, a labelled mixture of the target out.
    """

    n_components: Any
    target_components: Any
    class_prior: Any
    min_std: Any
    n_init: Any
    classifier: Any
    n_samples: Any
    verbose: Any

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        if target is None:
            pooled = np.vstack([Z for Z, _ in sources]), np.concatenate([c for _, c in sources])
            self.target_mixture_ = self._fit_source(pooled, rng)
        else:
            self.source_mixtures_ = [self._fit_source(source, rng) for source in sources]
            self.unlabeled_mixture_ = self._fit_target(target, rng)
            self.target_mixture_ = self._adapt(self.source_mixtures_, self.unlabeled_mixture_, rng)
        if self.classifier != "map":
            self.classifier_ = self._train_classifier(rng)

    def _fit_source(self, source: Source, rng: np.random.Generator) -> Mixture:
        Z, codes = source
        return fit_labeled_mixture(
            Z,
            self.classes_[codes],
            self.n_components,
            class_prior=self.class_prior,
            classes=self.classes_,
            min_std=self.min_std,
            n_init=self.n_init,
            random_state=rng,
            verbose=self.verbose,
        )

    def _fit_target(self, Z: Array, rng: np.random.Generator) -> Mixture:
        n_components = self.target_components
        if n_components is None:
            n_components = max(p.n_components for p in self.source_mixtures_)
        if n_components != "bic":
            n_components = min(check_positive_int(n_components, "target_components"), len(Z))
        return fit_mixture(
            Z,
            n_components,
            min_std=self.min_std,
            n_init=self.n_init,
            random_state=rng,
            verbose=self.verbose,
        )

    def _adapt(self, sources: list[Mixture], target: Mixture, rng: np.random.Generator) -> Mixture:
        raise NotImplementedError

    def _train_classifier(self, rng: np.random.Generator) -> Any:
        if not hasattr(self.classifier, "fit"):
            raise ValueError(
                f"classifier must be 'map' or a scikit-learn classifier, got {self.classifier!r}."
            )
        n_samples = self.n_samples
        if n_samples is None:
            n_samples = 50 * self.target_mixture_.n_components
        Z, y = self.target_mixture_.sample(n_samples, rng)
        return clone(self.classifier).fit(Z, np.searchsorted(self.target_mixture_.classes, y))

    def _predict_encoded(self, Z: Array) -> Array:
        if self.classifier == "map":
            return self.target_mixture_.predict_proba(Z)
        known = self.classifier_.classes_
        proba = np.zeros((len(Z), len(self.classes_)))
        if hasattr(self.classifier_, "predict_proba"):
            proba[:, known] = self.classifier_.predict_proba(Z)
        else:
            proba[np.arange(len(Z)), self.classifier_.predict(Z)] = 1.0
        return proba


class GMMWBT(MixtureClassifier):
    def __init__(
        self,
        n_components: Any = 3,
        target_components: Any = None,
        class_prior: str = "uniform",
        min_std: Any = "auto",
        n_init: int = 1,
        source_weights: ArrayLike | None = None,
        beta: Any = "auto",
        component_weights: Any = "start",
        reg: float = 0.0,
        reg_m: float | None = None,
        encoder: Any = None,
        scale: str | None = None,
        classifier: Any = "map",
        n_samples: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.target_components = target_components
        self.class_prior = class_prior
        self.min_std = min_std
        self.n_init = n_init
        self.source_weights = source_weights
        self.beta = beta
        self.component_weights = component_weights
        self.reg = reg
        self.reg_m = reg_m
        self.encoder = encoder
        self.scale = scale
        self.classifier = classifier
        self.n_samples = n_samples
        self.random_state = random_state
        self.verbose = verbose

    def _adapt(self, sources: list[Mixture], target: Mixture, rng: np.random.Generator) -> Mixture:
        start = max(sources, key=lambda p: p.n_components)
        self.barycenter_ = barycenter(
            sources,
            self.source_weights,
            beta=self.beta,
            component_weights=self.component_weights,
            init=start,
        )
        moving = self.barycenter_.mixture
        self.plan_ = transport_plan(moving, target, reg=self.reg, reg_m=self.reg_m).plan
        return barycentric_map(moving, target, self.plan_)


class GMMDaDiL(MixtureClassifier):
    def __init__(
        self,
        n_components: Any = 3,
        target_components: Any = None,
        class_prior: str = "uniform",
        min_std: Any = "auto",
        n_init: int = 1,
        n_atoms: int = 3,
        atom_components: int | None = None,
        beta: Any = "auto",
        optimizer: str = "block",
        learning_rate: float = 0.1,
        damping: float = 0.1,
        n_iter: int = 100,
        tol: float = 1e-4,
        init: str = "sources",
        component_weights: str = "fixed",
        atom_min_std: float | str = "auto",
        precision: str = "float64",
        callback: Any = None,
        checkpoint: Any = None,
        encoder: Any = None,
        scale: str | None = None,
        classifier: Any = "map",
        n_samples: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.target_components = target_components
        self.class_prior = class_prior
        self.min_std = min_std
        self.n_init = n_init
        self.n_atoms = n_atoms
        self.atom_components = atom_components
        self.beta = beta
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.damping = damping
        self.n_iter = n_iter
        self.tol = tol
        self.init = init
        self.component_weights = component_weights
        self.atom_min_std = atom_min_std
        self.precision = precision
        self.callback = callback
        self.checkpoint = checkpoint
        self.encoder = encoder
        self.scale = scale
        self.classifier = classifier
        self.n_samples = n_samples
        self.random_state = random_state
        self.verbose = verbose

    def _adapt(self, sources: list[Mixture], target: Mixture, rng: np.random.Generator) -> Mixture:
        self.dictionary_ = learn_dictionary(
            sources,
            target,
            n_atoms=self.n_atoms,
            n_components=self.atom_components,
            beta=self.beta,
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            damping=self.damping,
            n_iter=self.n_iter,
            tol=self.tol,
            init=self.init,
            component_weights=self.component_weights,
            min_std=self.atom_min_std,
            precision=self.precision,
            callback=self.callback,
            checkpoint=self.checkpoint,
            verbose=self.verbose,
            random_state=rng,
        )
        return self.dictionary_.target
