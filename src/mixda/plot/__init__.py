"""Small matplotlib figures of samples, mixtures, domains, dictionaries and predictions.

Each function returns its axes. Matplotlib is imported when a figure is drawn, never on ``import
mixda``. Colors come from palettes that color-blind readers can tell apart; gray always means
"no label". `mixda.report` puts the same pictures on one page, without matplotlib.
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
