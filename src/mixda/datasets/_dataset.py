"""`DomainDataset`, which every loader returns, and the location of data files.

A `DomainDataset` has the labels of all domains. `DomainDataset.as_task` masks those of the target.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_array

Codes = NDArray[np.int64]

MASKED = -1


class DomainTask(NamedTuple):
    """An adaptation task: fit on the first three fields, score on the last.

    ``estimator.fit(task.X, task.y, sample_domain=task.sample_domain)`` and
    ``estimator.score(task.X_target, task.y_target)``.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Samples of all domains.
    y : ndarray of shape (n,)
        Class codes of source rows; -1 for target rows.
    sample_domain : ndarray of shape (n,)
        Domain ids as in SKADA: k ≥ 1 for source rows, -k for target rows.
    y_target : ndarray of shape (n_target,)
        Class codes of the target rows, in the order of `X_target`.
    """

    X: Array
    y: Codes
    sample_domain: Codes
    y_target: Codes

    @property
    def X_target(self) -> Array:
        """Samples of the target, shape (n_target, d)."""
        return self.X[self.sample_domain < 0]


@dataclass(frozen=True, eq=False, repr=False)
class DomainDataset:
    """Labeled samples from several domains.

    The arrays are read-only. `X` is not copied unless necessary, so changes to the original array
    may change the data set.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
        Class codes ``0 … nc-1``, positions in `class_names`.
    domain : array-like of shape (n,)
        Domain codes ``0 … N-1``, positions in `domain_names`.
    domain_names, class_names : sequence of str
    description : str
        Content, origin and preprocessing of the data.
    block : array-like of shape (n,), optional
        Rows of different blocks share no raw data: no overlapping windows, no common run, not the
        same object in two domains. Split by block rather than by row: pass it to scikit-learn's
        splitters as ``groups``.
    sample_shape : tuple of int, optional
        Shape of a sample before flattening, for instance (variables, steps) of a time series; the
        ``input_shape`` of deep backbones. By default ``(d,)``.
    feature_names : sequence of str, optional
        Names of the columns of `X`.

    Examples
    --------
    >>> from mixda.datasets import DomainDataset
    >>> data = DomainDataset([[0.0], [9.0], [1.0], [8.0]], [0, 1, 0, 1], [0, 0, 1, 1],
    ...                      ["lab", "plant"], ["ok", "fault"])
    >>> data
    DomainDataset(4 samples, 1 features, domains=['lab', 'plant'], classes=['ok', 'fault'])
    >>> X, y, sample_domain, y_target = data.as_task("plant")
    >>> y.tolist(), sample_domain.tolist(), y_target.tolist()
    ([0, 1, -1, -1], [1, 1, -2, -2], [0, 1])
    """

    X: Array
    y: Codes
    domain: Codes
    domain_names: tuple[str, ...]
    class_names: tuple[str, ...]
    description: str = ""
    block: Codes | None = None
    sample_shape: tuple[int, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        X = check_array(self.X, "X", ndim=2)
        shape = tuple(int(size) for size in self.sample_shape) or (X.shape[1],)
        if math.prod(shape) != X.shape[1]:
            raise MixdaError(
                f"sample_shape must have a product of {X.shape[1]}, the features of X, got {shape}."
            )
        object.__setattr__(self, "sample_shape", shape)
        names = {
            "domain_names": tuple(str(name) for name in self.domain_names),
            "class_names": tuple(str(name) for name in self.class_names),
            "feature_names": tuple(str(name) for name in self.feature_names),
        }
        if len(set(names["domain_names"])) < len(names["domain_names"]):
            raise MixdaError(f"domain_names must be distinct, got {list(names['domain_names'])}.")
        if len(names["feature_names"]) not in (0, X.shape[1]):
            raise MixdaError(
                f"feature_names must hold {X.shape[1]} names, one per column of X, or none, got "
                f"{len(names['feature_names'])}."
            )
        arrays: dict[str, NDArray[Any] | None] = {
            "X": X,
            "y": _check_codes(self.y, "y", len(X), len(names["class_names"])),
            "domain": _check_codes(self.domain, "domain", len(X), len(names["domain_names"])),
            "block": None
            if self.block is None
            else _check_codes(self.block, "block", len(X), None),
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, _read_only(array))
        for name, values in names.items():
            object.__setattr__(self, name, values)

    def domain_index(self, domain: str | int) -> int:
        """Return the code of a domain given by name or code (-1 is the last)."""
        if isinstance(domain, str):
            if domain in self.domain_names:
                return self.domain_names.index(domain)
        elif -len(self.domain_names) <= domain < len(self.domain_names):
            return int(domain) % len(self.domain_names)
        raise MixdaError(
            f"domain must be one of {list(self.domain_names)} or a code below "
            f"{len(self.domain_names)}, got {domain!r}."
        )

    def samples_of(self, domain: str | int) -> tuple[Array, Codes]:
        """Return the samples and class codes of a domain, given by name or code.

        Examples
        --------
        >>> from mixda.datasets import make_toy
        >>> X, y = make_toy(random_state=0).samples_of("target")
        >>> X.shape, y.shape
        ((1000, 2), (1000,))
        """
        rows = self.domain == self.domain_index(domain)
        return self.X[rows], self.y[rows]

    def as_task(self, target: str | int = -1) -> DomainTask:
        """Use one domain as the unlabeled target and all others as sources.

        The target rows of `y` are -1, so that target labels cannot leak into training. They are
        returned separately in `y_target`.

        Parameters
        ----------
        target : str or int
            Name or code of the target domain; by default the last one.

        Returns
        -------
        DomainTask
            ``(X, y, sample_domain, y_target)``, with the rows of `X` in the same order as here.

        Examples
        --------
        >>> from mixda.datasets import make_toy
        >>> task = make_toy(random_state=0).as_task()
        >>> sorted(set(task.sample_domain.tolist())), set(task.y[task.sample_domain < 0].tolist())
        ([-4, 1, 2, 3], {-1})
        """
        held_out = self.domain == self.domain_index(target)
        number = self.domain + 1
        return DomainTask(
            X=self.X,
            y=np.where(held_out, MASKED, self.y),
            sample_domain=np.where(held_out, -number, number),
            y_target=self.y[held_out],
        )

    def __repr__(self) -> str:
        return (
            f"DomainDataset({len(self.X)} samples, {self.X.shape[1]} features, "
            f"domains={list(self.domain_names)}, classes={list(self.class_names)})"
        )


def data_file(name: str, data_home: str | Path | None = None) -> Path:
    """Return the path of a file in `data_home`, by default in the folder ``MIXDA_DATA``."""
    home = data_home if data_home is not None else os.environ.get("MIXDA_DATA")
    if home is None or str(home) == "":
        raise MixdaError(
            f"The data folder is not set. Pass data_home, or set the environment variable "
            f"MIXDA_DATA, to the folder that contains {name}."
        )
    path = Path(home).expanduser() / name
    if not path.is_file():
        raise MixdaError(
            f"{path} does not exist. Put {name} there, or set data_home or MIXDA_DATA to the "
            "folder that contains it."
        )
    return path


def _check_codes(values: Any, name: str, size: int, n_names: int | None) -> Codes:
    codes = np.asarray(values)
    if codes.dtype.kind not in "iu" or codes.shape != (size,):
        raise MixdaError(
            f"{name} must hold {size} integer codes, one per row of X, got dtype {codes.dtype} and "
            f"shape {codes.shape}."
        )
    if n_names is not None and size and not (codes.min() >= 0 and codes.max() < n_names):
        raise MixdaError(
            f"{name} must hold codes from 0 to {n_names - 1}, got values from "
            f"{codes.min()} to {codes.max()}."
        )
    return codes.astype(np.int64)


def _read_only(array: NDArray[Any] | None) -> NDArray[Any] | None:
    if array is None:
        return None
    view: NDArray[Any] = array.view()
    view.flags.writeable = False
    return view
