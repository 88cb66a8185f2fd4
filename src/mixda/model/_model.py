"""The adapted classifier as a value and as a file (.mixda).

A model consists of rules, mixtures and names. It holds no sample of any domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.archive import check_json, pack, read_archive, unpack, write_archive
from mixda._core.errors import MixdaError
from mixda._core.namespace import check_dispatched, is_dispatched, namespace, to_numpy
from mixda._core.typing import Array
from mixda._core.validation import check_array, check_names
from mixda.dictionary import Dictionary, History
from mixda.mixture import FORMAT as MIXTURE_FORMAT
from mixda.mixture import FORMAT_VERSION as MIXTURE_VERSION
from mixda.mixture import MIN_COMPONENT_ROWS, Mixture, check_exposed, frozen, has_gaps
from mixda.model._checks import (
    check_classes,
    check_dictionary,
    check_encoder,
    check_proba,
    check_reference,
    check_rule,
)
from mixda.model._display import ModelDisplay
from mixda.model._domain import Domain
from mixda.model._explain import Explanation, Shift, explain_row, mean_shifts
from mixda.model._gaps import integrates_gaps, one_gaussian, over_raw_features
from mixda.model._outliers import held_out_rate, largest_density, outlier_threshold
from mixda.model._reference import Reference
from mixda.model._rows import as_rows
from mixda.model._trust import Trust
from mixda.rules import FORMER_NAMES, RULES, Rule
from mixda.tables import Column, Columns

FORMAT = "mixda.model"
FORMAT_VERSION = 2

_SINCE_VERSION_2 = ("imputer", "columns", "reference")

_ROWS_PER_BATCH = 1 << 14  # so that memory does not grow with the number of samples


@dataclass(frozen=True, eq=False, repr=False)
class AdaptedModel(ModelDisplay):
    """A classifier of one target, with everything that a report says about it.

    It is made by ``estimator.to_model()`` and predicts what the estimator predicts for the target.
    Its file runs no code when it is opened. It holds mixtures, but no samples. (The mean of a
    component that was fitted to a single sample is that sample: `save` refuses means of fewer
    than 5 rows, and ``min_component_rows=5`` prevents them.)

    Attributes
    ----------
    feature_names : tuple of str
        The columns of `X`, in order; "x0", "x1", … if the user gave none.
    classes : ndarray of shape (nc,)
    method : str
        Name of the estimator, such as "GMMDaDiL".
    rule : Rule
        Raw features → class probabilities; the encoder of the target is part of it.
    encoder : Rule or None
        Raw features → the space of the mixtures below; None if that is the same space.
    sources : tuple of Domain
    target : Domain
        With an unlabeled mixture.
    labeled_target : Mixture or None
        Methods over mixtures: the adapted mixture.
    dictionary : Dictionary or None
        GMM-DaDiL: atoms, coordinates, history.
    plan : ndarray of shape (K, K_T) or None
        Methods over mixtures: transport to `target`'s components from those of `labeled_target`
        (GMM-WBT: the barycenter it was; GMM-DaDiL: the reconstruction), or of the one source of
        GMM-OTDA.
    novelty_threshold : float
        Log-density below which a sample is an outlier; see `outliers`.
    trust : Trust or None
        Estimated accuracy on the target; None if it was not estimated.
    imputer : Mixture or None
        Over raw features: its conditional means fill missing values, see `gap_mixture`.
    columns : Columns or None
        How the columns of a table become features; None if features are columns of numbers.
    settings : dict
        JSON: parameters, seed, versions, date. For a committee also its experts; mixtures,
        dictionary and plan are those of the first.
    reference : Reference or None
        Summary of the target's rows, see `with_reference`.

    Examples
    --------
    >>> from mixda import GMMWBT
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> estimator = GMMWBT(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model = estimator.to_model()
    >>> model.feature_names
    ('x0', 'x1')
    >>> bool((model.predict(task.X_target) == task.y_target).mean() > 0.99)
    True
    >>> model.outliers([[1000.0, 0.0]])
    array([ True])
    """

    feature_names: tuple[str, ...]
    classes: NDArray[Any]
    method: str
    rule: Rule
    encoder: Rule | None
    sources: tuple[Domain, ...]
    target: Domain
    labeled_target: Mixture | None = None
    dictionary: Dictionary | None = None
    plan: Array | None = None
    novelty_threshold: float = -np.inf
    trust: Trust | None = None
    imputer: Mixture | None = None
    columns: Columns | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    reference: Reference | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.feature_names, Iterable):
            raise MixdaError(f"feature_names must be names, got {self.feature_names!r}.")
        names = tuple(str(name) for name in self.feature_names)
        if len(set(names)) != len(names) or not names:
            raise MixdaError(f"feature_names must be different names, got {names!r}.")
        plan = None if self.plan is None else frozen(check_array(self.plan, "plan", ndim=2))
        trust = self.trust
        if trust is not None and not isinstance(trust, Trust):  # JSON, as files hold it
            trust = Trust.from_json(trust) if trust else None
        for name, value in (
            ("feature_names", names),
            ("classes", frozen(check_names(self.classes, "classes"))),
            ("sources", tuple(self.sources)),
            ("plan", plan),
            ("novelty_threshold", float(self.novelty_threshold)),
            ("trust", trust),
            ("settings", check_json(self.settings, "settings")),
        ):
            object.__setattr__(self, name, value)
        check_classes(self.classes)
        domains = (*self.sources, self.target)
        atoms = () if self.dictionary is None else self.dictionary.atoms
        adapted = () if self.labeled_target is None else (self.labeled_target,)
        mixtures = (*(domain.mixture for domain in domains), *atoms, *adapted)
        check_rule(self.rule, len(names), len(self.classes))
        check_encoder(self.encoder, len(names), mixtures)
        if self.dictionary is not None:
            check_dictionary(self.dictionary)
        if self.reference is not None:
            check_reference(self.reference, len(names), len(self.classes))
        if self.columns is not None and self.columns.feature_names != names:
            raise MixdaError(
                f"columns give the features {self.columns.feature_names}, not {names}."
            )

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, shape (n, nc), columns as in `classes`.

        Parameters
        ----------
        X : array-like of shape (n, d) or DataFrame
            An array with the columns in the order of `feature_names`, or a frame that has
            columns of these names, in any order and among others. NaN marks a missing value. It
            is integrated out if the rule is the posterior of a mixture over the features, else
            filled with its conditional mean under `gap_mixture`. With scikit-learn's array
            dispatch, the probabilities of a torch or CuPy array are such an array, computed on
            its device; rules with trees or quantiles raise an error.
        """
        X = self._rows(X)
        if has_gaps(X) and not integrates_gaps(self.rule):
            X = self.gap_mixture().impute(X)
        proba = _in_batches(self.rule, X)
        check_proba(proba)
        return proba

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, shape (n,); `X` as in `predict_proba`."""
        winners: NDArray[Any] = self.classes[to_numpy(self.predict_proba(X).argmax(axis=1))]
        return winners

    def outliers(self, X: Any) -> NDArray[np.bool_]:
        r"""Return which rows are outliers, far from all sources and the target, shape (n,).

        .. math:: \max_\ell \log q_\ell(\phi(x)) < \tau

        where :math:`q_\ell` are the mixtures of the sources and of the target in the encoded
        space. One in a thousand samples of these mixtures is below the threshold :math:`\tau`,
        `novelty_threshold`. New classes in the target that the model was adapted to are not
        outliers, because the mixture of the target covers them. `X` as in `predict_proba`.
        """
        mixtures = [domain.mixture for domain in (*self.sources, self.target)]

        def density(X: Array) -> Array:
            return largest_density(mixtures, X if self.encoder is None else self.encoder(X))

        X = self._rows(X)
        return _in_batches(density, self.impute(X)) < self.novelty_threshold

    def impute(self, X: Array) -> Array:
        """Return rows with conditional means in place of missing values."""
        return self.gap_mixture().impute(X) if has_gaps(X) else X

    def novelty(self, X: Any) -> NDArray[np.bool_]:
        """Return `outliers`, under an earlier name."""
        return self.outliers(X)

    def gap_mixture(self) -> Mixture:
        """Return the mixture over raw features whose conditional means fill missing values.

        That is `imputer`, or, if the data of the fit had no gaps, the mixture of the target. If
        that is over learned features, the means of the columns in `reference` fill the gaps.
        """
        if self.imputer is not None:
            return self.imputer
        raw = self.raw_target()
        if raw is None and self.reference is not None:
            raw = one_gaussian(self.reference.means, self.reference.stds)
        if raw is None:
            raise MixdaError(
                "X has missing values (NaN), but the data of the fit had none and this model "
                "works on learned features; drop or impute them."
            )
        return raw

    def raw_target(self) -> Mixture | None:
        """Return the mixture of the target over raw features; None if they are encoded."""
        return over_raw_features(self.target.mixture, self.encoder)

    @property
    def accepts_gaps(self) -> bool:
        """Whether rows with missing values (NaN) can be predicted."""
        try:
            self.gap_mixture()
        except MixdaError:
            return False
        return True

    def with_reference(self, X: Any) -> AdaptedModel:
        """Return the model with a summary of `X`, the rows of the target.

        `mixda.monitoring.monitor` compares new rows with it: quantiles of each column, the number
        of rows of each class, the rate of outliers and the mean confidence. The rate of outliers
        is cross-validated, because the mixture of the target was fitted to these rows. The command
        line does this for each model. `X` as in `predict_proba`.
        """
        X = self.samples(X)
        proba, filled = self.predict_proba(X), self.impute(X)
        Z = filled if self.encoder is None else self.encoder(filled)
        sources = [domain.mixture for domain in self.sources]
        held_out = held_out_rate(sources, self.target.mixture, Z, self.novelty_threshold)
        rate = max(held_out, float(self.outliers(filled).mean()))
        return replace(self, reference=Reference.from_rows(filled, proba, round(rate * len(X))))

    def explain(self, row: Any, against: Any = None) -> Explanation:
        r"""Explain why a row got its class and not another one.

        The log-odds of both classes are divided among the features. If a labeled mixture over the
        features decides (``classifier="map"``), this is exact: feature :math:`j` contributes

        .. math:: \sum_k r_k \log \mathcal{N}(x_j; m_{kj}, s_{kj}) -
                  \sum_k r'_k \log \mathcal{N}(x_j; m_{kj}, s_{kj})

        with the responsibilities of the components within each class. The log-odds of other models
        have no such parts: their contributions are Shapley values relative to the mean of the
        target, averaged over a few orders of the features. In both cases the contributions and the
        baseline add up to the log-odds.

        A pool, such as the committee of `AutoMSDA`, also has an exact decomposition over its
        members (`Explanation.members`): the log-odds of a log-linear pool are the sum of those of
        its members, times their powers. The nearest components are those of the mixtures in the
        model, which describe the data but do not decide.

        Parameters
        ----------
        row : array-like of shape (d,) or (1, d), or a DataFrame with one row
        against : class, optional
            Default: the second most probable class.

        Returns
        -------
        Explanation

        Examples
        --------
        >>> from mixda import GMMWBT
        >>> from mixda.datasets import make_shifted_toy
        >>> task = make_shifted_toy(random_state=2).as_task()
        >>> estimator = GMMWBT(preset="paper", random_state=0)
        >>> estimator = estimator.fit(task.X, task.y, sample_domain=task.sample_domain)
        >>> why = estimator.to_model().explain(task.X_target[0])
        >>> parts = sum(part.log_odds for part in why.contributions)
        >>> abs(why.baseline + parts - why.log_odds) < 1e-9
        True
        """
        X = self.samples(row if hasattr(row, "columns") else np.atleast_2d(np.asarray(row)))
        if len(X) != 1:
            raise MixdaError(f"row must be one row of {X.shape[1]} values, got {len(X)} rows.")
        return explain_row(self, X, against)

    def shifts(self, n_features: int | None = 5) -> tuple[Shift, ...]:
        """Return the features that moved most between the sources and the target, per class.

        Compares the mean of each feature in the labeled mixture of the target with the average
        of the sources, in the units of the user. It is an error if the mixtures are over learned
        features, or if each domain was standardized by itself (``scale="domain"``).

        Parameters
        ----------
        n_features : int or None
            Features per class; None returns all.

        Returns
        -------
        tuple of Shift
            For each class, the largest shift first.

        Examples
        --------
        >>> from mixda import GMMWBT
        >>> from mixda.datasets import make_shifted_toy
        >>> task = make_shifted_toy(random_state=2).as_task()
        >>> estimator = GMMWBT(preset="paper", random_state=0)
        >>> estimator = estimator.fit(task.X, task.y, sample_domain=task.sample_domain)
        >>> len(estimator.to_model().shifts(1)) == len(estimator.classes_)
        True
        """
        return mean_shifts(self, n_features)

    def _rows(self, X: Any) -> Array:
        """Return rows to predict: those of torch or CuPy as they are, if dispatch is on."""
        if is_dispatched(X):
            rows: Array = check_dispatched(X, len(self.feature_names))
            return rows
        return self.samples(X)

    def samples(self, X: Any) -> Array:
        """Return `X` as an array of shape (n, d) with the columns of `feature_names`."""
        return as_rows(X, self.feature_names, self.columns)

    def save(self, path: str | Path, allow_exposed_rows: bool = False) -> None:
        """Write the model to `path` (customarily ``.mixda``), atomically.

        The file is a NumPy ``.npz`` archive without pickles: the arrays of all parts, named by
        their place (``target.mixture.means``), and `header`, a JSON text with everything else and
        a SHA-256 checksum.

        Parameters
        ----------
        path : path
        allow_exposed_rows : bool
            Write the file even if a mean is known to average fewer than 5 rows, which may expose
            them. By default, this is an error.
        """
        self.check_exposed(allow_exposed_rows)
        tree, arrays = pack(replace(self, trust=None), _KINDS)
        if self.trust is not None:
            tree["fields"]["trust"] = {"json": self.trust.to_json()}
        new = [name for name in _SINCE_VERSION_2 if tree["fields"][name] is not None]
        for name in set(_SINCE_VERSION_2) - set(new):  # without them, older versions read the file
            del tree["fields"][name]
        version = FORMAT_VERSION if new else 1
        write_archive(path, {"format": FORMAT, "version": version, "model": tree}, arrays)

    def check_exposed(self, allow: bool = False, min_rows: int = MIN_COMPONENT_ROWS) -> None:
        """Raise an error if a mean is known to average fewer than `min_rows` rows."""
        for domain in (*self.sources, self.target):
            check_exposed(domain.mixture, allow, f"domain {domain.name!r}", min_rows)
        if self.imputer is not None:
            check_exposed(self.imputer, allow, "the imputer", min_rows)

    @classmethod
    def load(cls, path: str | Path) -> AdaptedModel:
        """Read a model written by `save`, bit for bit.

        Examples
        --------
        >>> import os, tempfile
        >>> from mixda import AdaptedModel, SourceOnly
        >>> from mixda.datasets import make_shifted_toy
        >>> task = make_shifted_toy(random_state=2).as_task()
        >>> estimator = SourceOnly().fit(task.X, task.y, sample_domain=task.sample_domain)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     estimator.save(os.path.join(folder, "m.mixda"))
        ...     model = AdaptedModel.load(os.path.join(folder, "m.mixda"))
        >>> model.method
        'SourceOnly'
        """
        return cls._from_archive(path, *read_archive(path, {FORMAT: FORMAT_VERSION}))

    @classmethod
    def _from_archive(cls, path: str | Path, header: dict[str, Any], arrays: Any) -> AdaptedModel:
        try:
            model = unpack(_renamed(header["model"]), arrays, _KINDS)
        except Exception as error:  # a forged header can fail in any constructor
            raise MixdaError(f"{path} does not hold a valid model: {error!s}.") from None
        if not isinstance(model, cls):
            raise MixdaError(f"{path} does not hold a valid model.")
        return model

    def report(
        self, path: str | Path, X: Any = None, y: Any = None, title: str | None = None
    ) -> Path:
        """Write the report, one HTML page, to `path`.

        Parameters
        ----------
        path : path
        X : array-like or DataFrame, optional
            Samples of the target; as in `predict_proba`.
        y : array-like, optional
            Their classes, used for the confusion matrix only.
        title : str, optional

        Returns
        -------
        Path
        """
        from mixda.report import write_report

        return write_report(self, path, X=X, y=y, title=title)


def load(path: str | Path) -> Mixture | AdaptedModel:
    """Open a file of mixda: a mixture (``.gmm``) or an adapted model (``.mixda``).

    The contents of the file decide, not its name. Reading never runs code from the file.

    Parameters
    ----------
    path : path

    Returns
    -------
    Mixture or AdaptedModel

    Examples
    --------
    >>> import os, tempfile
    >>> import mixda
    >>> p = mixda.Mixture([1.0], [[0.0]], [[1.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     p.save(os.path.join(folder, "p.gmm"))
    ...     mixda.load(os.path.join(folder, "p.gmm"))
    Mixture(n_components=1, n_features=1)
    """
    known = {FORMAT: FORMAT_VERSION, MIXTURE_FORMAT: MIXTURE_VERSION}
    header, arrays = read_archive(path, known)
    kind: Any = AdaptedModel if header["format"] == FORMAT else Mixture
    value: Mixture | AdaptedModel = kind._from_archive(path, header, arrays)
    return value


novelty_threshold = outlier_threshold  # an earlier name


_KINDS = (
    *(*RULES, Mixture, Dictionary, History, Domain),
    *(Reference, Column, Columns, AdaptedModel),
)


def _renamed(tree: Any) -> Any:
    """Return the tree of a file with today's names of its rules."""
    if isinstance(tree, list):
        return [_renamed(part) for part in tree]
    if not isinstance(tree, dict) or tree.keys() != {"kind", "fields"}:
        return tree
    fields = {name: _renamed(part) for name, part in tree["fields"].items()}
    return {"kind": FORMER_NAMES.get(tree["kind"], tree["kind"]), "fields": fields}


def _in_batches(function: Callable[[Array], Array], X: Array) -> Array:
    starts = range(0, len(X), _ROWS_PER_BATCH)
    batches: Array = namespace(X).concatenate(
        [function(X[i : i + _ROWS_PER_BATCH]) for i in starts]
    )
    return batches
