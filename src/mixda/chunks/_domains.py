"""Sources and a target of any size, as the estimators take them: a bounded sample, and all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_positive_int
from mixda.chunks._dask import is_dask
from mixda.chunks._derived import one_domain, select_domains
from mixda.chunks._sample import RowSample, sample_rows
from mixda.chunks._sources import RowSource, from_dask
from mixda.tables import one_kind_of_classes

_MAX_ROWS = 100_000  # of each domain
_MIN_ROWS = 1_000
_MAX_VALUES = 1 << 26  # of all domains together, 512 MB


@dataclass(frozen=True, eq=False)
class Domains:
    """Labeled sources and an unlabeled target of any size, for ``fit`` of an estimator.

    Mixtures are fitted to all rows, which are read once per iteration. Everything else uses a
    sample of each domain, see `sample_rows`.

    Parameters
    ----------
    rows : mapping of int to RowSource
        Ids of at least 0 are sources, which need classes; a negative id is the target, whose
        classes are never read.
    max_rows : int, optional
        Most rows of each domain that are held in memory. Default: 100,000, or fewer if there are
        so many features and domains that this takes more than 512 MB.
    n_jobs, client
        Where rows are read, see `mixda.fit_mixture`.
    verbose : bool
        Show progress.

    Examples
    --------
    >>> import mixda
    >>> from mixda import chunks
    >>> from mixda.datasets import make_shifted_toy
    >>> toy = make_shifted_toy(random_state=2).as_task()
    >>> rows = {k: chunks.from_arrays(toy.X[i], toy.y[i]) for k in (1, 2, 3, -4)
    ...         for i in [toy.sample_domain == k]}
    >>> model = mixda.GMMWBT(random_state=0).fit(chunks.Domains(rows, max_rows=100))
    >>> model.score(toy.X_target, toy.y_target) > 0.99
    True
    """

    rows: Mapping[int, RowSource]
    max_rows: int | None = None
    n_jobs: int | None = None
    client: Any = None
    verbose: bool = False

    def __post_init__(self) -> None:
        rows: dict[int, RowSource] = {}
        for key, source in self.rows.items():
            if isinstance(key, bool) or not isinstance(key, int | np.integer):
                raise MixdaError(
                    "domains must have integer ids, at least 0 for sources and negative for the "
                    f"target, got {key!r}."
                )
            if not isinstance(source, RowSource):
                raise MixdaError(
                    f"domain {key} must be a RowSource, got {type(source).__name__}; make one with "
                    "mixda.chunks, for example chunks.from_files(folder, label=...)."
                )
            if key >= 0 and not source.has_label:
                raise MixdaError(f"source {key} has no classes; make it with a label.")
            if source.has_domain or (key < 0 and source.has_label):
                source = one_domain(source, labeled=bool(key >= 0))
            rows[int(key)] = source
        if sum(key < 0 for key in rows) > 1:
            raise MixdaError(
                f"domains have several targets ({sorted(key for key in rows if key < 0)}); data of "
                "any size need one fit for each."
            )
        widths = {key: source.n_features for key, source in rows.items()}
        if len(set(widths.values())) != 1:
            raise MixdaError(
                f"all domains must have the same features, got {widths} features by id."
            )
        names = {source.feature_names for source in rows.values()} - {None}
        if len(names) > 1:
            first, second, *_ = sorted(names, key=str)
            raise MixdaError(
                f"all domains must have the same features in the same order, got {first} and "
                f"{second}; give the columns to chunks.from_files."
            )
        if self.max_rows is not None:
            check_positive_int(self.max_rows, "max_rows")
        object.__setattr__(self, "rows", rows)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if any domain has them."""
        named = (source.feature_names for source in self.rows.values() if source.feature_names)
        return next(named, None)

    @property
    def most_rows(self) -> int:
        """Most rows of each domain that are held in memory."""
        if self.max_rows is not None:
            return self.max_rows
        return default_max_rows(next(iter(self.rows.values())).n_features, len(self.rows))

    @cached_property
    def samples(self) -> dict[int, RowSample]:
        """The sample of each domain; reads all rows once."""
        samples = {}
        for key, source in self.rows.items():
            parts = sample_rows(
                source,
                self.most_rows,
                n_jobs=self.n_jobs,
                client=self.client,
                verbose=self.verbose,
            )
            samples[key] = parts[None]
        return samples

    def stream(self, key: int) -> RowSource:
        """Return all rows of a domain; partitions that have none are left out."""
        source = self.rows[key]
        partitions = [source.partitions[index] for index in self.samples[key].partitions]
        return replace(source, partitions=tuple(partitions))

    @property
    def is_thinned(self) -> bool:
        """Whether some domain has more rows than its sample."""
        return any(sample.is_thinned for sample in self.samples.values())

    def arrays(self) -> tuple[Array, NDArray[Any], NDArray[np.int64]]:
        """Return the samples as `X`, `y` (invented for the target) and `sample_domain`."""
        X = np.vstack([sample.X for sample in self.samples.values()])
        labels = [s.y for key, s in self.samples.items() if key >= 0 and s.y is not None]
        if not labels:
            raise MixdaError("there is no source (no id of at least 0); give at least one.")
        if any(self.rows[key].text_labels for key in self.rows if key >= 0):
            labels = one_kind_of_classes(labels)
        parts = iter(labels)
        invented = labels[0][:1]
        y = np.concatenate(
            [
                next(parts) if key >= 0 else np.repeat(invented, len(sample.X))
                for key, sample in self.samples.items()
            ]
        )
        return X, y, np.repeat(list(self.samples), [len(s.X) for s in self.samples.values()])

    def thinned(self, max_rows: int) -> Domains:
        """Return the same rows with smaller samples, drawn from those of this object."""
        fewer = replace(self, max_rows=max_rows)
        samples = {key: sample.thinned(max_rows) for key, sample in self.samples.items()}
        fewer.__dict__["samples"] = samples
        return fewer


def default_max_rows(n_features: int, n_domains: int) -> int:
    """Return how many rows of each domain are held in memory by default."""
    fitting = _MAX_VALUES // (n_features * n_domains)
    return min(_MAX_ROWS, max(_MIN_ROWS, fitting))


def as_domains(X: Any, y: Any = None, sample_domain: Any = None) -> Domains | None:
    """Return data of any size as `Domains`; None if `X` is an array, a dataframe or the like.

    `X` may be `Domains`, a mapping of ids to sources, a `RowSource` whose domains `sample_domain`
    maps to ids, or a Dask collection with Dask arrays or columns `y` and `sample_domain`.
    """
    if isinstance(X, Domains) or _is_mapping_of_sources(X):
        if y is not None or sample_domain is not None:
            raise MixdaError(
                "y and sample_domain must be None if X holds the classes and domains itself."
            )
        return X if isinstance(X, Domains) else Domains(X)
    if is_dask(X):
        given, domain = X, _dask_domain(sample_domain)
        X, y = from_dask(X, y, domain), None
        if domain is None:
            return Domains({0: X})
        sample_domain = _dask_ids(given, sample_domain)
    if not isinstance(X, RowSource):
        return None
    if y is not None:
        raise MixdaError("y must be None if X is a RowSource, which has its own classes.")
    if sample_domain is None:
        return Domains({0: X})
    if not isinstance(sample_domain, Mapping) or not X.has_domain:
        raise MixdaError(
            "for a RowSource with domains, sample_domain must map their names to ids, at least 0 "
            "for sources and negative for the target, such as {'lab': 0, 'plant': -1}."
        )
    names: dict[int, list[str]] = {}
    for name, key in sample_domain.items():
        names.setdefault(int(key), []).append(str(name))
    return Domains({k: select_domains(X, names[k], labeled=k >= 0) for k in sorted(names)})


def _is_mapping_of_sources(X: Any) -> bool:
    return isinstance(X, Mapping) and any(isinstance(value, RowSource) for value in X.values())


def _dask_domain(sample_domain: Any) -> Any:
    """Return ids as text, as names of domains; the name of a column stays as it is."""
    if sample_domain is None or isinstance(sample_domain, str):
        return sample_domain
    if np.ndim(sample_domain) != 1:
        raise MixdaError("sample_domain of a Dask collection must be one id per row, or a column.")
    return sample_domain


def _dask_ids(X: Any, sample_domain: Any) -> dict[str, int]:
    """Return the ids that occur, by their names."""
    if isinstance(sample_domain, str):
        values = X[sample_domain].unique().compute()
    elif is_dask(sample_domain):
        import dask.array

        values = dask.array.unique(sample_domain).compute()
    else:
        values = np.unique(sample_domain)
    try:
        return {str(value): int(value) for value in values}
    except ValueError:
        raise MixdaError(
            "sample_domain must be integers, at least 0 for sources and negative for the target, "
            f"got {list(values)[:3]!r}."
        ) from None
