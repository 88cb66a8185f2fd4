"""Archives that unpack to far more than they say are refused before they are read."""

import io
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import mixda
from mixda import MixdaError
from mixda._core.archive import check_npz
from mixda.tables import open_table

METHODS = {"bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA, "deflate": zipfile.ZIP_DEFLATED}
PEAK = """
import resource, sys
import mixda
from mixda.tables import open_table
from mixda._core.resume import ResumeFile
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
path = sys.argv[1]
try:
    if path.endswith("npz"):
        open_table(path)
    elif path.endswith("checkpoint"):
        ResumeFile(path, [], 0).load(dict)
    else:
        mixda.load(path)
except mixda.MixdaError as error:
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print((after - before) // 1024)
"""


def bomb(path, method, claimed, size=300_000_000):
    """Write an archive of zeros whose directory claims another size."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive, archive.open("X.npy", "w") as member:
        for _ in range(size // 10_000_000):
            member.write(bytes(10_000_000))
    data = bytearray(buffer.getvalue())
    place = data.index(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", claimed)
    path.write_bytes(bytes(data))
    return path


@pytest.mark.parametrize("name", ["a.gmm", "a.mixda", "a.npz", "a.checkpoint"])
@pytest.mark.parametrize("method", METHODS)
def test_bombs(tmp_path, name, method):
    path = bomb(tmp_path / name, METHODS[method], claimed=1000)
    assert path.stat().st_size < 1_000_000
    command = [sys.executable, "-c", PEAK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100  # MB; that it is printed shows that the file was refused


def test_declared_bombs(tmp_path):
    path = bomb(tmp_path / "a.npz", zipfile.ZIP_DEFLATED, 0xFFFFFFF0, 10_000_000)
    for read in (mixda.load, open_table):
        with pytest.raises(MixdaError, match=r"a\.npz"):
            read(path)


def test_usual_files_pass(tmp_path):
    np.savez_compressed(tmp_path / "zeros.npz", X=np.zeros((100_000, 10)))
    check_npz(tmp_path / "zeros.npz")
    assert open_table(tmp_path / "zeros.npz").n_rows == 100_000
    (tmp_path / "text.npz").write_text("no archive")
    check_npz(tmp_path / "text.npz")  # numpy explains it
