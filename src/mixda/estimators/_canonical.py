"""A canonical order of sources, classes and components, in which GMM-DaDiL learns.

Rounding depends on the order of sums, and plans of nearly equal cost can amplify it. With the same
order inside, the result does not depend on the order in which sources and classes are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.typing import Codes
from mixda.dictionary import Dictionary, History
from mixda.mixture import Mixture


@dataclass(frozen=True, eq=False)
class CanonicalOrder:
    """Order of the sources and of the classes, by their values.

    Examples
    --------
    >>> from mixda import Mixture
    >>> from mixda.estimators._canonical import CanonicalOrder
    >>> p = Mixture([0.5, 0.5], [[9.0], [1.0]], [[1.0], [1.0]], [[1, 0], [0, 1]], ["a", "b"])
    >>> order = CanonicalOrder.of([p])
    >>> order.classes, order.sorted_sources([p])[0].means.ravel()
    (array([1, 0]), array([1., 9.]))
    """

    sources: Codes
    classes: Codes

    @classmethod
    def of(cls, sources: Sequence[Mixture]) -> CanonicalOrder:
        """Return the order of labeled mixtures with the same classes."""
        means = [(p.n_components, *(p.weights @ p.means)) for p in sources]
        order = np.array(sorted(range(len(sources)), key=lambda i: means[i]))
        mass = [p.weights[:, None] * np.asarray(p.labels) for p in sources]
        total = sum(mass[i].sum(axis=0) for i in order)
        centers = sum(mass[i].T @ sources[i].means for i in order)
        centers = np.asarray(centers) / np.maximum(total, 1e-300)[:, None]
        return cls(order, np.lexsort(centers.T[::-1]))

    def sorted_sources(self, sources: Sequence[Mixture]) -> list[Mixture]:
        """Return the sources, their classes and their components in canonical order."""
        return [self._sorted(sources[i]) for i in self.sources]

    def _sorted(self, p: Mixture) -> Mixture:
        labels = np.asarray(p.labels)[:, self.classes]
        keys = np.hstack([p.means, p.stds])[:, ::-1].T
        order = np.lexsort((*keys, labels.argmax(axis=1)))
        return Mixture(
            p.weights[order],
            p.means[order],
            p.stds[order],
            labels[order],
            np.arange(len(self.classes)),
            p.feature_names,
            p.info,
        )

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
        return self._permuted(dictionary, np.argsort(self.sources), np.argsort(self.classes), names)

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
