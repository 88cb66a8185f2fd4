"""The adapted classifier as a value and as a file (.mixda): `adapt` makes it, `predict` uses it.

A model is numbers only: rules, mixtures and names. It holds no sample of any domain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.archive import check_json, pack, read_archive, unpack, write_archive
from mixda._core.errors import MixdaError
from mixda._core.validation import Array, check_array, check_names, check_X
from mixda.dictionary import Dictionary, History
from mixda.mixture import FORMAT as MIXTURE_FORMAT
from mixda.mixture import FORMAT_VERSION as MIXTURE_VERSION
from mixda.mixture import Mixture, frozen
from mixda.rules import RULES, Rule

FORMAT = "mixda.model"
FORMAT_VERSION = 1

_ROWS = 1 << 14  # of samples at once, so that memory does not grow with their number
_DRAWS = 10_000  # of the known mixtures: ten of them lie below the novelty threshold
_NOVEL = 1e-3


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain as a model remembers it.

    Attributes
    ----------
    name : str
    mixture : Mixture
        In the *encoded* space of the model; labeled for sources.
    n_samples : int or None
        How many samples it was fitted to, if that is known.
    """

    name: str
    mixture: Mixture
    n_samples: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.mixture, Mixture):
            raise MixdaError("a domain needs a name and a mixture.")
        if not isinstance(self.n_samples, (int, type(None))):
            raise MixdaError(f"n_samples must be an integer or None, got {self.n_samples!r}.")


@dataclass(frozen=True, eq=False)
class AdaptedModel:
    """A classifier of one target, with all that a report says about it.

    Made by ``estimator.to_model()``. It predicts what the estimator predicts for the target, is
    written to a file that runs no code when it is opened, and holds no sample, only mixtures. (A
    component that was fitted to a single sample has that sample as its mean; where this matters,
    fit fewer components.)

    Attributes
    ----------
    feature_names : tuple of str
        The columns of `X`, in order; "x0", "x1", … if the user gave none.
    classes : ndarray of shape (nc,)
    method : str
        Name of the estimator: "GMMDaDiL", …
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
        Log-density under which a sample is far from everything known; see `novelty`.
    trust : dict or None
        JSON: {"accuracy", "low", "high", "level", "declined", "reason", "candidates"}.
    settings : dict
        JSON: parameters, seed, versions, date; of a committee also its experts, the first of which
        the mixtures, the dictionary and the plan are of.

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
    >>> model.novelty([[1000.0, 0.0]])
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
    trust: dict[str, Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.feature_names)
        if len(set(names)) != len(names) or not names:
            raise MixdaError(f"feature_names must be different names, got {names!r}.")
        plan = None if self.plan is None else frozen(check_array(self.plan, "plan", ndim=2))
        trust = None if self.trust is None else check_json(self.trust, "trust")
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
        self._check_parts()

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, shape (n, nc), columns as in `classes`.

        Parameters
        ----------
        X : array-like of shape (n, d) or DataFrame
            An array with the columns in the order of `feature_names`, or a frame that has
            columns of these names, in any order and among others.
        """
        return _by_rows(self.rule, self.samples(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row, shape (n,); `X` as in `predict_proba`."""
        winners: NDArray[Any] = self.classes[self.predict_proba(X).argmax(axis=1)]
        return winners

    def novelty(self, X: Any) -> NDArray[np.bool_]:
        r"""Return which rows are far from everything the model knows, shape (n,).

        .. math:: \max_\ell \log q_\ell(\phi(x)) < \tau

        over the mixtures of the target and of the sources, in the encoded space. The threshold
        :math:`\tau`, `novelty_threshold`, is what one in a thousand samples of these mixtures
        falls under. The target that the model was adapted to is known, and with it any new class
        in it: this is about later rows. `X` as in `predict_proba`.
        """
        mixtures = [domain.mixture for domain in (*self.sources, self.target)]

        def density(X: Array) -> Array:
            return _largest_density(mixtures, X if self.encoder is None else self.encoder(X))

        return _by_rows(density, self.samples(X)) < self.novelty_threshold

    def samples(self, X: Any) -> Array:
        """Return `X` as an array of shape (n, d) with the columns of `feature_names`."""
        columns = [name if isinstance(name, str) else None for name in getattr(X, "columns", ())]
        unnamed = self.feature_names == default_names(len(self.feature_names))
        named = bool(columns) and None not in columns
        if named and not (unnamed and not set(columns) & set(self.feature_names)):
            missing = [name for name in self.feature_names if name not in columns]
            if missing:
                raise MixdaError(
                    f"X has no column {missing[0]!r} ({len(missing)} of {len(self.feature_names)} "
                    f"are missing); the model needs {', '.join(self.feature_names[:20])}."
                )
            X = X[list(self.feature_names)]
        return check_X(X, n_features=len(self.feature_names))

    def save(self, path: str | Path) -> None:
        """Write the model to `path` (customarily ``.mixda``), atomically.

        The file is a NumPy ``.npz`` archive without pickles: the arrays of all parts, named by
        where they stand (``target.mixture.means``), and `header`, a JSON text with the rest and a
        SHA-256 of it all. It holds no sample.
        """
        tree, arrays = pack(self, _KINDS)
        write_archive(path, {"format": FORMAT, "version": FORMAT_VERSION, "model": tree}, arrays)

    @classmethod
    def load(cls, path: str | Path) -> AdaptedModel:
        """Read a model written by `save`; bit for bit the same.

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
            model = unpack(header["model"], arrays, _KINDS)
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
            Their classes, only for the confusion matrix.
        title : str, optional

        Returns
        -------
        Path
        """
        from mixda.report import write_report

        return write_report(self, path, X=X, y=y, title=title)

    def _check_parts(self) -> None:
        """Say which parts do not fit together, instead of failing in a prediction."""
        rows = np.zeros((1, len(self.feature_names)))
        with np.errstate(all="ignore"):
            proba = self.rule(rows)
            encoded = rows if self.encoder is None else self.encoder(rows)
        if proba.shape != (1, len(self.classes)) or not np.isfinite(proba).all():
            raise MixdaError(
                f"the rule gives an array of shape {proba.shape} for one row of "
                f"{rows.shape[1]} features and {len(self.classes)} classes."
            )
        domains = (*self.sources, self.target)
        atoms = () if self.dictionary is None else self.dictionary.atoms
        adapted = () if self.labeled_target is None else (self.labeled_target,)
        for mixture in (*(domain.mixture for domain in domains), *atoms, *adapted):
            if mixture.n_features != encoded.shape[1]:
                raise MixdaError(
                    f"a mixture has {mixture.n_features} features, but the encoder gives "
                    f"{encoded.shape[1]}."
                )
        if self.dictionary is not None:
            _check_dictionary(self.dictionary)


def load(path: str | Path) -> Mixture | AdaptedModel:
    """Open a file of mixda: a mixture (``.gmm``) or an adapted model (``.mixda``).

    What the file is decides, not its name. Reading never runs anything from the file.

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


def novelty_threshold(mixtures: Sequence[Mixture]) -> float:
    """Return the log-density that one in a thousand samples of the mixtures falls under.

    The density is the largest among the mixtures; samples are drawn from all in equal numbers,
    always the same ones.

    Examples
    --------
    >>> from mixda import Mixture
    >>> from mixda.model import novelty_threshold
    >>> round(novelty_threshold([Mixture([1.0], [[0.0]], [[1.0]])]))  # beyond 3.3 deviations
    -6
    """
    rng = np.random.default_rng(0)
    n = -(-_DRAWS // len(mixtures))
    found = []
    for p in mixtures:
        for rows in np.array_split(np.arange(n), -(-n * p.n_features // (1 << 22))):
            found.append(_largest_density(mixtures, p.sample(max(1, len(rows)), rng)[0]))
    return float(np.quantile(np.concatenate(found), _NOVEL))


def default_names(n_features: int) -> tuple[str, ...]:
    """Return the names of features that have none: "x0", "x1", …."""
    return tuple(f"x{i}" for i in range(n_features))


_KINDS = (*RULES, Mixture, Dictionary, History, Domain, AdaptedModel)


def _by_rows(function: Callable[[Array], Array], X: Array) -> Array:
    return np.concatenate([function(X[i : i + _ROWS]) for i in range(0, len(X), _ROWS)])


def _largest_density(mixtures: Sequence[Mixture], Z: Array) -> Array:
    largest = mixtures[0].log_prob(Z)
    for p in mixtures[1:]:
        np.maximum(largest, p.log_prob(Z), out=largest)
    return largest


def _check_dictionary(dictionary: Dictionary) -> None:
    """Refuse a dictionary of a forged file; one that was learned is right by construction."""
    coordinates, alignments = dictionary.coordinates, dictionary.alignments
    sizes = {atom.n_components for atom in dictionary.atoms}
    labeled = all(atom.is_labeled for atom in dictionary.atoms)
    shape = (len(coordinates), len(dictionary.atoms), max(sizes, default=0))
    if (
        not labeled
        or len(sizes) != 1
        or coordinates.shape != shape[:2]
        or alignments.shape != shape
        or alignments.dtype.kind not in "iu"
        or alignments.min() < 0
        or alignments.max() >= shape[2]
        or not isinstance(dictionary.history, History)
    ):
        raise MixdaError("the parts of its dictionary do not fit together.")
