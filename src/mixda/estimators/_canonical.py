"""A canonical order of sources, classes and components, in which methods learn.

Rounding depends on the order of sums, random draws on the order of samples, and plans of nearly
equal cost can amplify both. With the same order inside, the result does not depend on the order in
which sources and classes are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.order import canonical_order, content_values
from mixda._core.typing import Array, Codes, Ids, Source
from mixda.dictionary import Dictionary, History
from mixda.mixture import Mixture


@dataclass(frozen=True, eq=False)
class CanonicalOrder:
    """Order of the sources and of the classes, by their values.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators._canonical import CanonicalOrder
    >>> low, high = (np.array([[1.0], [2.0]]), [0, 1]), (np.array([[5.0], [6.0]]), [0, 1])
    >>> order = CanonicalOrder.of_samples([low, high], 2)
    >>> other = CanonicalOrder.of_samples([high, low], 2)
    >>> bool((order.sources == other.sources[::-1]).all())
    True
    """

    sources: Codes
    classes: Codes

    @classmethod
    def of(cls, sources: Sequence[Mixture]) -> CanonicalOrder:
        """Return the order of labeled mixtures with the same classes."""
        values = content_values([p.means for p in sources])
        keys = [(p.n_components, p.weights @ v) for p, v in zip(sources, values, strict=True)]
        order = np.array(sorted(range(len(sources)), key=lambda i: keys[i]))
        mass = [p.weights[:, None] * np.asarray(p.labels) for p in sources]
        total = sum(mass[i].sum(axis=0) for i in order)
        sums = np.asarray(sum(mass[i].T @ values[i] for i in order))
        return cls(order, np.argsort(sums / np.maximum(total, 1e-300), kind="stable"))

    @classmethod
    def of_samples(cls, sources: Sequence[Source], n_classes: int) -> CanonicalOrder:
        """Return the order of samples with class codes."""
        values = content_values([X for X, _ in sources])
        keys = [(len(v), v.mean()) for v in values]
        order = np.array(sorted(range(len(sources)), key=lambda i: keys[i]))
        codes = np.concatenate([sources[i][1] for i in order])
        sums = np.bincount(codes, np.concatenate([values[i] for i in order]), n_classes)
        counts = np.maximum(np.bincount(codes, minlength=n_classes), 1)
        return cls(order, np.argsort(sums / counts, kind="stable"))

    @property
    def ranks(self) -> Codes:
        """Position of each class in the canonical order, shape (nc,)."""
        return np.argsort(self.classes)

    def sorted_samples(self, sources: Sequence[Source]) -> list[Source]:
        """Return the sources in canonical order, with codes of the classes in that order."""
        return [(sources[i][0], self.ranks[sources[i][1]]) for i in self.sources]

    def sorted_sources(self, sources: Sequence[Mixture]) -> list[Mixture]:
        """Return the sources, their classes and their components in canonical order."""
        return [self._sorted(sources[i]) for i in self.sources]

    def components(self, p: Mixture) -> Codes:
        """Return the canonical order of the components of a source: by class, then by value."""
        classes = np.asarray(p.labels)[:, self.classes].argmax(axis=1)
        order = canonical_order(np.hstack([p.means, p.stds]))
        return order[np.argsort(classes[order], kind="stable")]

    def _sorted(self, p: Mixture) -> Mixture:
        order = self.components(p)
        return Mixture(
            p.weights[order],
            p.means[order],
            p.stds[order],
            np.asarray(p.labels)[order][:, self.classes],
            np.arange(len(self.classes)),
            p.feature_names,
            p.info,
        )

    def most_probable(self, mixture: Mixture) -> Codes:
        """Return the given code of the most probable class of components in canonical order."""
        codes: Codes = self.classes[np.asarray(mixture.labels).argmax(axis=1)]
        return codes

    def with_given_classes(self, mixture: Mixture, names: NDArray[Any]) -> Mixture:
        """Return a mixture over the classes in canonical order with the given ones, `names`."""
        labels = np.asarray(mixture.labels)[:, self.ranks]
        return replace(mixture, labels=labels, classes=names)

    def fits(self, dictionary: Dictionary, names: NDArray[Any]) -> bool:
        """Whether a dictionary is over these numbers of sources and over the classes `names`."""
        known = [atom.classes for atom in dictionary.atoms]
        same = all(c is not None and np.array_equal(c, names) for c in known)
        return same and len(dictionary.coordinates) == len(self.sources) + 1

    def sorted_dictionary(self, dictionary: Dictionary) -> Dictionary:
        """Return a dictionary of the given sources and classes in canonical order."""
        return self._permuted(dictionary, self.sources, self.classes, np.arange(len(self.classes)))

    def restored(self, dictionary: Dictionary, names: NDArray[Any]) -> Dictionary:
        """Undo `sorted_dictionary`; `names` are the classes in the given order."""
        return self._permuted(dictionary, np.argsort(self.sources), self.ranks, names)

    @staticmethod
    def _permuted(
        dictionary: Dictionary, sources: Codes, classes: Codes, names: NDArray[Any]
    ) -> Dictionary:
        rows = np.append(sources, len(sources))  # the target is the last domain
        history = dictionary.history
        return replace(
            dictionary,
            atoms=tuple(
                replace(atom, labels=np.asarray(atom.labels)[:, classes], classes=names)
                for atom in dictionary.atoms
            ),
            coordinates=dictionary.coordinates[rows],
            alignments=dictionary.alignments[rows],
            history=History(
                history.loss,
                history.domain_loss[:, rows],
                history.coordinates[:, rows],
                history.seconds,
                None if history.nll is None else history.nll[:, rows],
            ),
        )


def sort_rows(
    X: Array, codes: Codes, ids: Ids, weight: Array | None
) -> tuple[Array, Codes, Ids, Array | None]:
    """Return rows of all domains, codes of source rows, ids and weights in canonical order.

    Equal rows are sorted by domain, by class and by weight, the first two in canonical order.
    """
    all_codes = np.full(len(X), -1)
    all_codes[ids >= 0] = codes
    rows = canonical_order(X)
    names = np.unique(ids[ids >= 0])
    own = [rows[ids[rows] == k] for k in names]
    found = CanonicalOrder.of_samples([(X[i], all_codes[i]) for i in own], int(codes.max()) + 1)
    domain_rank, class_rank = np.full(len(X), -1), np.full(len(X), -1)
    for rank, i in enumerate(found.sources):
        domain_rank[own[i]] = rank
    class_rank[ids >= 0] = found.ranks[codes]
    ties = [domain_rank, class_rank] if weight is None else [domain_rank, class_rank, weight]
    order = canonical_order(X, np.lexsort(ties[::-1]).argsort())
    ids = ids[order]
    weight = None if weight is None else weight[order]
    return X[order], all_codes[order][ids >= 0], ids, weight
