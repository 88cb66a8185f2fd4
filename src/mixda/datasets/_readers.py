"""Readers of common layouts of image benchmarks: folders of images or files of features.

A domain is a folder of class folders, or an npz, mat, csv or parquet file. A data set is a folder
of domains, or one npz, csv or parquet file with the domain of each row.
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
from mixda._core.typing import Array
from mixda._core.validation import check_X
from mixda.datasets._dataset import DomainDataset
from mixda.datasets._npz import read_all_arrays, read_domains
from mixda.tables import Table, check_samples, class_names, open_table

FEATURES = ("x", "features", "feature", "feas", "fea", "fts", "feats", "data")
LABELS = ("label", "labels", "class", "target", "gnd", "y")
DOMAINS = ("domain", "domains")
_KNOWN = {"label": LABELS, "domain": DOMAINS}
TABLES = (".csv", ".parquet", ".pq")
IMAGES = (".jpg", ".jpeg", ".png", ".bmp")
_IMAGES_PER_BATCH = 32

Extract = Callable[[NDArray[np.float32]], Any]


@dataclass(frozen=True)
class Images:
    """How to read images: size, color and, if given, the feature extractor."""

    size: int
    gray: bool
    extract: Extract | None
    verbose: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the pixels of one image."""
        return (1 if self.gray else 3, self.size, self.size)


class DomainSamples(NamedTuple):
    """Samples of a domain, shape (n, d), and their labels, numbers or strings."""

    X: Array
    labels: NDArray[Any]
    sample_shape: tuple[int, ...] = ()
    feature_names: tuple[str, ...] = ()


def read_layout(
    path: Path, domains: Sequence[str], description: str, images: Images
) -> DomainDataset:
    """Read all domains from a folder or a file in one of the layouts of this module."""
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
    """Read a table, or a folder of tables, with a column for the domain of each row."""
    table = open_table(path)
    label = find_column(table, "label", label)
    samples = table.read(label=label, domain=find_column(table, "domain", domain), **options)
    check_samples([samples], label)
    domains, y = np.asarray(samples.domain), np.asarray(samples.y)
    parts = {}
    for name in dict.fromkeys(domains.tolist()):
        rows = domains == name
        parts[name] = DomainSamples(samples.X[rows], y[rows], (), samples.feature_names)
    return join(parts, path, description)


def find_column(table: Table, what: str, given: str | None) -> str:
    """Return the column `given`, by default the one whose name suggests a `what`."""
    column = known_column(table, what) if given is None else given
    if column is not None:
        return column
    shown = ", ".join(table.columns[:8]) + (", …" if len(table.columns) > 8 else "")
    raise MixdaError(
        f"{table.files[0]} has no column named {' or '.join(_KNOWN[what])}. Its columns are "
        f"{shown}. Name the {what} column ({what}=… in Python, --{what} on the command line)."
    )


def known_column(table: Table, what: str) -> str | None:
    """Return the column whose name suggests a label or a domain, or None."""
    own = [column for column, kind in table.kinds.items() if kind == what]  # y and d of an npz
    usual = [c for name in _KNOWN[what] for c in table.columns if c.lower() == name]
    return next(iter(own + usual), None)


def join(parts: dict[str, DomainSamples], path: Path, description: str) -> DomainDataset:
    """Concatenate domains with the same features; the classes are their union."""
    widths = {name: part.X.shape[1] for name, part in parts.items()}
    if len(set(widths.values())) > 1:
        shown = ", ".join(f"{name} {width}" for name, width in widths.items())
        raise MixdaError(
            f"The domains in {path} have different numbers of features ({shown}). Extract the same "
            "features for all domains."
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
    """Return the entry of a folder whose name matches a domain best.

    In this order: ``amazon``, ``amazon_amazon.csv`` (features of a network fine-tuned on the same
    domain), ``amazon_resnet50.mat``. ``amazon_webcam.csv`` is never used for amazon.
    """
    others = {_normalize(name) for name in domains} - {_normalize(domain)}
    ranks: dict[int, list[Path]] = {}
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() or entry.suffix.lower() in (".npz", ".mat", *TABLES):
            rank = _rank(entry.name if entry.is_dir() else entry.stem, _normalize(domain), others)
            ranks.setdefault(rank, []).append(entry)
    ranks.pop(_NO_MATCH, None)
    if not ranks:
        raise MixdaError(
            f"{folder} has no data for the domain {domain!r}. Add a folder {domain}/<class>/*.jpg, "
            f"or a file {domain}.npz, .mat, .csv or .parquet."
        )
    best = ranks[min(ranks)]
    if len(best) > 1:
        raise MixdaError(
            f"{folder} has several entries for the domain {domain!r}: "
            f"{', '.join(entry.name for entry in best)}. Keep only one of them."
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


def _normalize(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _read_domain(entry: Path, images: Images) -> DomainSamples:
    if entry.is_dir():
        return _read_images(entry, images)
    kind = entry.suffix.lower()
    if kind in TABLES and not (kind == ".csv" and _has_no_header(entry)):
        return read_table(entry)
    if kind == ".csv":
        values = _read_numbers(entry)
        return DomainSamples(check_X(values[:, :-1], f"{entry}"), values[:, -1])
    return _select_samples(_read_mat(entry) if kind == ".mat" else read_all_arrays(entry), entry)


def read_table(path: Path, label: str | None = None, **options: Any) -> DomainSamples:
    """Read the samples and labels of one domain from a table with named columns."""
    table = open_table(path)
    label = find_column(table, "label", label)
    samples = table.read(label=label, **options)
    check_samples([samples], label)
    return DomainSamples(samples.X, np.asarray(samples.y), (), samples.feature_names)


def _has_no_header(path: Path) -> bool:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        cells = re.split(r"[,;\t]", file.readline().strip())
    return all(re.fullmatch(r"\s*[-+]?[\d.]+([eE][-+]?\d+)?\s*", cell) for cell in cells)


def _read_numbers(path: Path) -> Array:
    try:
        values: Array = np.loadtxt(path, delimiter=",", encoding="utf-8-sig", ndmin=2)
    except ValueError as error:
        raise MixdaError(
            f"{path} has no header and does not contain comma-separated numbers ({error})."
        ) from None
    if values.shape[1] < 2:
        raise MixdaError(f"{path} must have a label column after the feature columns.")
    return values


def _read_mat(path: Path) -> dict[str, NDArray[Any]]:
    from scipy.io import loadmat

    try:
        return dict(loadmat(path))
    except NotImplementedError:
        raise MixdaError(
            f"{path} is a MATLAB 7.3 file, which is not supported. Save it with -v7 in MATLAB."
        ) from None
    except Exception as error:  # struct, zlib and numpy errors, depending on the bytes
        raise MixdaError(f"{path} is not a readable MATLAB file ({error}).") from None


def _select_samples(arrays: dict[str, Any], path: Path) -> DomainSamples:
    present = {name.lower(): array for name, array in arrays.items() if not name.startswith("__")}
    X = next((present[name] for name in FEATURES if name in present), None)
    labels = next((present[name] for name in LABELS if name in present), None)
    if X is None or labels is None:
        raise MixdaError(
            f"{path} must contain features named {', '.join(FEATURES)} and labels named "
            f"{', '.join(LABELS)}; its arrays are {', '.join(sorted(present)) or 'none'}."
        )
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    labels = np.asarray(labels).ravel()
    if X.ndim > 1 and len(X) != len(labels) == X.shape[-1]:
        X = X.T  # one sample per column, as is common in MATLAB
    if X.ndim < 2 or len(X) != len(labels):
        raise MixdaError(
            f"{path} must have one label per row of the features, got features of shape {X.shape} "
            f"and {len(labels)} labels."
        )
    if labels.dtype.kind == "O":
        labels = np.array([str(np.ravel(name)[0]) for name in labels])
    names = present.get("cls")
    if (
        names is not None
        and labels.dtype.kind in "iu"
        and 0 <= labels.min() <= labels.max() < len(names)
    ):
        labels = np.asarray(names).astype(str)[labels]
    return DomainSamples(check_X(X.reshape(len(X), -1), f"{path}"), labels, X.shape[1:])


def _read_images(folder: Path, images: Images) -> DomainSamples:
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
        raise MixdaError(f"{folder} has no images. Add them as <class>/<name>.jpg or .png.")
    batches = []
    with Progress(len(files), f"reading {folder.name}", images.verbose) as progress:
        for first in range(0, len(files), _IMAGES_PER_BATCH):
            batch = files[first : first + _IMAGES_PER_BATCH]
            pixels = np.array([_read_pixels(file, images) for file in batch])
            features = pixels if images.extract is None else np.asarray(images.extract(pixels))
            if len(features) != len(pixels):
                raise MixdaError(
                    f"extract must return one row of features per image, got {len(features)} rows "
                    f"for {len(pixels)} images."
                )
            batches.append(features.astype(np.float64))
            progress.update(first + len(batch))
    X = np.concatenate(batches)
    labels = np.array([file.parent.name for file in files])
    return DomainSamples(check_X(X.reshape(len(X), -1), f"{folder}"), labels, X.shape[1:])


def _read_pixels(path: Path, images: Images) -> NDArray[np.float32]:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "Reading images requires Pillow. Install it with: pip install pillow"
        ) from None
    try:
        with Image.open(path) as image:
            plain = image.convert("L" if images.gray else "RGB")
            plain = plain.resize((images.size, images.size), Image.Resampling.BILINEAR)
            values = np.asarray(plain, dtype=np.float32) / 255.0
    except OSError as error:
        raise MixdaError(f"{path} is not a readable image ({error}). Remove it.") from None
    return values[None] if images.gray else values.transpose(2, 0, 1)
