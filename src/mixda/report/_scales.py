"""Scales of charts: axes with round ticks, and the window on the common plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixda._core.typing import Array
from mixda.mixture import Mixture
from mixda.views import Plane, square_roots


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map from [low, high] to pixels [start, end]."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Map a value to pixels."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
        t = (value - low) / (high - low) if high > low else 0.5
        return self.start + t * (self.end - self.start)

    def ticks(self, n: int = 4) -> list[float]:
        """Return about `n` round numbers within the range.

        Examples
        --------
        >>> from mixda.report._scales import Scale
        >>> Scale(0.0, 9.0, 0, 100).ticks(3)
        [0.0, 5.0]
        >>> Scale(0.5, 200.0, 0, 100, log=True).ticks()
        [1.0, 10.0, 100.0]
        """
        if not self.high > self.low:
            return [self.low]
        if self.log:
            bottom, top = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            if top > bottom:
                stride = math.ceil((top - bottom + 1) / (n + 1))
                return [10.0**k for k in range(bottom, top + 1, stride)]
        raw = (self.high - self.low) / n
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def scale_for(values: Array, start: float, end: float, *, log: bool = False) -> Scale:
    """Return a scale for the values; with `log`, logarithmic if they span a large range."""
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if log and low > 0 and high / low > 20:
        return Scale(low / 1.1, high * 1.1, start, end, log=True)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-30):
        pad = 0.5 * abs(high) or 1.0
        return Scale(low - pad, high + pad, start, end)
    if low > 0 and low < 0.5 * high:
        low = 0.0
    pad = 0.05 * (high - low)
    return Scale(low if low == 0 else low - pad, high + pad, start, end)


@dataclass(frozen=True, eq=False)
class Window:
    """The part of a plane that all panels show, mapped to the unit square."""

    plane: Plane
    offset: Array
    scale: Array

    def place(self, m: Mixture, side: float) -> tuple[Array, Array]:
        """Return centers (K, 2) and roots of covariances (K, 2, 2) in pixels."""
        centers, roots = self.plane.place(m)
        stretch = side * self.scale
        pixels = (centers - self.offset) * stretch
        covariances = stretch[:, None] * (roots @ roots) * stretch
        flipped = covariances * np.array([[1.0, -1.0], [-1.0, 1.0]])
        return np.column_stack([pixels[:, 0], side - pixels[:, 1]]), square_roots(flipped)


def common_window(plane: Plane, mixtures: Sequence[Mixture]) -> Window:
    """Return the window with all means and one standard deviation around them."""
    lows, highs = [], []
    for m in mixtures:
        centers, roots = plane.place(m)
        reach = np.sqrt(np.einsum("kij,kij->ki", roots, roots))
        lows.append((centers - reach).min(axis=0))
        highs.append((centers + reach).max(axis=0))
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    middle, size = (low + high) / 2, np.maximum(high - low, 1e-12) * 1.06
    if plane.kind != "lanes" and size.max() < 3 * size.min():
        size = np.full(2, size.max())  # equal units, unless the window is very narrow
    return Window(plane, middle - size / 2, 1.0 / size)
