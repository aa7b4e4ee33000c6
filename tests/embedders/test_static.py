"""The embedder that comes with sojourn: the same vectors everywhere, and near for what is alike."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.core.recall import nearest
from sojourn.embedders import static
from sojourn.embedders.static import DIMENSIONS, StaticEmbedder
from sojourn.errors import StorageError

PINNED = {
    "The deadlock came from taking the two locks in opposite order.": "a3366a633afbf4d8d9f31b49",
    "def readConfig(path_name): return HTTPServer2": "ba0212f2515da1eab454f809",
    "Caf\xe9 \u4e2d\u6587 \U0001f600 123": "69ff38b7678e7aadc52bf621",
    "word " * 1000: "3279de569021343d9b340aa9",
}
"""How the sha256 of the vectors of some texts begins."""

EMBEDDER = StaticEmbedder()


def test_the_table_is_the_one_that_the_digest_names() -> None:
    assert hashlib.sha256(static.TABLE.read_bytes()).hexdigest() == EMBEDDER.digest


def test_the_table_is_small_enough_to_be_shipped() -> None:
    assert static.TABLE.stat().st_size <= 8_000_000


@pytest.mark.parametrize("text", PINNED)
def test_a_text_has_the_same_vector_on_every_machine(text: str) -> None:
    (vector,) = EMBEDDER.embed([text])
    assert hashlib.sha256(vector).hexdigest()[:24] == PINNED[text]


def test_a_vector_does_not_depend_on_its_company() -> None:
    texts = ["one thing", "another thing", "one thing"]
    together = EMBEDDER.embed(texts)
    assert together == [EMBEDDER.embed([text])[0] for text in texts]


@pytest.mark.parametrize("text", ["", "   ", "\U00010330\U0001f600", "\x00"])
def test_a_text_without_known_pieces_has_no_direction(text: str) -> None:
    assert EMBEDDER.embed([text]) == [bytes(DIMENSIONS)]


@settings(max_examples=50)
@given(st.text(max_size=300))
def test_any_text_has_a_vector_of_full_size(text: str) -> None:
    (vector,) = EMBEDDER.embed([text])
    largest = max(abs(value - 256 if value > 127 else value) for value in vector)
    assert len(vector) == DIMENSIONS
    assert largest in (0, 127)


def test_what_means_the_same_is_nearer_than_what_does_not() -> None:
    asked, *texts = EMBEDDER.embed(
        [
            "the program used too much memory and was stopped",
            "a cake with flour, sugar and eggs",
            "the process was killed because it ran out of RAM",
            "the train leaves from platform nine",
        ]
    )
    assert nearest(asked, b"".join(texts))[0].number == 1


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"not json\n", None])
def test_a_broken_table_is_named(damage: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "table.bin"
    if damage is not None:
        path.write_bytes(damage)
    with pytest.raises(StorageError) as caught:
        static.Table(path)
    assert caught.value.code == "table_missing"


def test_a_table_that_was_cut_is_named(tmp_path: Path) -> None:
    path = tmp_path / "table.bin"
    path.write_bytes(static.TABLE.read_bytes()[:-1])
    with pytest.raises(StorageError):
        static.Table(path)


def test_numpy_is_not_loaded_before_vectors_are_wanted() -> None:
    program = (
        "import sys, sojourn, sojourn.cli.main, sojourn.cli.search, sojourn.agent.recalling;"
        "import sojourn.tools.toolbox, sojourn.core.recall;"
        "sys.exit('numpy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
