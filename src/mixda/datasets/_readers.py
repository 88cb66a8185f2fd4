"""The layouts in which people keep image benchmarks: folders of images, or files of features.

One domain is a folder of class folders, or an npz, mat, csv or parquet file; all domains together
are a folder of these, or one npz, csv or parquet file that names the domain of each row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.validation import Array, check_X
from mixda.datasets._dataset import DomainDataset
from mixda.datasets._npz import read_all_arrays, read_domains
from mixda.tables import Table, check_samples, class_names, open_table

FEATURES = ("x", "features", "feature", "feas", "fea", "fts", "feats", "data")
LABELS = ("label", "labels", "class", "target", "gnd", "y")
DOMAINS = ("domain", "domains")
_KNOWN = {"label": LABELS, "domain": DOMAINS}
TABLES = (".csv", ".parquet", ".pq")
IMAGES = (".jpg", ".jpeg", ".png", ".bmp")

Extract = Callable[[NDArray[np.float32]], Any]


@dataclass(frozen=True)
class Images:
    """What to make of an image: `extract` of its resized pixels, or these pixels themselves."""

    size: int
    grey: bool
    extract: Extract | None
    verbose: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the pixels of one image."""
        return (1 if self.grey else 3, self.size, self.size)


class Part(NamedTuple):
    """One domain: samples of shape (n, d) and names of their classes, numbers or strings."""

    X: Array
    labels: NDArray[Any]
    sample_shape: tuple[int, ...] = ()
    feature_names: tuple[str, ...] = ()


def read_layout(
    path: Path, domains: Sequence[str], description: str, images: Images
) -> DomainDataset:
    """Read all domains from a folder or from one file; see the module for the layouts."""
    if path.is_file():
        if path.suffix.lower() == ".npz":
            return read_domains(path, description)
        return read_domain_column(path, description)
    parts = {name: _read_domain(_find(path, name, domains), images) for name in domains}
    return join(parts, path, description)


def read_domain_column(
    path: Path,
    description: str,
    label: str | None = None,
    domain: str | None = None,
    **options: Any,
) -> DomainDataset:
    """Read a table, or a folder of tables, with a column that names the domain of each row."""
    table = open_table(path)
    label = find_column(table, "label", label)
    samples = table.read(label=label, domain=find_column(table, "domain", domain), **options)
    check_samples([samples], label)
    of, y = np.asarray(samples.domain), np.asarray(samples.y)
    names = list(dict.fromkeys(of.tolist()))
    parts = {n: Part(samples.X[of == n], y[of == n], (), samples.feature_names) for n in names}
    return join(parts, path, description)


def find_column(table: Table, what: str, given: str | None) -> str:
    """Return the column `given`, else the one that is known by its name to hold `what`."""
    column = known_column(table, what) if given is None else given
    if column is not None:
        return column
    shown = ", ".join(table.columns[:8]) + (", …" if len(table.columns) > 8 else "")
    raise MixdaError(
        f"{table.files[0]} has no column named {' or '.join(_KNOWN[what])}; its columns are "
        f"{shown}: rename the one that holds the {what}, or name it ({what}=… in Python, --{what} "
        "on the command line)."
    )


def known_column(table: Table, what: str) -> str | None:
    """Return the column that holds labels or domains by its name, if there is one."""
    own = [column for column, kind in table.kinds.items() if kind == what]  # y and d of an npz
    usual = [c for name in _KNOWN[what] for c in table.columns if c.lower() == name]
    return next(iter(own + usual), None)


def join(parts: dict[str, Part], path: Path, description: str) -> DomainDataset:
    """Make one dataset of domains, which need the same features; classes are united."""
    widths = {name: part.X.shape[1] for name, part in parts.items()}
    if len(set(widths.values())) > 1:
        shown = ", ".join(f"{name} {width}" for name, width in widths.items())
        raise MixdaError(
            f"the domains in {path} have different numbers of features ({shown}); extract the same "
            "features in all."
        )
    labels = class_names(np.concatenate([part.labels.astype(str) for part in parts.values()]))
    classes, y = np.unique(labels, return_inverse=True)
    first = next(iter(parts.values()))
    return DomainDataset(
        X=np.concatenate([part.X for part in parts.values()]),
        y=y,
        domain=np.repeat(np.arange(len(parts)), [len(part.X) for part in parts.values()]),
        domain_names=tuple(parts),
        class_names=tuple(str(name) for name in classes),
        description=description,
        sample_shape=first.sample_shape,
        feature_names=first.feature_names,
    )


def _find(folder: Path, domain: str, domains: Sequence[str]) -> Path:
    """Return the entry of a folder that holds a domain: the best match of its name.

    ``amazon``, then ``amazon_amazon.csv`` (features of a network tuned on the same domain), then
    ``amazon_resnet50.mat``; never ``amazon_webcam.csv``, which holds webcam.
    """
    others = {_plain(name) for name in domains} - {_plain(domain)}
    ranks: dict[int, list[Path]] = {}
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() or entry.suffix.lower() in (".npz", ".mat", *TABLES):
            rank = _rank(entry.name if entry.is_dir() else entry.stem, _plain(domain), others)
            ranks.setdefault(rank, []).append(entry)
    ranks.pop(_NO_MATCH, None)
    if not ranks:
        raise MixdaError(
            f"there is nothing for the domain {domain!r} in {folder}; put a folder "
            f"{domain}/<class>/*.jpg, or a file {domain}.npz, .mat, .csv or .parquet there."
        )
    best = ranks[min(ranks)]
    if len(best) > 1:
        raise MixdaError(
            f"{folder} has several entries for the domain {domain!r}: "
            f"{', '.join(entry.name for entry in best)}; keep one of them, or give a folder that "
            "has only one."
        )
    return best[0]


_NO_MATCH = 3


def _rank(name: str, domain: str, others: set[str]) -> int:
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    for k in range(1, len(words) + 1):
        if "".join(words[:k]) == domain:
            rest = "".join(words[k:])
            if not rest or rest == domain:
                return 1 if rest else 0
            return _NO_MATCH if any(rest.startswith(other) for other in others) else 2
    return _NO_MATCH


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _read_domain(entry: Path, images: Images) -> Part:
    if entry.is_dir():
        return _read_images(entry, images)
    kind = entry.suffix.lower()
    if kind in TABLES and not (kind == ".csv" and _has_no_header(entry)):
        return read_table(entry)
    if kind == ".csv":
        values = _numbers(entry)
        return Part(check_X(values[:, :-1], f"{entry}"), values[:, -1])
    return _samples_of(_read_mat(entry) if kind == ".mat" else read_all_arrays(entry), entry)


def read_table(path: Path, label: str | None = None, **options: Any) -> Part:
    """Read the samples and labels of one domain from a table with named columns."""
    table = open_table(path)
    label = find_column(table, "label", label)
    samples = table.read(label=label, **options)
    check_samples([samples], label)
    return Part(samples.X, np.asarray(samples.y), (), samples.feature_names)


def _has_no_header(path: Path) -> bool:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        cells = re.split(r"[,;\t]", file.readline().strip())
    return all(re.fullmatch(r"\s*[-+]?[\d.]+([eE][-+]?\d+)?\s*", cell) for cell in cells)


def _numbers(path: Path) -> Array:
    try:
        values: Array = np.loadtxt(path, delimiter=",", encoding="utf-8-sig", ndmin=2)
    except ValueError as error:
        raise MixdaError(
            f"{path} has no header and is not made of numbers separated by commas ({error})."
        ) from None
    if values.shape[1] < 2:
        raise MixdaError(f"{path} needs a column of labels after those of features.")
    return values


def _read_mat(path: Path) -> dict[str, NDArray[Any]]:
    from scipy.io import loadmat

    try:
        return dict(loadmat(path))
    except NotImplementedError:
        raise MixdaError(
            f"{path} is a MATLAB file of version 7.3; save it again with -v7 in MATLAB."
        ) from None
    except Exception as error:  # of any kind: struct, zlib and numpy meet foreign bytes
        raise MixdaError(f"{path} is not a readable MATLAB file ({error}).") from None


def _samples_of(arrays: dict[str, Any], path: Path) -> Part:
    held = {name.lower(): array for name, array in arrays.items() if not name.startswith("__")}
    X = next((held[name] for name in FEATURES if name in held), None)
    labels = next((held[name] for name in LABELS if name in held), None)
    if X is None or labels is None:
        raise MixdaError(
            f"{path} must hold features under one of {', '.join(FEATURES)} and labels under one of "
            f"{', '.join(LABELS)}; it holds {', '.join(sorted(held)) or 'nothing'}."
        )
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    labels = np.asarray(labels).ravel()
    if X.ndim > 1 and len(X) != len(labels) == X.shape[-1]:
        X = X.T  # MATLAB users also keep one sample per column
    if X.ndim < 2 or len(X) != len(labels):
        raise MixdaError(
            f"{path} has features of shape {X.shape} but {len(labels)} labels; one row per label "
            "is needed."
        )
    if labels.dtype.kind == "O":
        labels = np.array([str(np.ravel(name)[0]) for name in labels])
    names = held.get("cls")
    if (
        names is not None
        and labels.dtype.kind in "iu"
        and 0 <= labels.min() <= labels.max() < len(names)
    ):
        labels = np.asarray(names).astype(str)[labels]
    return Part(check_X(X.reshape(len(X), -1), f"{path}"), labels, X.shape[1:])


def _read_images(folder: Path, images: Images) -> Part:
    inner = folder / "images"  # as Office-31 was published: amazon/images/bike/frame_0001.jpg
    folder = inner if inner.is_dir() else folder
    classes = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    files = [
        file
        for entry in classes
        for file in sorted(entry.iterdir())
        if file.suffix.lower() in IMAGES
    ]
    if not files:
        raise MixdaError(f"{folder} has no images; put them there as <class>/<name>.jpg or .png.")
    batches = []
    with Progress(len(files), f"reading {folder.name}", images.verbose) as progress:
        for first in range(0, len(files), 32):
            pixels = np.array([_pixels(file, images) for file in files[first : first + 32]])
            features = pixels if images.extract is None else np.asarray(images.extract(pixels))
            if len(features) != len(pixels):
                raise MixdaError(
                    f"extract returned {len(features)} rows for {len(pixels)} images; it must "
                    "return one row of features for each image."
                )
            batches.append(features.astype(np.float64))
            progress.update(min(first + 32, len(files)))
    X = np.concatenate(batches)
    labels = np.array([file.parent.name for file in files])
    return Part(check_X(X.reshape(len(X), -1), f"{folder}"), labels, X.shape[1:])


def _pixels(path: Path, images: Images) -> NDArray[np.float32]:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("reading images needs Pillow; pip install pillow") from None
    try:
        with Image.open(path) as image:
            plain = image.convert("L" if images.grey else "RGB")
            plain = plain.resize((images.size, images.size), Image.Resampling.BILINEAR)
            values = np.asarray(plain, dtype=np.float32) / 255.0
    except OSError as error:
        raise MixdaError(f"{path} is not a readable image ({error}); remove it.") from None
    return values[None] if images.grey else values.transpose(2, 0, 1)
