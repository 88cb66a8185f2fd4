"""The file format of mixda: a NumPy .npz archive with a JSON header and a checksum, no pickles.

`write_archive` and `read_archive` write and read a header and arrays. `pack` and `unpack` convert
frozen dataclasses to a header and arrays, and back. Reading never runs code from the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.atomic import write_atomically
from mixda._core.errors import MixdaError

Arrays = dict[str, NDArray[Any]]

_MAX_COMPRESSED_BYTES = 1 << 26  # of the contents; larger ones are stored without compression
_MAX_COMPRESSION_RATIO = 100  # that is accepted for contents above that size
_MAX_SMALL_NPZ_BYTES = 1 << 30  # that an npz file of a user may unpack to, whatever its size
# The decompressors of Python's zipfile for other methods return a whole block, of any size.
_COMPRESSION_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DTYPE_KINDS = "biufU"  # booleans, numbers and strings
_JSON_SCALARS = (str, int, float, bool, type(None))


def write_archive(path: str | Path, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a header (JSON; needs "format" and "version") and arrays to `path`, atomically.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from mixda._core.archive import read_archive, write_archive
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a")
    ...     write_archive(path, {"format": "mixda.a", "version": 1}, {"x": np.ones(2)})
    ...     header, arrays = read_archive(path, {"mixda.a": 1})
    >>> header["version"], arrays["x"]
    (1, array([1., 1.]))
    """
    from mixda._version import __version__

    header = {**header, "mixda": __version__}
    header["sha256"] = _digest(arrays, header)
    entries: dict[str, Any] = {"header": np.array(json.dumps(header)), **arrays}
    small = sum(array.nbytes for array in entries.values()) <= _MAX_COMPRESSED_BYTES
    buffer = io.BytesIO()
    (np.savez_compressed if small else np.savez)(buffer, **entries)
    write_atomically(path, buffer.getvalue())


def read_archive(path: str | Path, formats: Mapping[str, int]) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a file in one of the `formats` (name → newest known version).

    A file that is missing, foreign, truncated, damaged or newer raises a `MixdaError`.
    """
    path = Path(path)
    arrays = _read_entries(path)
    try:
        header: dict[str, Any] = json.loads(str(arrays.pop("header")))
        name, version = header["format"], header["version"]
        digest = header.pop("sha256")
        known = isinstance(version, int) and str(name).startswith("mixda.")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        known = False
    if not known:
        raise MixdaError(f"{path} was not written by mixda; give a .gmm or .mixda file.")
    if name not in formats:
        wanted = " or ".join(sorted(formats))
        raise MixdaError(f"{path} holds {name!r}, not {wanted!r}; mixda.load opens both.")
    if version > formats[name]:
        raise MixdaError(
            f"{path} has version {version} of its format, but this mixda reads up to version "
            f"{formats[name]}; {_advice(header.get('mixda'))}"
        )
    covered = header if "mixda" in header else None  # version 1 of mixtures covers arrays only
    if digest != _digest(arrays, covered):
        raise MixdaError(f"{path} is damaged (its checksum does not match); copy it again.")
    return header, arrays


def check_npz(path: str | Path) -> None:
    """Reject an npz file that would unpack to an absurd size, before numpy reads it.

    A file that is not a zip archive passes, because numpy explains it better.

    Examples
    --------
    >>> import tempfile, zipfile
    >>> from pathlib import Path
    >>> from mixda._core.archive import check_npz
    >>> from mixda._core.errors import MixdaError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.npz")
    ...     with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
    ...         archive.writestr("X.npy", bytes(100))
    ...     try:
    ...         check_npz(path)
    ...     except MixdaError as error:
    ...         print(str(error).removeprefix(str(path)))
     cannot be read: 'X.npy' is not stored or deflated.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_sizes(entries, Path(path).stat().st_size, _MAX_SMALL_NPZ_BYTES)
            for entry in entries:
                with archive.open(entry) as member:
                    _read_array_header(member, entry)
    except _ForeignError as error:
        raise MixdaError(f"{path} cannot be read: {error}.") from None
    except Exception:  # of zipfile, zlib or numpy, whose reader explains it
        return


def pack(value: Any, kinds: Sequence[type]) -> tuple[Any, Arrays]:
    """Return a value as a JSON tree and its arrays, named by their path in the tree.

    A value consists of frozen dataclasses among `kinds`, arrays, tuples, JSON dictionaries and
    JSON scalars.

    Examples
    --------
    >>> from mixda import Mixture
    >>> from mixda._core.archive import pack, unpack
    >>> p = Mixture([1.0], [[0.0]], [[1.0]])
    >>> tree, arrays = pack((p,), [Mixture])
    >>> sorted(arrays)
    ['0.means', '0.stds', '0.weights']
    >>> unpack(tree, arrays, [Mixture]) == (p,)
    True
    """
    arrays: Arrays = {}
    return _pack(value, kinds, "", arrays), arrays


def unpack(tree: Any, arrays: Arrays, kinds: Sequence[type]) -> Any:
    """Return the value that was packed; its classes validate their arguments."""
    if isinstance(tree, list):
        return tuple(unpack(part, arrays, kinds) for part in tree)
    if not isinstance(tree, dict):
        return tree
    if tree.keys() == {"json"}:
        return tree["json"]
    if tree.keys() == {"array"}:
        return arrays[tree["array"]]
    kind = next((kind for kind in kinds if kind.__name__ == tree.get("kind")), None)
    if kind is None:
        raise MixdaError(f"it holds {tree.get('kind')!r}, which this mixda does not know")
    return kind(**{name: unpack(part, arrays, kinds) for name, part in tree["fields"].items()})


def check_json(value: Any, name: str) -> dict[str, Any]:
    """Return a deep copy of a dictionary of JSON values; None becomes an empty dictionary."""
    if value is None or value == {}:
        return {}
    try:
        copy = json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise MixdaError(f"{name} must be a dictionary of JSON values: {error}.") from None
    if not isinstance(copy, dict):
        raise MixdaError(f"{name} must be a dictionary of JSON values, got {value!r}.")
    return copy


def _pack(value: Any, kinds: Sequence[type], path: str, arrays: Arrays) -> Any:
    if isinstance(value, np.ndarray):
        arrays[path] = np.array(value, order="C")
        return {"array": path}
    if isinstance(value, (tuple, list)):
        return [_pack(part, kinds, _join(path, i), arrays) for i, part in enumerate(value)]
    if isinstance(value, dict):
        return {"json": value}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _JSON_SCALARS):
        return value
    if type(value) not in kinds or not is_dataclass(value):
        known = ", ".join(kind.__name__ for kind in kinds)
        raise MixdaError(f"{type(value).__name__} cannot be saved; supported types are {known}.")
    names = [field.name for field in fields(value)]
    parts = {name: _pack(getattr(value, name), kinds, _join(path, name), arrays) for name in names}
    return {"kind": type(value).__name__, "fields": parts}


def _join(path: str, name: str | int) -> str:
    return f"{path}.{name}" if path else str(name)


def _digest(arrays: Arrays, header: Mapping[str, Any] | None) -> str:
    digest = hashlib.sha256()
    if header is not None:
        digest.update(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _advice(version: Any) -> str:
    """Tell which version of mixda opens a newer file, if the file names one."""
    if isinstance(version, str) and re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", version):
        return f"upgrade to open it: pip install 'mixda>={version}'."
    return "upgrade mixda to open it."


def _read_entries(path: Path) -> Arrays:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_sizes(entries, path.stat().st_size, _MAX_COMPRESSED_BYTES)
            _check_names(entries)
            return {
                entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries
            }
    except FileNotFoundError:
        raise MixdaError(f"{path} does not exist.") from None
    except OSError as error:
        if error.errno is not None and error.strerror:
            raise MixdaError(f"{path} cannot be read: {error.strerror}.") from None
        raise MixdaError(f"{path} is damaged or is not a file of mixda.") from None
    except zipfile.BadZipFile:
        raise MixdaError(f"{path} is not a file of mixda, or it is truncated.") from None
    except _ForeignError as error:
        raise MixdaError(f"{path} is not a file of mixda: {error}.") from None
    except Exception as error:  # a damaged archive can fail anywhere in zlib, struct or ast
        raise MixdaError(f"{path} is damaged ({type(error).__name__}); copy it again.") from None


class _ForeignError(Exception):
    """Contents that mixda never writes."""


def _check_sizes(entries: Sequence[zipfile.ZipInfo], file_size: int, accepted: int) -> None:
    """Reject archives that would unpack to an absurd size, before anything is unpacked.

    What an entry unpacks to is cut off at the size that the directory states.
    """
    for entry in entries:
        if entry.compress_type not in _COMPRESSION_METHODS:
            raise _ForeignError(f"{entry.filename[:40]!r} is not stored or deflated")
    total = sum(entry.file_size for entry in entries)
    if total > max(accepted, _MAX_COMPRESSION_RATIO * file_size):
        raise _ForeignError(f"its {file_size} bytes would unpack to {total}")


def _check_names(entries: Sequence[zipfile.ZipInfo]) -> None:
    """Reject archives that mixda has not written."""
    if len({entry.filename for entry in entries}) != len(entries):
        raise _ForeignError("it holds two entries with the same name")
    others = [entry.filename for entry in entries if not entry.filename.endswith(".npy")]
    if others:
        raise _ForeignError(f"it holds {others[0][:40]!r}")


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one .npy entry; its shape must match its number of bytes."""
    with archive.open(entry) as member:
        data = member.read(entry.file_size + 1)
    if len(data) != entry.file_size:
        raise _ForeignError(f"{entry.filename[:40]!r} has not the size that the directory states")
    stream = io.BytesIO(data)
    shape, by_columns, dtype = _read_array_header(stream, entry)
    if dtype.kind not in _DTYPE_KINDS:
        raise _ForeignError(f"{entry.filename[:40]!r} holds values of dtype {str(dtype)[:40]}")
    order: Any = "F" if by_columns else "C"
    array: NDArray[Any] = np.ndarray(shape, dtype, data, stream.tell(), order=order)
    return array


def _read_array_header(stream: Any, entry: zipfile.ZipInfo) -> tuple[Any, bool, np.dtype[Any]]:
    """Read shape, order and dtype of an .npy entry; they must match its number of bytes."""
    try:
        version = np.lib.format.read_magic(stream)
    except ValueError:
        raise _ForeignError(f"{entry.filename[:40]!r} is not an array") from None
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, by_columns, dtype = read_header(stream)
    size = entry.file_size - stream.tell()
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize != size:
        raise _ForeignError(
            f"{entry.filename[:40]!r} does not hold as many values as its header says"
        )
    return shape, by_columns, dtype
