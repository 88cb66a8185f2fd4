"""Matplotlib figures of samples, mixtures, domains, dictionaries and predictions.

Each function returns its axes. Matplotlib is imported when the first figure is drawn. The palettes
are suitable for color-blind readers; gray means "no label". `mixda.report` shows the same data
(`mixda.views`) on one HTML page, without matplotlib.
"""

from __future__ import annotations

from mixda.plot._common import PALETTE, UNLABELED, colors
from mixda.plot._dictionaries import coordinates, history
from mixda.plot._domains import components, domain_map
from mixda.plot._mixtures import mixture, plan, samples
from mixda.plot._predictions import certainty, class_proportions, confusion

__all__ = [
    "PALETTE",
    "UNLABELED",
    "certainty",
    "class_proportions",
    "colors",
    "components",
    "confusion",
    "coordinates",
    "domain_map",
    "history",
    "mixture",
    "plan",
    "samples",
]
