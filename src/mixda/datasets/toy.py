"""The toy example of section 4.1: two classes in the plane, rotated and deformed per domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_array, check_positive_int, check_random_state
from mixda.datasets._dataset import DomainDataset

_SOURCE_SPREAD, _TARGET_SPREAD = 0.25, 0.1  # κ


def make_toy(
    n_samples: int = 500,
    separation: float = 10.0,
    span: float = 30.0,
    target_shift: ArrayLike = (0.0, 0.0),
    n_domains: int = 4,
    random_state: Any = None,
) -> DomainDataset:
    r"""Generate two classes in the plane; the last domain is the target.

    Domain :math:`\ell` has an angle :math:`a_\ell`, equally spaced from 0 to `span`, and a
    matrix :math:`A_\ell` of standard normal entries. Its first class is

    .. math:: x \sim \mathcal{N}(0, \kappa A_\ell^\top A_\ell + I), \qquad
              \kappa = 0.25 \text{ (sources)},\ 0.1 \text{ (target)},

    and its second class consists of the same points translated by
    :math:`\mathrm{separation} \cdot (\cos a_\ell, \sin a_\ell)`. With the defaults, a source-only
    classifier is already perfect on the target; `make_shifted_toy` requires adaptation.

    Parameters
    ----------
    n_samples : int
        Samples per class and domain.
    separation : float
        Distance between the two classes.
    span : float
        Angle between the first and the last domain, in degrees.
    target_shift : array-like of shape (2,)
        Translation of the whole target.
    n_domains : int
        Number of domains including the target, at least 2.
    random_state : None, int or numpy generator

    Returns
    -------
    DomainDataset

    Examples
    --------
    >>> from mixda.datasets import make_toy
    >>> make_toy(random_state=0)
    DomainDataset(4000 samples, 2 features,
                  domains=['source 1', 'source 2', 'source 3', 'target'], classes=['0', '1'])
    """
    n_samples = check_positive_int(n_samples, "n_samples")
    n_domains = check_positive_int(n_domains, "n_domains")
    if n_domains < 2:
        raise MixdaError(f"n_domains must be at least 2, a source and the target, got {n_domains}.")
    shift = check_array(target_shift, "target_shift", ndim=1)
    if shift.shape != (2,):
        raise MixdaError(f"target_shift must hold two numbers, got shape {shift.shape}.")
    rng = check_random_state(random_state)

    angles = np.deg2rad(np.linspace(0.0, span, n_domains))
    spreads = [_SOURCE_SPREAD] * (n_domains - 1) + [_TARGET_SPREAD]
    clouds = [
        _two_classes(n_samples, spread, separation, angle, rng)
        for spread, angle in zip(spreads, angles, strict=True)
    ]
    clouds[-1] = clouds[-1] + shift
    return DomainDataset(
        X=np.concatenate(clouds),
        y=np.tile(np.repeat([0, 1], n_samples), n_domains),
        domain=np.repeat(np.arange(n_domains), 2 * n_samples),
        domain_names=(*(f"source {k}" for k in range(1, n_domains)), "target"),
        class_names=("0", "1"),
        description=(
            f"Toy of section 4.1 of the GMM-DaDiL paper: separation {separation:g}, angles 0 to "
            f"{span:g} degrees, target shifted by ({shift[0]:g}, {shift[1]:g})."
        ),
    )


def make_shifted_toy(random_state: Any = None) -> DomainDataset:
    """Generate a toy that requires adaptation: closer classes and a shifted target.

    This is ``make_toy(separation=6, target_shift=(-3, 3))``. A source-only logistic regression has
    an accuracy of about 0.9 on the target, a target-only classifier nearly 1.

    Examples
    --------
    >>> from mixda.datasets import make_shifted_toy
    >>> make_shifted_toy(random_state=0).domain_names
    ('source 1', 'source 2', 'source 3', 'target')
    """
    return make_toy(separation=6.0, target_shift=(-3.0, 3.0), random_state=random_state)


def _two_classes(
    n_samples: int, spread: float, separation: float, angle: float, rng: np.random.Generator
) -> Array:
    A = rng.standard_normal((2, 2))
    first = rng.multivariate_normal(np.zeros(2), spread * A.T @ A + np.eye(2), n_samples)
    second = first + separation * np.array([np.cos(angle), np.sin(angle)])
    return np.concatenate([first, second])
