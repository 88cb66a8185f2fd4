"""Every connection to a scheduler has a deadline, and a failure is one sentence."""

import socket
import subprocess
import sys
import threading
import time

import pytest

from mixda import MixdaError
from mixda.chunks import connected_client
from mixda.chunks._connection import within_deadline

pytest.importorskip("distributed")


@pytest.fixture
def silent():
    """The address of a server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


def test_silent_server(silent, monkeypatch):
    monkeypatch.setattr("mixda.chunks._connection.CONNECT_SECONDS", 0.5)
    start = time.monotonic()
    with pytest.raises(MixdaError, match=silent), connected_client(silent, "client"):
        pass
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("address", ["nonsense", "nonsense://x", "tcp://", "", "a b:1", ":8786"])
def test_malformed_addresses(address):
    before = threading.active_count()
    with (
        pytest.raises(ConnectionError, match="client must be"),
        connected_client(address, "client"),
    ):
        pass
    assert threading.active_count() == before  # no client was made


def test_one_sentence(silent, tmp_path):
    """Nothing but the sentence reaches the terminal, and the exit code is that of bad input."""
    pytest.importorskip("typer")
    (tmp_path / "a.csv").write_text(
        "x,y\n" + "".join(f"{k * k % 37 + 0.5},{k % 2}\n" for k in range(40))
    )
    code = (
        "import sys, mixda.chunks._connection as c; c.CONNECT_SECONDS = 0.5; "
        "from mixda.cli import run; sys.exit(run(sys.argv[1:]))"
    )
    fit = ["fit", str(tmp_path / "a.csv"), "--label", "y", "-o", str(tmp_path / "a.gmm")]
    done = subprocess.run(
        [sys.executable, "-c", code, *fit, "--scheduler", silent], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--scheduler" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_deadline():
    with pytest.raises(TimeoutError, match=r"0\.1 seconds"):
        within_deadline(threading.Event().wait, 0.1)
    with pytest.raises(KeyError):
        within_deadline(lambda: {}["missing"])
    assert within_deadline(lambda: 3) == 3
