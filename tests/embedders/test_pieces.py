"""Texts are cut into pieces alike on every machine, and names of code into their words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.embedders.pieces import Pieces

TABLE = ("load", "config", "##ig", "##uration", "conf", "http", "server", "2", "cafe", "!", "un")
ROWS = {piece: row for row, piece in enumerate(TABLE)}


def cut(text: str, most: int = 99) -> list[str]:
    return [TABLE[row] for row in Pieces(ROWS).of(text, most)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("load_config", ["load", "config"]),
        ("loadConfig", ["load", "config"]),
        ("HTTPServer", ["http", "server"]),
        ("LOAD CONFIG", ["load", "config"]),
        ("configuration", ["config", "##uration"]),
        ("Café!", ["cafe", "!"]),
        ("load config2", ["load", "config"]),
    ],
)
def test_a_word_is_cut_into_the_longest_pieces(text: str, pieces: list[str]) -> None:
    assert cut(text) == pieces


def test_what_the_table_does_not_know_is_passed_over() -> None:
    assert cut("\u4e00 load \U0001f600 zz") == ["load"]


def test_only_the_first_pieces_count() -> None:
    assert cut("load " * 50, most=3) == ["load"] * 3


@given(st.text())
def test_any_text_can_be_cut(text: str) -> None:
    assert all(piece in ROWS for piece in cut(text))
