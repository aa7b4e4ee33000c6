"""The list of known machines: what a person introduced stays, and a damaged one lets nobody in."""

from base64 import b64encode
from pathlib import Path

import pytest

from sojourn.errors import FormatError, NotFoundError, UsageError
from sojourn.ids import machine_id
from sojourn.peers.book import NAME, Book, Known
from sojourn.store.disk import OsDisk
from sojourn.store.durable import Durable


def book(folder: Path) -> Book:
    return Book(folder=str(folder / "state"), files=Durable(OsDisk()))


def known(name: str, number: int = 1, *, address: str = "https://box:7477") -> Known:
    key = bytes([number]) * 32
    return Known(
        name=name,
        machine=machine_id(key),
        key=b64encode(key).decode(),
        address=address,
        certificate=b64encode(b"der").decode(),
        rights=("look",),
    )


def test_a_book_that_was_never_written_is_empty(tmp_path: Path) -> None:
    assert book(tmp_path).known() == ()


def test_what_is_added_is_known_by_name_and_by_machine(tmp_path: Path) -> None:
    one, other = known("zeta", 1), known("alpha", 2)
    book(tmp_path).add(one)
    book(tmp_path).add(other)
    assert book(tmp_path).known() == (other, one)
    assert book(tmp_path).named("zeta") == one
    assert book(tmp_path).of(other.machine) == other
    assert (tmp_path / "state" / NAME).stat().st_mode & 0o777 == 0o600


def test_a_machine_is_known_once(tmp_path: Path) -> None:
    book(tmp_path).add(known("old"))
    book(tmp_path).add(known("new", address="https://elsewhere:1"))
    assert [one.name for one in book(tmp_path).known()] == ["new"]


def test_a_name_means_one_machine(tmp_path: Path) -> None:
    book(tmp_path).add(known("box", 1))
    with pytest.raises(UsageError) as caught:
        book(tmp_path).add(known("box", 2))
    assert caught.value.code == "name_taken"
    assert book(tmp_path).of(known("box", 1).machine) is not None


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "x" * 65])
def test_a_name_that_is_no_word_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        book(tmp_path).add(known(name))


def test_a_dropped_machine_is_not_known_any_more(tmp_path: Path) -> None:
    book(tmp_path).add(known("box"))
    book(tmp_path).drop("box")
    assert book(tmp_path).known() == ()
    with pytest.raises(NotFoundError) as caught:
        book(tmp_path).drop("box")
    assert caught.value.code == "remote_unknown"


@pytest.mark.parametrize("part", ["machine", "key", "certificate"])
def test_a_damaged_list_is_named_and_lets_nobody_in(tmp_path: Path, part: str) -> None:
    book(tmp_path).add(known("box"))
    path = tmp_path / "state" / NAME
    true = getattr(known("box"), part)
    path.write_text(path.read_text().replace(true, "*" + true[1:]))
    with pytest.raises(FormatError) as caught:
        book(tmp_path).known()
    assert caught.value.code == "peers_damaged"
