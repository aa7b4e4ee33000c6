"""Nothing that models, tools or capsules say acts on the terminal, or hides in it."""

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.cli.clean import clean, escaped_json, one_line
from sojourn.cli.people import table
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Channel, Painted

ATTACKS = {
    "\x1b[31mred\x1b[0m": "\\x1b[31mred\\x1b[0m",
    "\x1b]0;title\x07": "\\x1b]0;title\\x07",
    "\x1b]52;c;aGk=\x1b\\": "\\x1b]52;c;aGk=\\x1b\\",
    "\x9b2J": "\\x9b2J",
    "user\u202etxt.exe": "user\\u202etxt.exe",
    "a\u200bb\u200d\ufeff": "a\\u200bb\\u200d\\ufeff",
    "\U000e0041\U000e0042": "\\U000e0041\\U000e0042",
    "back\x08space": "back\\x08space",
    "safe\roverwritten": "safeoverwritten",
    "\ud800": "\\ud800",
}


@pytest.mark.parametrize("text", ATTACKS)
def test_an_attack_is_shown_instead_of_obeyed(text: str) -> None:
    assert clean(text) == ATTACKS[text]


@given(st.text(st.characters(), max_size=50))
def test_no_control_or_format_character_is_left(text: str) -> None:
    left = {unicodedata.category(letter) for letter in clean(text) if letter not in "\n\t"}
    assert not left & {"Cc", "Cs", "Zl", "Zp"}
    bidi = {unicodedata.bidirectional(letter) for letter in clean(text)}
    assert not bidi & {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(st.text(max_size=50))
def test_a_sound_text_is_left_alone(text: str) -> None:
    sound = "".join(letter for letter in text if unicodedata.category(letter)[0] in "LNPZ")
    sound = "".join(letter for letter in sound if clean(letter) == letter)
    assert clean(sound) == sound


@given(st.text(max_size=80), st.integers(0, 80))
def test_a_text_may_be_cleaned_piece_by_piece(text: str, at: int) -> None:
    assert clean(text[:at]) + clean(text[at:]) == clean(text)


@given(st.text(st.characters(), max_size=50))
def test_escaped_json_is_the_same_value(text: str) -> None:
    source = escaped_json(json.dumps({"a": text}, ensure_ascii=False))
    assert json.loads(source) == {"a": text}
    assert clean(source) == source.replace("\r", "")


def test_a_line_is_cut_with_an_ellipsis() -> None:
    assert one_line("a\n  b\t c") == "a b c"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10


class Screen(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_a_channel_cleans_every_piece_and_colours_after_that(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen(terminal=terminal)
    Channel(screen, Settings()).line("\x1b[2J", Painted("\x1b]0;x\x07", "bad"))
    painted = "\x1b[31m\\x1b]0;x\\x07\x1b[0m" if terminal else "\\x1b]0;x\\x07"
    assert screen.getvalue() == f"\\x1b[2J{painted}\n"


def test_a_line_is_one_line_whatever_is_in_it() -> None:
    screen = Screen(terminal=False)
    channel = Channel(screen, Settings())
    channel.line("box\nerror: forged", Painted("\n", "bad"))
    table(channel, ("A",), [("x\ny\tz",)])
    assert screen.getvalue() == "box\\nerror: forged\\n\nA\nx\\ny\\tz\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_table_cleans_its_cells(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen(terminal=terminal)
    channel = Channel(screen, Settings(colour=False))
    table(channel, ("NAME", "STATE"), [("\x1b[2Ja[bold]b", Painted("日本", "good")), ("c", "d")])
    name = "\\x1b[2Ja[bold]b"
    assert screen.getvalue().splitlines() == [
        f"{'NAME':<{len(name)}}  STATE",
        f"{name}  日本",
        f"{'c':<{len(name)}}  d",
    ]
