"""The value `Dictionary`: atoms, the coordinates of the domains, and the learning history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.notebook import summary_table
from mixda._core.text import listed
from mixda._core.typing import Array, Codes
from mixda._core.validation import check_simplex
from mixda.barycenters import barycenter
from mixda.mixture import Mixture


@dataclass(frozen=True, eq=False)
class Record:
    """One row of a `History`."""

    loss: float
    domain_loss: Array
    coordinates: Array
    seconds: float
    nll: Array | None = None


@dataclass(frozen=True, eq=False)
class History:
    """The course of learning: one row for the start and one per step (DaDiL: per epoch).

    Attributes
    ----------
    loss : ndarray of shape (n,)
        Sum over the domains.
    domain_loss : ndarray of shape (n, L)
        Sources first, target last.
    coordinates : ndarray of shape (n, L, C)
    seconds : ndarray of shape (n,)
        Since learning started.
    nll : ndarray of shape (n, L), or None
        Mean negative log-likelihood of the given `samples`.
    """

    loss: Array
    domain_loss: Array
    coordinates: Array
    seconds: Array
    nll: Array | None = None

    @classmethod
    def stack(cls, records: Sequence[Record]) -> History:
        """Return the history that consists of these rows."""
        names = [field.name for field in fields(Record)]
        columns = {name: [getattr(record, name) for record in records] for name in names}
        return cls(**{k: np.stack(v) for k, v in columns.items() if v[0] is not None})


@dataclass(frozen=True, eq=False, repr=False)
class Dictionary:
    """Atoms, and the barycentric coordinates that express the domains in them.

    Attributes
    ----------
    atoms : tuple of C Mixture
        Labeled, all with K components.
    coordinates : ndarray of shape (L, C)
        One row per domain: sources in the given order, then the target. Rows sum to one.
    beta : float or "max"
        Weight of the labels in all plans.
    alignments : ndarray of shape (L, C, K)
        ``alignments[l, c, j]`` is the component of atom c that component j of reconstruction l
        averages.
    history : History
    """

    atoms: tuple[Mixture, ...]
    coordinates: Array
    beta: float | str
    alignments: Codes
    history: History

    @property
    def target(self) -> Mixture:
        """The reconstruction of the target, a labeled mixture."""
        return self.reconstruct(-1)

    def reconstruct(self, domain: int | ArrayLike) -> Mixture:
        r"""Barycenter of the atoms, :math:`\mathcal{B}(\lambda, \mathcal{P})`.

        Atoms are aligned with uniform weights. Learned weights are then averaged along the
        alignment, like means, deviations and labels.

        Parameters
        ----------
        domain : int or array-like of shape (C,)
            Index of a domain (-1 is the target), or any barycentric coordinates.

        Returns
        -------
        Mixture

        Examples
        --------
        >>> from mixda import Mixture, learn_dictionary
        >>> p = Mixture([0.5, 0.5], [[0.0], [8.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
        >>> q = Mixture([0.5, 0.5], [[2.0], [10.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
        >>> t = Mixture([0.5, 0.5], [[1.0], [9.0]], [[1.0], [1.0]])
        >>> d = learn_dictionary([p, q], t, n_atoms=2)
        >>> d.reconstruct([0.5, 0.5]).means.round(2).ravel()
        array([1., 9.])
        """
        if isinstance(domain, (int, np.integer)):
            if not -len(self.coordinates) <= domain < len(self.coordinates):
                raise MixdaError(
                    f"domain={domain} is out of range: there are {len(self.coordinates)} domains, "
                    "and the last is the target."
                )
            return self._average(self.coordinates[domain], self.alignments[domain])
        lam = check_simplex(domain, "domain", len(self.atoms))
        nearest = int(((self.coordinates - lam) ** 2).sum(axis=1).argmin())
        K = self.atoms[0].n_components
        uniform = [replace(atom, weights=np.full(K, 1.0 / K)) for atom in self.atoms]
        start = self._average(lam, self.alignments[nearest])
        start = replace(start, weights=uniform[0].weights)
        plans = barycenter(uniform, lam, beta=self.beta, init=start).plans
        return self._average(lam, np.stack([plan.argmax(axis=1) for plan in plans]))

    def _average(self, lam: Array, alignment: Codes) -> Mixture:
        def mean(name: str) -> Array:
            parts = zip(lam, self.atoms, alignment, strict=True)
            total: Array = sum(x * getattr(atom, name)[columns] for x, atom, columns in parts)
            return total

        weights, labels = mean("weights"), mean("labels")
        labels = labels / labels.sum(axis=1, keepdims=True)
        first = self.atoms[0]
        named = first.classes, first.feature_names
        return Mixture(weights / weights.sum(), mean("means"), mean("stds"), labels, *named)

    def __repr__(self) -> str:
        n_domains, n_atoms = self.coordinates.shape
        size = self.atoms[0].n_components
        return f"Dictionary(n_atoms={n_atoms}, n_components={size}, n_domains={n_domains})"

    def _repr_html_(self) -> str:
        loss = self.history.loss
        shares = [f"atom {c + 1}: {share:.0%}" for c, share in enumerate(self.coordinates[-1])]
        rows = [
            ("atoms", f"{len(self.atoms)}, each of {self.atoms[0].n_components} components"),
            ("domains", f"{len(self.coordinates)}, the target last"),
            ("target", listed(shares)),
            ("loss", f"{loss[0]:.4g} → {loss[-1]:.4g} in {len(loss) - 1} steps"),
        ]
        return summary_table("Dictionary", rows)
