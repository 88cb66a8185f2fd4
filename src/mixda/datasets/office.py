"""Office-31 and Office-Home, from the images or from features that somebody extracted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda._core.validation import check_positive_int
from mixda.datasets._dataset import DomainDataset
from mixda.datasets._readers import Images, read_layout

OFFICE31 = ("amazon", "dslr", "webcam")
OFFICE_HOME = ("Art", "Clipart", "Product", "Real World")


def load_office31(
    path: str | Path | None = None,
    *,
    extract: Callable[[Any], Any] | None = None,
    image_size: int = 32,
    grey: bool = False,
    data_home: str | Path | None = None,
    verbose: bool = False,
) -> DomainDataset:
    """Office-31: 31 office things in three domains, amazon, dslr and webcam.

    The data are not part of mixda's data folder: fetch the images or a set of features and put them
    into one of these layouts, which are recognized by themselves.

    - **Images**: ``amazon/<class>/*.jpg`` (or ``amazon/images/<class>/*.jpg``, as published).
    - **A file per domain**: ``amazon.npz``, ``amazon.mat``, ``amazon.csv``, ``amazon.parquet``; a
      name may go on (``amazon_resnet50.mat``), and of ``amazon_amazon.csv`` and
      ``amazon_webcam.csv`` (features of a network tuned on amazon) the one whose two names are
      equal is taken. In npz and mat files features are under X, features, feas, fts or data and
      labels under y, labels, label or gnd. In tables the label is the column label, class, y or
      target, and in a csv file without header the last column.
    - **One file**: an npz with ``X, y, d, doms`` (and ``cls``), or a table with a column domain.

    Parameters
    ----------
    path : str or Path, optional
        The folder or the file; by default ``office31`` or ``office31.npz``, ``.csv`` or
        ``.parquet`` in the data folder.
    extract : callable, optional
        Features of images: takes pixels of shape (m, 3, size, size), float32 in [0, 1], returns
        shape (m, f). By default the pixels themselves are the features, which no method can do much
        with; the paper uses a network trained on ImageNet.
    image_size : int
        Height and width to which images are resized.
    grey : bool
        Grey pixels, shape (m, 1, size, size).
    data_home : str or Path, optional
        Where to look if `path` is not given; by default the folder that ``MIXDA_DATA`` names.
    verbose : bool
        Show progress while images are read, if on a terminal.

    Returns
    -------
    DomainDataset
        `sample_shape` is the shape of an image if its pixels are the features.

    Notes
    -----
    Domain names match in any case and with any of space, underscore and hyphen. Classes are
    the union over the domains; labels that are numbers keep their number as name.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from mixda.datasets import load_office31
    >>> from mixda.deep import ImageBackbone  # doctest: +SKIP
    >>> network = ImageBackbone().eval().requires_grad_(False)  # doctest: +SKIP
    >>> load_office31(extract=lambda pixels: network(torch.from_numpy(pixels)),
    ...               image_size=260, verbose=True)  # doctest: +SKIP
    """
    place = _place("office31", path, data_home)
    images = Images(check_positive_int(image_size, "image_size"), bool(grey), extract, verbose)
    return read_layout(place, OFFICE31, f"Office-31, from {place.name}.", images)


def load_office_home(
    path: str | Path | None = None,
    *,
    extract: Callable[[Any], Any] | None = None,
    image_size: int = 32,
    grey: bool = False,
    data_home: str | Path | None = None,
    verbose: bool = False,
) -> DomainDataset:
    """Office-Home: 65 things of home and office in four domains, Art, Clipart, Product, Real World.

    Layouts and parameters are those of `load_office31`, with the default names ``office_home`` or
    ``office_home.npz``, ``.csv`` or ``.parquet``, and folders or files for the four domains.

    Parameters
    ----------
    path : str or Path, optional
    extract : callable, optional
    image_size : int
    grey : bool
    data_home : str or Path, optional
    verbose : bool
        All as in `load_office31`.

    Returns
    -------
    DomainDataset

    Examples
    --------
    >>> from mixda.datasets import load_office_home
    >>> load_office_home("resnet50_csv")  # a folder with Art_Art.csv, …  # doctest: +SKIP
    """
    place = _place("office_home", path, data_home)
    images = Images(check_positive_int(image_size, "image_size"), bool(grey), extract, verbose)
    return read_layout(place, OFFICE_HOME, f"Office-Home, from {place.name}.", images)


def _place(name: str, path: str | Path | None, data_home: str | Path | None) -> Path:
    """Return the folder or file of a benchmark, or say what to put where."""
    if path is not None:
        place = Path(path).expanduser()
        if not place.exists():
            raise MixdaError(f"{place} does not exist; give the folder or the file of the data.")
        return place
    home = data_home if data_home is not None else os.environ.get("MIXDA_DATA")
    if home is None or str(home) == "":
        raise MixdaError(
            f"no data folder is known; give the path of the data, or set the environment variable "
            f"MIXDA_DATA to a folder that holds {name}."
        )
    for ending in ("", ".npz", ".csv", ".parquet"):
        place = Path(home).expanduser() / f"{name}{ending}"
        if place.exists():
            return place
    folder = Path(home).expanduser() / name
    raise MixdaError(
        f"{folder} does not exist; put the data there, as <domain>/<class>/*.jpg or as one feature "
        f"file per domain, or give their path."
    )
