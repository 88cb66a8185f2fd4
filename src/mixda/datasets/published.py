"""Published feature sets, each stored as one npz file in the data folder.

`load_published` reads any of them; the sets that need notes of their own have a loader as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mixda._core.validation import check_choice
from mixda.datasets._dataset import Codes, DomainDataset, data_file
from mixda.datasets._npz import read_arrays, read_domains

OFFICE_CALTECH_CLASSES = (
    *("backpack", "bike", "calculator", "headphones", "keyboard"),
    *("laptop", "monitor", "mouse", "mug", "projector"),
)
GASES = ("ethanol", "ethylene", "ammonia", "acetaldehyde", "acetone", "toluene")


@dataclass(frozen=True)
class PublishedSet:
    """A row of `PUBLISHED`.

    Attributes
    ----------
    file : str
        Name of the file in the data folder, with ``X``, ``y``, ``d``, ``doms`` and perhaps ``cls``.
    description : str
    class_names : tuple of str
        For files without ``cls``; by default the class codes.
    block : {"", "position", "sample"}
        Origin of `DomainDataset.block`: "position" if row k of every domain is the same object,
        "sample" if the file has an array of that name.
    """

    file: str
    description: str
    class_names: tuple[str, ...] = ()
    block: str = ""


PUBLISHED: dict[str, PublishedSet] = {
    "office_caltech_efficientnet": PublishedSet(
        "office_caltech10_efflite2.npz",
        "Office-Caltech10, EfficientNet-Lite2 features.",
        OFFICE_CALTECH_CLASSES,
    ),
    "office_caltech_inception": PublishedSet(
        "office_caltech10_inceptionv3.npz",
        "Office-Caltech10, Inception-v3 features.",
        OFFICE_CALTECH_CLASSES,
    ),
    "office_caltech_surf": PublishedSet(
        "office_caltech10_surf.npz",
        "Office-Caltech10, SURF bags of visual words.",
        OFFICE_CALTECH_CLASSES,
    ),
    "office31_efficientnet": PublishedSet(
        "office31_efflite2.npz", "Office-31, EfficientNet-Lite2 features."
    ),
    "digits4": PublishedSet(
        "digits4_16x16.npz",
        "Digits of MNIST, USPS, Optdigits and Semeion, 16 × 16 pixels in [0, 1].",
    ),
    "gas_drift": PublishedSet(
        "gas_drift_8batches.npz",
        "Gas sensor array drift (UCI 224/270), 128 features, batches 1-6, 8 and 9.",
        GASES,
    ),
    "cstr": PublishedSet(
        "cstr_acf.npz",
        "Continuous stirred-tank reactor, 13 classes, 14 autocorrelation features.",
    ),
    "heart_disease": PublishedSet(
        "heart_disease_4hospitals.npz",
        "Heart disease in four hospitals (UCI 45), 15 features, gaps filled with medians.",
    ),
    "music_genre": PublishedSet(
        "music_genre_mgr.npz",
        "Music genre of 1000 clips under five acoustic conditions, 58 features.",
        block="position",
    ),
    "music_speech": PublishedSet(
        "music_speech_msd.npz",
        "Music or speech in 128 clips under five acoustic conditions, 58 features.",
        block="position",
    ),
    "wisdm": PublishedSet(
        "wisdm_users.npz",
        "WISDM: activities of 18 persons from phone accelerometers, published features.",
    ),
    "hydraulic": PublishedSet(
        "hydraulic_3coolers.npz",
        "Hydraulic test rig (UCI 447): pump leakage at three cooler conditions, 120 features.",
    ),
    "electricity": PublishedSet(
        "electricity_6periods.npz",
        "Electricity price up or down in six consecutive periods, 8 features.",
    ),
    "adult": PublishedSet(
        "adult_6sectors.npz",
        "Adult census income (UCI 2) in six employment sectors, one-hot features.",
    ),
    "defects": PublishedSet(
        "defects_aeeem_5projects.npz",
        "AEEEM software defects in five projects, 61 metrics.",
    ),
    "youtube_spam": PublishedSet(
        "youtube_spam_5videos.npz",
        "Comment spam on five YouTube videos (UCI 380), tf-idf reduced by SVD.",
    ),
    "citation": PublishedSet(
        "citation_3networks.npz",
        "Topics of papers in three citation networks, averaged words reduced by SVD.",
    ),
    "sugarcane": PublishedSet(
        "sugarcane_nir_4spectrometers.npz",
        "Protein terciles of sugarcane from the NIR spectra of four spectrometers.",
        block="sample",
    ),
}


def load_published(name: str, data_home: str | Path | None = None) -> DomainDataset:
    """Load a published feature set by name.

    Parameters
    ----------
    name : str
        One of the keys of `PUBLISHED`:

        =============================== ======= ======= ====== ==================================
        name                            domains classes rows   domains differ by
        =============================== ======= ======= ====== ==================================
        ``office_caltech_efficientnet`` 4       10      2533   image collection
        ``office_caltech_inception``    4       10      2533   image collection
        ``office_caltech_surf``         4       10      2533   image collection
        ``office31_efficientnet``       3       31      4110   image collection
        ``digits4``                     4       10      7190   collection of handwritten digits
        ``gas_drift``                   8       6       6697   batch, that is, age of the sensors
        ``cstr``                        7       13      2860   noise level and reaction order
        ``heart_disease``               4       2       920    hospital
        ``music_genre``                 5       10      5000   acoustic condition
        ``music_speech``                5       2       640    acoustic condition
        ``wisdm``                       18      6       3153   person
        ``hydraulic``                   3       3       2205   condition of the cooler
        ``electricity``                 6       2       9000   period
        ``adult``                       6       2       7874   employment sector
        ``defects``                     5       2       5009   software project
        ``youtube_spam``                5       2       1780   video
        ``citation``                    3       5       4500   citation index
        ``sugarcane``                   4       3       360    spectrometer
        =============================== ======= ======= ====== ==================================

    data_home : str or Path, optional
        Folder of the files; by default the environment variable ``MIXDA_DATA``.

    Returns
    -------
    DomainDataset

    Notes
    -----
    In ``music_genre``, ``music_speech`` and ``sugarcane`` the same clips or samples occur in every
    domain. `DomainDataset.block` is then the index of the clip or sample: split by it, so that no
    object is used for both training and testing. ``defects`` is imbalanced; use balanced accuracy.
    In ``adult``, 783 rows occur in more than one domain. The class proportions of
    ``heart_disease`` differ strongly between hospitals.

    Examples
    --------
    >>> from mixda.datasets import load_published
    >>> load_published("heart_disease").domain_names  # doctest: +SKIP
    ('cleveland', 'hungarian', 'switzerland', 'va')
    """
    published = PUBLISHED[check_choice(name, "name", tuple(PUBLISHED))]
    path = data_file(published.file, data_home)
    data = read_domains(path, published.description, published.class_names or None)
    if published.block == "position":
        return replace(data, block=_position_in_domain(data.domain))
    if published.block:
        return replace(data, block=read_arrays(path, [published.block])[published.block])
    return data


def _position_in_domain(domain: Codes) -> Codes:
    """Return the position of each row among the rows of its domain.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.datasets.published import _position_in_domain
    >>> _position_in_domain(np.array([0, 1, 0, 0, 1]))
    array([0, 0, 1, 2, 1])
    """
    position = np.empty(len(domain), dtype=np.int64)
    for code in np.unique(domain):
        rows = domain == code
        position[rows] = np.arange(rows.sum())
    return position


def load_office_caltech(
    features: str = "efficientnet", data_home: str | Path | None = None
) -> DomainDataset:
    """Office-Caltech10: ten object classes in four image collections.

    Domains (images): amazon 958, caltech10 1123, dslr 157, webcam 295.

    Parameters
    ----------
    features : {"efficientnet", "inception", "surf"}
        EfficientNet-Lite2 (1280 features) or Inception-v3 (2048, the dimension of the paper) of
        the raw images, or 800-bin counts of SURF visual words.
    data_home : str or Path, optional
        Folder of ``office_caltech10_efflite2.npz``, ``…_inceptionv3.npz`` or ``…_surf.npz``; by
        default the environment variable ``MIXDA_DATA``.

    Returns
    -------
    DomainDataset

    Notes
    -----
    The deep features come from networks trained on ImageNet and are stored as float16. They
    separate the classes well in every domain. The SURF counts (GFK release) are weak and sparse,
    26 of their rows are duplicates, and adaptation can hurt. Some classes of dslr have only 8
    images, so use few components.

    Examples
    --------
    >>> from mixda.datasets import load_office_caltech
    >>> load_office_caltech().X.shape  # doctest: +SKIP
    (2533, 1280)
    """
    check_choice(features, "features", ("efficientnet", "inception", "surf"))
    return load_published(f"office_caltech_{features}", data_home)


def load_digits4(data_home: str | Path | None = None) -> DomainDataset:
    """Handwritten digits from four collections, as 16 × 16 pixels in [0, 1].

    Domains (images): mnist 2000, usps 1800, optdigits 1797, semeion 1593; 256 features.

    Parameters
    ----------
    data_home : str or Path, optional
        Folder of ``digits4_16x16.npz``; by default the environment variable ``MIXDA_DATA``.

    Returns
    -------
    DomainDataset

    Notes
    -----
    The images come from four real collections, unlike those of `load_digit_scanners`, which are
    all optdigits. The images of mnist and usps are subsets of the collections. In usps, zeros and
    ones are more frequent than other digits.

    Examples
    --------
    >>> from mixda.datasets import load_digits4
    >>> load_digits4().domain_names  # doctest: +SKIP
    ('mnist', 'usps', 'optdigits', 'semeion')
    """
    return load_published("digits4", data_home)


def load_gas_drift(data_home: str | Path | None = None) -> DomainDataset:
    """Six gases measured by 16 chemical sensors that drift over 36 months; a domain is a batch.

    Domains (samples): batches 1 to 6, 8 and 9, from 161 (batch 4) to 2300 (batch 6). There are 128
    features, 8 per sensor.

    Parameters
    ----------
    data_home : str or Path, optional
        Folder of ``gas_drift_8batches.npz``; by default the environment variable ``MIXDA_DATA``.

    Returns
    -------
    DomainDataset

    Notes
    -----
    UCI repository 224 and 270, CC BY 4.0. Batches 7 and 10 are not in the file. The features are
    as published, with standard deviations from 0.5 to 84,000, so standardize them. Class
    proportions differ strongly between batches, and toluene is absent from batches 3, 4 and 5.
    Methods that assume equal class proportions perform poorly here. The class names are UCI's
    names for the codes 1 to 6.

    Examples
    --------
    >>> from mixda.datasets import load_gas_drift
    >>> load_gas_drift().class_names  # doctest: +SKIP
    ('ethanol', 'ethylene', 'ammonia', 'acetaldehyde', 'acetone', 'toluene')
    """
    return load_published("gas_drift", data_home)


def load_cstr(data_home: str | Path | None = None) -> DomainDataset:
    """Faults of a simulated stirred-tank reactor; domains differ by noise and reaction order.

    Domains (samples): one of 1300 without noise, then six of 260. There are 14 autocorrelation
    features and 13 classes of equal size in each domain, named by their codes.

    Parameters
    ----------
    data_home : str or Path, optional
        Folder of ``cstr_acf.npz``; by default the environment variable ``MIXDA_DATA``.

    Returns
    -------
    DomainDataset

    Notes
    -----
    Features and labels are those of the repository eddardd/CrossDomainFaultDiagnosis. The features
    are between -0.003 and 0.73.

    Examples
    --------
    >>> from mixda.datasets import load_cstr
    >>> load_cstr().X.shape  # doctest: +SKIP
    (2860, 14)
    """
    return load_published("cstr", data_home)
