"""Office-31 and Office-Home, from the images or from extracted features."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda._core.validation import check_choice, check_positive_int
from mixda.datasets._dataset import DomainDataset
from mixda.datasets._readers import Images, read_layout
from mixda.datasets.published import load_published

OFFICE31 = ("amazon", "dslr", "webcam")
OFFICE_HOME = ("Art", "Clipart", "Product", "Real World")


def load_office31(
    path: str | Path | None = None,
    *,
    features: str | None = None,
    extract: Callable[[Any], Any] | None = None,
    image_size: int = 32,
    gray: bool = False,
    data_home: str | Path | None = None,
    verbose: bool = False,
) -> DomainDataset:
    """Office-31: 31 classes of office objects in three domains, amazon, dslr and webcam.

    With ``features="efficientnet"``, the features are read from ``office31_efflite2.npz`` in the
    data folder. Otherwise, download the images or features and store them in one of these layouts,
    which are detected automatically:

    - **Images**: ``amazon/<class>/*.jpg`` (or ``amazon/images/<class>/*.jpg``, as published).
    - **One file per domain**: ``amazon.npz``, ``amazon.mat``, ``amazon.csv`` or
      ``amazon.parquet``. Names may have a suffix (``amazon_resnet50.mat``). Of
      ``amazon_amazon.csv`` and ``amazon_webcam.csv`` (features of a network fine-tuned on amazon),
      the file with the same name twice is used. In npz and mat files, features are named X,
      features, feas, fts or data, and labels y, labels, label or gnd. In tables, the label is the
      column label, class, y or target; in a csv file without a header, it is the last column.
    - **One file**: an npz with ``X, y, d, doms`` (and ``cls``), or a table with a column domain.

    Parameters
    ----------
    path : str or Path, optional
        The folder or file; by default ``office31`` or ``office31.npz``, ``.csv`` or ``.parquet``
        in the data folder.
    features : {"efficientnet"}, optional
        Read stored features instead of `path`: EfficientNet-Lite2, 1280 features.
    extract : callable, optional
        Feature extractor: takes pixels of shape (m, 3, size, size), float32 in [0, 1], and returns
        shape (m, f). By default the features are the pixels, which are hard to classify; the paper
        uses a network trained on ImageNet.
    image_size : int
        Height and width to which images are resized.
    gray : bool
        Convert images to grayscale, shape (m, 1, size, size).
    data_home : str or Path, optional
        Data folder, used if `path` is not given; by default the environment variable
        ``MIXDA_DATA``.
    verbose : bool
        Show progress while reading images, on a terminal.

    Returns
    -------
    DomainDataset
        `sample_shape` is the shape of an image if its pixels are the features.

    Notes
    -----
    Domain names match regardless of case, spaces, underscores and hyphens. The classes are the
    union over the domains; numeric labels keep their number as name.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from mixda.datasets import load_office31
    >>> from mixda.deep import ImageBackbone  # doctest: +SKIP
    >>> network = ImageBackbone().eval().requires_grad_(False)  # doctest: +SKIP
    >>> load_office31(extract=lambda pixels: network(torch.from_numpy(pixels)),
    ...               image_size=260, verbose=True)  # doctest: +SKIP
    """
    if features is not None:
        check_choice(features, "features", ("efficientnet",))
        if path is not None or extract is not None:
            raise MixdaError(
                f"features={features!r} reads stored features and cannot be combined with path or "
                "extract. Pass only one of them."
            )
        return load_published(f"office31_{features}", data_home)
    location = _locate("office31", path, data_home)
    images = Images(check_positive_int(image_size, "image_size"), bool(gray), extract, verbose)
    return read_layout(location, OFFICE31, f"Office-31, from {location.name}.", images)


def load_office_home(
    path: str | Path | None = None,
    *,
    extract: Callable[[Any], Any] | None = None,
    image_size: int = 32,
    gray: bool = False,
    data_home: str | Path | None = None,
    verbose: bool = False,
) -> DomainDataset:
    """Office-Home: 65 classes of objects in four domains, Art, Clipart, Product and Real World.

    Layouts and parameters are those of `load_office31`. The default names are ``office_home`` and
    ``office_home.npz``, ``.csv`` or ``.parquet``.

    Parameters
    ----------
    path : str or Path, optional
    extract : callable, optional
    image_size : int
    gray : bool
    data_home : str or Path, optional
    verbose : bool
        As in `load_office31`.

    Returns
    -------
    DomainDataset

    Examples
    --------
    >>> from mixda.datasets import load_office_home
    >>> load_office_home("resnet50_csv")  # a folder with Art_Art.csv, …  # doctest: +SKIP
    """
    location = _locate("office_home", path, data_home)
    images = Images(check_positive_int(image_size, "image_size"), bool(gray), extract, verbose)
    return read_layout(location, OFFICE_HOME, f"Office-Home, from {location.name}.", images)


def _locate(name: str, path: str | Path | None, data_home: str | Path | None) -> Path:
    """Return the folder or file of a data set, or raise an error that says where to put it."""
    if path is not None:
        location = Path(path).expanduser()
        if not location.exists():
            raise MixdaError(
                f"path {location} does not exist. Pass the folder or file of the data."
            )
        return location
    home = data_home if data_home is not None else os.environ.get("MIXDA_DATA")
    if home is None or str(home) == "":
        raise MixdaError(
            f"The data folder is not set. Pass path or data_home, or set the environment variable "
            f"MIXDA_DATA to the folder that contains {name}."
        )
    for ending in ("", ".npz", ".csv", ".parquet"):
        location = Path(home).expanduser() / f"{name}{ending}"
        if location.exists():
            return location
    folder = Path(home).expanduser() / name
    raise MixdaError(
        f"{folder} does not exist. Put the data there, as <domain>/<class>/*.jpg or as one feature "
        "file per domain, or pass their path."
    )
