"""Published feature sets, each one npz file in the data folder: nothing to do but read it."""

from __future__ import annotations

from pathlib import Path

from mixda._core.validation import check_choice
from mixda.datasets._dataset import DomainDataset, data_file
from mixda.datasets._npz import read_domains

OFFICE_CALTECH = {
    "efficientnet": ("office_caltech10_efflite2.npz", "EfficientNet-Lite2 features"),
    "inception": ("office_caltech10_inceptionv3.npz", "Inception-v3 features"),
    "surf": ("office_caltech10_surf.npz", "SURF bags of visual words"),
}
OFFICE_CALTECH_CLASSES = (
    *("backpack", "bike", "calculator", "headphones", "keyboard"),
    *("laptop", "monitor", "mouse", "mug", "projector"),
)
GASES = ("ethanol", "ethylene", "ammonia", "acetaldehyde", "acetone", "toluene")


def load_office_caltech(
    features: str = "efficientnet", data_home: str | Path | None = None
) -> DomainDataset:
    """Office-Caltech10: ten things photographed for four collections.

    Domains (images): amazon 958, caltech10 1123, dslr 157, webcam 295.

    Parameters
    ----------
    features : {"efficientnet", "inception", "surf"}
        EfficientNet-Lite2 (1280 features) or Inception-v3 (2048, the paper's number) of the raw
        images, or 800-bin counts of SURF visual words.
    data_home : str or Path, optional
        Folder of ``office_caltech10_efflite2.npz``, ``…_inceptionv3.npz`` or ``…_surf.npz``; by
        default the one that ``MIXDA_DATA`` names.

    Returns
    -------
    DomainDataset

    Notes
    -----
    The deep features come from networks trained on ImageNet and were stored as float16; they
    separate the classes well in every domain. The SURF counts (GFK release) are weak and sparse,
    26 of their rows repeat another row, and adapting them can do harm. dslr has as few as 8 images
    of a class: do not ask for many components there.

    Examples
    --------
    >>> from mixda.datasets import load_office_caltech
    >>> load_office_caltech().X.shape  # doctest: +SKIP
    (2533, 1280)
    """
    check_choice(features, "features", tuple(OFFICE_CALTECH))
    name, what = OFFICE_CALTECH[features]
    description = f"Office-Caltech10, {what}."
    return read_domains(data_file(name, data_home), description, OFFICE_CALTECH_CLASSES)


def load_digits4(data_home: str | Path | None = None) -> DomainDataset:
    """Handwritten digits of four collections, as 16 × 16 pixels in [0, 1].

    Domains (images): mnist 2000, usps 1800, optdigits 1797, semeion 1593; 256 features.

    Parameters
    ----------
    data_home : str or Path, optional
        Folder of ``digits4_16x16.npz``; by default the one that ``MIXDA_DATA`` names.

    Returns
    -------
    DomainDataset

    Notes
    -----
    Real digits, unlike `load_digit_scanners`, whose images are those of optdigits. The images of
    mnist and usps are samples of the collections; usps has more zeros and ones than other digits.

    Examples
    --------
    >>> from mixda.datasets import load_digits4
    >>> load_digits4().domain_names  # doctest: +SKIP
    ('mnist', 'usps', 'optdigits', 'semeion')
    """
    description = "Digits of MNIST, USPS, Optdigits and Semeion, 16 × 16 pixels in [0, 1]."
    return read_domains(data_file("digits4_16x16.npz", data_home), description)


def load_gas_drift(data_home: str | Path | None = None) -> DomainDataset:
    """Gases told apart by 16 chemical sensors that drift over 36 months; a domain is a batch.

    Domains (samples): batches 1 to 6, 8 and 9, from 161 (batch 4) to 2300 (batch 6); 128 features,
    8 of each sensor; six gases.

    Parameters
    ----------
    data_home : str or Path, optional
        Folder of ``gas_drift_8batches.npz``; by default the one that ``MIXDA_DATA`` names.

    Returns
    -------
    DomainDataset

    Notes
    -----
    UCI repository 224 and 270, CC BY 4.0; batches 7 and 10 are not in the file. Features are as
    published, with standard deviations from 0.5 to 84,000: standardize them. The share of a gas
    differs much from batch to batch, and toluene is absent from batches 3, 4 and 5: methods that
    assume equal class proportions do harm here. The names are UCI's for the codes 1 to 6.

    Examples
    --------
    >>> from mixda.datasets import load_gas_drift
    >>> load_gas_drift().class_names  # doctest: +SKIP
    ('ethanol', 'ethylene', 'ammonia', 'acetaldehyde', 'acetone', 'toluene')
    """
    description = "Gas sensor array drift (UCI 224/270), 128 features, batches 1-6, 8 and 9."
    return read_domains(data_file("gas_drift_8batches.npz", data_home), description, GASES)


def load_cstr(data_home: str | Path | None = None) -> DomainDataset:
    """Faults of a simulated stirred-tank reactor; a domain is a noise level and a reaction order.

    Domains (samples): one of 1300 without noise, then six of 260; 14 features, autocorrelations
    as the name of the file says; 13 classes of equal size in each domain, named by their codes.

    Parameters
    ----------
    data_home : str or Path, optional
        Folder of ``cstr_acf.npz``; by default the one that ``MIXDA_DATA`` names.

    Returns
    -------
    DomainDataset

    Notes
    -----
    Features and labels as in the repository eddardd/CrossDomainFaultDiagnosis. Features lie between
    -0.003 and 0.73.

    Examples
    --------
    >>> from mixda.datasets import load_cstr
    >>> load_cstr().X.shape  # doctest: +SKIP
    (2860, 14)
    """
    description = "Continuous stirred-tank reactor, 13 classes, 14 autocorrelation features."
    return read_domains(data_file("cstr_acf.npz", data_home), description)
