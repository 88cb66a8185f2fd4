"""Benchmark and toy data sets, each returned as a `DomainDataset`.

Loaders never download anything. They look for files in ``data_home``, by default the folder in the
environment variable ``MIXDA_DATA``.
"""

from mixda.datasets._dataset import DomainDataset, DomainTask
from mixda.datasets.cwru import load_cwru
from mixda.datasets.digits import SCANNERS, Scanner, load_digit_scanners
from mixda.datasets.office import load_office31, load_office_home
from mixda.datasets.own import load_domains
from mixda.datasets.published import (
    PUBLISHED,
    load_cstr,
    load_digits4,
    load_gas_drift,
    load_office_caltech,
    load_published,
)
from mixda.datasets.tep import load_tep
from mixda.datasets.tep_simulation import generate_tep, join_tep
from mixda.datasets.toy import make_shifted_toy, make_toy

__all__ = [
    "PUBLISHED",
    "SCANNERS",
    "DomainDataset",
    "DomainTask",
    "Scanner",
    "generate_tep",
    "join_tep",
    "load_cstr",
    "load_cwru",
    "load_digit_scanners",
    "load_digits4",
    "load_domains",
    "load_gas_drift",
    "load_office31",
    "load_office_caltech",
    "load_office_home",
    "load_published",
    "load_tep",
    "make_shifted_toy",
    "make_toy",
]
