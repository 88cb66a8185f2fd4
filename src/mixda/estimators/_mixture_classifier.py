"""The base class of the methods over mixtures, which learn a labeled mixture of the target.

`fit` makes the mixtures of the domains from samples; `fit_mixtures` takes given ones (federated).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Codes, Ids, PathArgument, Source
from mixda._core.validation import (
    check_choice,
    check_positive_int,
    check_random_state,
    check_X,
    encode_classes,
    is_word,
)
from mixda.chunks import RowSource, join_sources
from mixda.em import (
    cached_mixture,
    feature_units,
    fit_labeled_mixture,
    fit_mixture,
    refine_mixture,
)
from mixda.estimators._base import MultiSourceClassifier
from mixda.estimators._canonical import CanonicalOrder
from mixda.estimators._export import rule_of
from mixda.estimators._given_mixtures import balanced, common_names, unite_classes
from mixda.estimators._product import log_linear_pool, train_rough
from mixda.estimators._to_model import as_json
from mixda.estimators.encoders import DomainEncoder, sample_moments
from mixda.estimators.utils import head_proba, pool, std_floor, train_head
from mixda.mixture import MIN_COMPONENT_ROWS, SHARES, Mixture, count_samples
from mixda.rules import Posterior, Rule
from mixda.transport import check_same_features

Self = TypeVar("Self", bound="MixtureClassifier")

PRESETS: dict[str, dict[str, Any]] = {
    "default": {
        "class_prior": "empirical",
        "n_init": "auto",
        "encoder": "lda",
        "scale": "domain",
        "classifier": "product",
        "min_component_rows": MIN_COMPONENT_ROWS,
    },
    "paper": {
        "class_prior": "uniform",
        "n_init": 1,
        "encoder": None,
        "scale": None,
        "classifier": "map",
        "min_component_rows": 1,
    },
}
_MAX_MISSING = 0.2  # of the rows of all sources, in classes that a source lacks
_SCALES = {
    "domain": "each domain standardized by itself",
    "sources": "all domains standardized by the sources",
    None: "as given",
}


class MixtureClassifier(MultiSourceClassifier):
    """Base class of the methods that learn a labeled mixture of the target.

    A subclass implements ``_adapt(sources, target, rng)``, which takes the labeled mixtures of the
    sources and the unlabeled mixture of the target and returns a labeled mixture of the target.
    """

    _sorts_rows = True

    preset: str
    n_components: int | str
    target_components: int | str | None
    class_prior: str
    min_std: ArrayLike
    n_init: int | str
    min_component_rows: int | str
    classifier: Any
    n_samples: int | None
    checkpoint: PathArgument | None
    verbose: bool

    def fit(  # type: ignore[override]
        self: Self, X: Any, y: Any = None, sample_domain: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from labeled sources and an unlabeled target.

        Parameters
        ----------
        X, y, sample_domain : see `MultiSourceClassifier.fit`
        sample_weight : array-like of shape (n,), optional
            Weight of each row, of the target too, in the mixtures and in everything else that is
            estimated from rows. Rows of weight zero are left out.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_domain, sample_weight)

    def fit_mixtures(self: Self, sources: Sequence[Mixture], target: Mixture) -> Self:
        """Adapt from mixtures, for samples that must stay where they are (federated).

        The mixtures are over raw features. This is what `fit` does once it has the mixtures of the
        domains, with moments (`scale`, `min_std`) taken from the mixtures, and the source
        classifier of ``classifier="product"`` trained on samples drawn from them. `class_prior`
        balances the classes of each source, or leaves their masses unchanged. `n_components`,
        `target_components` and `n_init` are not used. `encoder` must be "auto", which is None here,
        or None, because mixtures do not hold the samples that an encoder is trained on.

        Parameters
        ----------
        sources : sequence of N labeled Mixture
            Their classes are united. If they have feature names, all must have the same ones,
            in any order.
        target : Mixture
            Its labels, if it has any, are ignored.

        Returns
        -------
        self
            `predict` works on raw samples as usual.

        Examples
        --------
        >>> import mixda
        >>> from mixda.datasets import make_shifted_toy
        >>> toy = make_shifted_toy(random_state=2)
        >>> task = toy.as_task()
        >>> rows = [task.sample_domain == k for k in (1, 2, 3)]
        >>> sites = [mixda.fit_labeled_mixture(task.X[i], task.y[i], random_state=0) for i in rows]
        >>> target = mixda.fit_mixture(task.X_target, 6, random_state=0)
        >>> model = mixda.GMMDaDiL(random_state=0).fit_mixtures(sites, target)
        >>> model.score(task.X_target, task.y_target) > 0.99
        True
        """
        self._forget()
        sources = [sources] if isinstance(sources, Mixture) else list(sources)
        check_same_features([*sources, target], by_name=False)
        self.n_features_in_ = target.n_features
        names = common_names([*sources, target])
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
            sources, target = [p.marginal(names) for p in sources], target.marginal(names)
        class_prior = self._chosen("class_prior")
        check_choice(class_prior, "class_prior", ("empirical", "uniform"))
        self.classes_, sources = unite_classes(sources)
        if class_prior == "uniform":
            sources = [balanced(p) for p in sources]
        self.sources_ = np.arange(len(sources))
        self._sizes = [count_samples(p) for p in (*sources, target)]
        rng = check_random_state(self.random_state)
        self._seed = int(rng.integers(2**31))
        encoder = None if is_word(self.encoder, "auto") else self.encoder
        scale = self._resolved_scale(np.array([p.class_proportions for p in sources]))
        self.encoder_ = DomainEncoder(scale, encoder, self._seed)
        target = replace(target, labels=None, classes=None)
        mixtures = self.encoder_.fit_mixtures(sources, target)
        largest = max(np.abs(p.means).max() for p in mixtures)
        self._floor = self._resolve_floor([p.moments()[1] ** 2 for p in mixtures], largest)
        floor = np.broadcast_to(self._floor, self.n_features_in_)
        *sources, target = [replace(p, stds=np.maximum(p.stds, floor)) for p in mixtures]
        if self._is_product():
            rng = np.random.default_rng([self._seed, 2])
            self.classifier_ = train_rough(*pool([self._draw(p, rng) for p in sources]))
        self._finish(sources, target)
        return self

    def domain_mixture(self, X: Any, y: Any = None, sources: Sequence[Mixture] = ()) -> Mixture:
        """Summarize the samples of one domain as a mixture over raw features for `fit_mixtures`.

        The mixture is fitted as `fit` does it, with the parameters of the estimator, but before
        standardization, which takes the moments of all domains. Only features of very different
        units are standardized for the fit, by the spread of this domain.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,), optional
            Classes of a source. Without them, the samples are those of the target.
        sources : sequence of Mixture
            For the target: by default it gets as many components as the largest of these.

        Returns
        -------
        Mixture
            A feature that is constant in `X` has a standard deviation of zero.

        Examples
        --------
        >>> import numpy as np
        >>> import mixda
        >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["ok", "ok", "worn", "worn"]
        >>> mixda.GMMWBT(n_components=1, random_state=0).domain_mixture(X, y).means.ravel()
        array([0.5, 8.5])
        """
        X = check_X(X, allow_nan=True)
        center, spread = sample_moments(X)
        unit = np.ones_like(spread)
        scaled = self._chosen("scale") is not None
        if scaled:
            unit = feature_units(spread, np.nanmax(np.abs(X), axis=0), "auto")
        Z = (X - center) / unit
        floor = self._resolve_floor([np.nanvar(Z, axis=0)], float(np.nanmax(np.abs(Z))))
        if scaled and not is_word(self.min_std, "auto"):
            floor = np.asarray(self.min_std) * spread / unit  # it counts standard deviations
        rng = check_random_state(self.random_state)
        if y is None:
            mixture = self._unlabeled_mixture(Z, sources, floor, rng)
        else:
            classes, codes = encode_classes(y, None, len(X))
            mixture = self._labeled_mixture((Z, codes), classes, floor, rng)
        return replace(
            mixture,
            means=mixture.means * unit + center,
            stds=np.where(np.nanmax(X, 0) > np.nanmin(X, 0), mixture.stds * unit, 0.0),
            info={**mixture.info, "n_samples": len(X)},
        )

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        order = CanonicalOrder.of_samples(sources, len(self.classes_)).sources
        domains = [sources[i][0] for i in order] + ([] if target is None else [target])
        weights: Sequence[Array | None] = self._weights or [None] * (len(sources) + 1)
        largest = max(np.nanmax(np.abs(Z)) for Z in domains)
        sorted_weights = [*(weights[i] for i in order), weights[-1]]
        pairs = zip(domains, sorted_weights, strict=False)
        self._floor = self._resolve_floor([_variance(Z, weight) for Z, weight in pairs], largest)
        pooled = pool([sources[i] for i in order])
        weight = None
        if self._weights is not None:
            weight = np.concatenate([self._weights[i] for i in order])
        if self._is_product():
            self.classifier_ = train_rough(*pooled, weight)
        if target is None:
            self.target_mixture_ = self._fit_source(pooled, rng, weight)
            self._train()
        else:
            mixtures = [
                self._fit_source(source, self._fit_rng(), weight)
                for source, weight in zip(sources, weights, strict=False)
            ]
            fitted = self._unlabeled_mixture(
                target, mixtures, self._floor, self._fit_rng(), weights[-1]
            )
            self._finish(*self._refined(mixtures, fitted))

    def _refined(self, sources: list[Mixture], target: Mixture) -> tuple[list[Mixture], Mixture]:
        """Continue EM over all rows, where the mixtures were fitted to a sample of them."""
        if not self._streams:
            return sources, target
        self._streamed = True
        streams = [self._streams[int(k)] for k in self.sources_]
        if len(sources) < len(streams):  # the method pools its sources
            streams = [join_sources(streams)]
        refined = [self._refine(p, stream) for p, stream in zip(sources, streams, strict=True)]
        goal = join_sources([stream for key, stream in self._streams.items() if key < 0])
        return refined, self._refine(target, goal)

    def _refine(self, start: Mixture, stream: RowSource) -> Mixture:
        assert self._large is not None
        options: dict[str, Any] = {}
        if start.is_labeled:
            codes = np.arange(len(self.classes_))
            options = {"classes": codes, "class_prior": self._chosen("class_prior")}
            start = replace(start, classes=codes)
        mixture = refine_mixture(
            self.checkpoint,
            stream,
            start,
            digest=[sample.digest for sample in self._large.samples.values()],
            verbose=self.verbose,
            n_jobs=self._large.n_jobs,
            client=self._large.client,
            min_std=self._floor,
            min_component_rows=self._chosen("min_component_rows"),
            allow_exposed_rows=True,  # `AdaptedModel.save` checks it
            **options,
        )
        kept = {key: value for key, value in start.info.items() if key not in mixture.info}
        classes = self.classes_ if start.is_labeled else None
        return replace(mixture, classes=classes, info={**mixture.info, **kept})

    def _fit_rng(self) -> np.random.Generator:
        """Return the same draws for every domain, so that the order of sources does not matter."""
        return np.random.default_rng([self._seed, 3])

    def _resolve_floor(self, variances: list[Array], largest: float) -> Any:
        return std_floor(variances, largest) if is_word(self.min_std, "auto") else self.min_std

    def _fit_source(
        self, source: Source, rng: np.random.Generator, weight: Array | None
    ) -> Mixture:
        return self._labeled_mixture(source, self.classes_, self._floor, rng, weight)

    def _labeled_mixture(
        self,
        source: Source,
        classes: NDArray[Any],
        floor: Any,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> Mixture:
        """Fit the mixture of a source, whose codes are positions in `classes`."""
        mixture = cached_mixture(
            self.checkpoint,
            fit_labeled_mixture,
            *source,
            n_components=self.n_components,
            class_prior=self._chosen("class_prior"),
            classes=np.arange(len(classes)),
            min_std=floor,
            sample_weight=weight,
            random_state=rng,
            verbose=self.verbose,
            **self._em_options(),
        )
        shares = np.bincount(source[1], weight, minlength=len(classes))
        shares = shares / shares.sum()
        return replace(mixture, classes=classes, info={**mixture.info, SHARES: shares.tolist()})

    def _unlabeled_mixture(
        self,
        Z: Array,
        sources: Sequence[Mixture],
        floor: Any,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> Mixture:
        """Fit the mixture of the target."""
        n_components = self.target_components
        if n_components is None:
            n_components = max((p.n_components for p in sources), default=1)
        if n_components != "bic":
            n_components = min(check_positive_int(n_components, "target_components"), len(Z))
        return cached_mixture(
            self.checkpoint,
            fit_mixture,
            Z,
            n_components=n_components,
            min_std=floor,
            sample_weight=weight,
            random_state=rng,
            verbose=self.verbose,
            **self._em_options(),
        )

    def _finish(self, sources: list[Mixture], target: Mixture) -> None:
        """Adapt, with the same random numbers whether the mixtures were fitted or given."""
        self.source_mixtures_, self.unlabeled_mixture_ = sources, target
        self.target_mixture_ = self._adapt(sources, target, np.random.default_rng(self._seed))
        self._train()

    def _train(self) -> None:
        if not (self._is_map() or self._is_product()):
            self.classifier_ = self._train_classifier(np.random.default_rng([self._seed, 1]))

    def _chosen(self, name: str) -> Any:
        """Return a parameter; "auto" is the choice of the preset."""
        preset = check_choice(self.preset, "preset", tuple(PRESETS))
        value = getattr(self, name)
        return PRESETS[preset][name] if is_word(value, "auto") else value

    def _space(self, codes: Codes, ids: Ids) -> tuple[str | None, Any]:
        counts = [
            np.bincount(codes[ids == k], minlength=len(self.classes_)) for k in np.unique(ids)
        ]
        proportions = np.array([count / count.sum() for count in counts])
        return self._resolved_scale(proportions), self._chosen("encoder")

    def _resolved_scale(self, proportions: Array) -> str | None:
        """Return `scale`, given the class proportions of the sources, shape (N, nc).

        If a source lacks classes that are frequent elsewhere, "auto" does not standardize domains
        separately: their moments differ by these classes.
        """
        scale: str | None = self._chosen("scale")
        missing = (proportions == 0) @ proportions.mean(axis=0)
        separate = missing.max() <= _MAX_MISSING
        return scale if separate or not (is_word(self.scale, "auto") and scale) else "sources"

    def _em_options(self) -> dict[str, Any]:
        """Return where EM starts, and how many rows a component has at least."""
        n_init = self._chosen("n_init")
        start = {"init": "systematic"} if is_word(n_init, "auto") else {"n_init": n_init}
        return {
            **start,
            "min_component_rows": self._chosen("min_component_rows"),
            "allow_exposed_rows": True,  # `AdaptedModel.save` checks it
        }

    def _settings(self) -> dict[str, Any]:
        settings = super()._settings()
        chosen = {name: as_json(self._chosen(name)) for name in PRESETS["default"]}
        wanted, encoder = chosen["encoder"], self.encoder_.name
        scale = _SCALES[self.encoder_.scale]
        if self.encoder_.scale != chosen["scale"]:
            scale += ", because a source lacks classes that are frequent elsewhere"
            chosen["scale"] = self.encoder_.scale
        space = f"{'' if encoder is None else f'{encoder} of '}the features, {scale}"
        if encoder is None and wanted is not None:  # fitted to mixtures
            chosen["encoder"] = None
            space += f"; encoder {wanted!r} needs samples, but a domain is a mixture"
        parameters = {**settings["parameters"], **chosen}
        return {**settings, "parameters": parameters, "space": space}

    def _integrates_gaps(self) -> bool:
        return self._is_map() and self._chosen("encoder") is None

    def _is_map(self) -> bool:
        return is_word(self._chosen("classifier"), "map")

    def _is_product(self) -> bool:
        return is_word(self._chosen("classifier"), "product")

    def _adapt(self, sources: list[Mixture], target: Mixture, rng: np.random.Generator) -> Mixture:
        raise NotImplementedError

    def _train_classifier(self, rng: np.random.Generator) -> Any:
        classifier = self._chosen("classifier")
        if not hasattr(classifier, "fit"):
            raise MixdaError(
                "classifier must be 'map', 'product' or a scikit-learn classifier, got "
                f"{classifier!r}."
            )
        return train_head(classifier, self._seed, *self._draw(self.target_mixture_, rng))

    def _draw(self, mixture: Mixture, rng: np.random.Generator) -> Source:
        """Return labeled samples of a mixture, to train a classifier on."""
        n_samples = self.n_samples
        if n_samples is None:
            n_samples = 50 * mixture.n_components
        coded = replace(mixture, classes=np.arange(len(self.classes_)))
        Z, codes = coded.sample(n_samples, rng)
        return Z, np.asarray(codes)

    def _predict_encoded(self, Z: Array) -> Array:
        if self._is_map():
            return self.target_mixture_.predict_proba(Z)
        if self._is_product():
            return self._rule()(Z)
        return head_proba(self.classifier_, Z, len(self.classes_))

    def _rule(self) -> Rule:
        if self._is_map():
            return Posterior(self.target_mixture_)
        head = rule_of(self.classifier_, len(self.classes_))
        if not self._is_product():
            return head
        return log_linear_pool([head, Posterior(self.target_mixture_)])

    def _adapted(self) -> dict[str, Any]:
        plan = getattr(self, "plan_", None)
        return {"labeled_target": self.target_mixture_, "plan": plan}


def _variance(Z: Array, weight: Array | None) -> Array:
    """Return the variance of each feature; missing values are left out."""
    if weight is None:
        variance: Array = np.nanvar(Z, axis=0)
        return variance
    observed = np.where(np.isnan(Z), 0.0, weight[:, None])
    total = observed.sum(axis=0)
    mean = (observed * np.nan_to_num(Z)).sum(axis=0) / total
    return np.asarray((observed * np.nan_to_num(Z - mean) ** 2).sum(axis=0) / total)
