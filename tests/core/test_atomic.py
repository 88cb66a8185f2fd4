"""Atomic writes: permissions, links, leftovers of killed processes, unusable outputs."""

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from mixda import MixdaError
from mixda._core.atomic import check_output, replacing, write_atomically

WRITER = """
import sys, time
from mixda._core.atomic import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def killed(tmp_path):
    """A folder in which a writer of out.csv was killed."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "out.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert len(list(tmp_path.iterdir())) == 1
    return tmp_path


def test_leftovers_are_swept(killed):
    write_atomically(killed / "other.csv", b"1")
    assert len(list(killed.glob(".out.csv.*"))) == 1  # not its own
    write_atomically(killed / "out.csv", b"2")
    assert sorted(path.name for path in killed.iterdir()) == ["other.csv", "out.csv"]


def test_live_writers_are_left_alone(tmp_path):
    with replacing(tmp_path / "a") as slow:
        slow.write(b"slow")
        write_atomically(tmp_path / "a", b"fast")
    assert (tmp_path / "a").read_bytes() == b"slow"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_other_files_are_left_alone(tmp_path):
    names = [".a.original", ".a.b.12345678.mixda-tmp", ".a.12345678"]
    for name in names:
        (tmp_path / name).touch()
    write_atomically(tmp_path / "a", b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "a"])


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_mode_is_kept(tmp_path, mode):
    path = tmp_path / "a"
    path.touch()
    path.chmod(mode)
    write_atomically(path, b"new")
    assert path.stat().st_mode & 0o777 == mode


def test_links_are_followed(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "a").symlink_to(tmp_path / "data" / "b")
    for data in (b"first", b"second"):  # a dangling link, then one to a file
        write_atomically(tmp_path / "a", data)
        assert (tmp_path / "a").is_symlink()
        assert (tmp_path / "data" / "b").read_bytes() == data


def test_unusable_outputs(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "no/such"):
        with pytest.raises(MixdaError, match="cannot be written"):
            check_output(tmp_path / name)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    check_output(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(MixdaError, match="Permission denied"):
        check_output(tmp_path / "a")
