"""Names from files cannot control the terminal."""

import pytest

from mixda._core.text import listed, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, süß 漢字 👩\u200d🔬", "plain, süß 漢字 👩\u200d🔬"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("a\r\nb\tc\u2028", r"a\r\nb\tc\u2028"),
    ],
)
def test_printable(text, shown):
    assert printable(text) == shown
    assert listed([text]) == shown


def test_kept_characters():
    assert printable("a\n\x1bb", keep="\n") == "a\n\\x1bb"
