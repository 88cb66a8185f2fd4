"""All rows of large domains in the space where a method works, block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.typing import Array
from mixda.chunks import Domains, EncodedColumn, RowBlock, RowSource, map_rows
from mixda.estimators._gaps import empty_features, fill_features
from mixda.estimators.encoders import DomainEncoder
from mixda.mixture import Mixture, has_gaps


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Fills gaps, encodes the rows of one domain, and replaces classes by their positions.

    Attributes
    ----------
    encoder : DomainEncoder
    domain : int
    classes : ndarray of shape (nc,)
    imputer : Mixture or None
    empty : ndarray of bool, shape (d,), or None
        If not None, only these features are filled, and other gaps are kept.
    """

    encoder: DomainEncoder
    domain: int
    classes: NDArray[Any]
    imputer: Mixture | None = None
    empty: NDArray[np.bool_] | None = None

    def __call__(self, block: RowBlock) -> RowBlock:
        X = np.asarray(block.X)
        if self.imputer is not None and has_gaps(X):
            X = self._filled(X, self.imputer)
        Z = self.encoder.transform(X, np.full(len(X), self.domain))
        label = None
        if block.label is not None:
            places = {str(name): k for k, name in enumerate(self.classes.tolist())}
            codes = np.array([places.get(str(name), -1) for name in block.label.names], dtype=int)
            label = EncodedColumn(list(range(len(self.classes))), codes[block.label.codes])
        return replace(block, X=Z, label=label, domain=None)

    def _filled(self, X: Array, imputer: Mixture) -> Array:
        if self.empty is None:
            return imputer.impute(X)
        return fill_features(X, self.empty, imputer) if self.empty.any() else X


def encoded_streams(
    domains: Domains,
    encoder: DomainEncoder,
    classes: NDArray[Any],
    imputer: Mixture | None,
    keep_gaps: bool,
) -> dict[int, RowSource]:
    """Return all rows of each domain, as the encoder encodes them."""
    streams = {}
    for key, sample in domains.samples.items():
        empty = empty_features(sample.X) if keep_gaps else None
        function = EncodedRows(encoder, key, classes, imputer, empty)
        n_features = function(RowBlock(sample.X[:1])).X.shape[1]
        streams[key] = map_rows(domains.stream(key), function, n_features)
    return streams
