"""Axis-aligned Gaussian mixtures: the value `Mixture`, its ``.gmm`` file, densities, pooling."""

from mixda.mixture._checks import frozen as frozen
from mixda.mixture._density import VALUES_PER_STEP as VALUES_PER_STEP
from mixda.mixture._density import LogGaussians as LogGaussians
from mixda.mixture._density import has_gaps as has_gaps
from mixda.mixture._density import log_gaussians as log_gaussians
from mixda.mixture._density import normalize_log_rows as normalize_log_rows
from mixda.mixture._density import rows_at_once as rows_at_once
from mixda.mixture._density import rows_per_step as rows_per_step
from mixda.mixture._exposure import MIN_COMPONENT_ROWS as MIN_COMPONENT_ROWS
from mixda.mixture._exposure import SMALLEST_COMPONENT as SMALLEST_COMPONENT
from mixda.mixture._exposure import check_exposed as check_exposed
from mixda.mixture._exposure import is_exposed as is_exposed
from mixda.mixture._exposure import smallest_component as smallest_component
from mixda.mixture._mixture import FORMAT as FORMAT
from mixda.mixture._mixture import FORMAT_VERSION as FORMAT_VERSION
from mixda.mixture._mixture import Mixture
from mixda.mixture._pool import SHARES as SHARES
from mixda.mixture._pool import class_shares as class_shares
from mixda.mixture._pool import count_samples as count_samples
from mixda.mixture._pool import pool_mixtures as pool_mixtures
from mixda.mixture._pool import without_floor as without_floor

__all__ = ["Mixture"]
