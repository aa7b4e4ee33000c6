"""The working index: a copy of the log's texts that can be lost or damaged at any time."""

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.passages import Passage
from sojourn.errors import StorageError
from sojourn.ids import EventId
from sojourn.store.working_index import SqliteWorkingIndex


def passage(number: int, text: str, *, kind: str = "input", place: str | None = None) -> Passage:
    return Passage(
        kind=kind,
        place=place or f"{number:064x}",
        part=0,
        event=EventId(f"{number:064x}"),
        number=number,
        time="2026-01-01T00:00:00.000Z",
        text=text,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recall" / "one.sqlite3"


@pytest.fixture
def index(path: Path) -> SqliteWorkingIndex:
    made = SqliteWorkingIndex(str(path))
    made.update(
        gone=(),
        new=[
            passage(1, "The deadlock came from two locks"),
            passage(2, "Unlocking the door", kind="tool_outcome"),
            passage(3, "# Notes\nlocks", kind="memory", place="# Notes"),
        ],
        mark="m",
    )
    return made


def test_a_new_index_is_empty(path: Path) -> None:
    index = SqliteWorkingIndex(str(path))
    assert (index.mark(), index.kept(), index.vectors(())) == ("", (), ([], b""))


@pytest.mark.usefixtures("index")
def test_what_was_put_in_is_there_for_the_next_process(path: Path) -> None:
    again = SqliteWorkingIndex(str(path))
    assert again.mark() == "m"
    assert [one.key for one in again.kept()] == [
        ("", f"{1:064x}", 0),
        ("", f"{2:064x}", 0),
        ("memory", "# Notes", 0),
    ]
    assert again.passages([1])[1] == passage(1, "The deadlock came from two locks")


def test_words_are_found_in_their_other_forms(index: SqliteWorkingIndex) -> None:
    assert index.with_words(["lock"], (), most=9) == [3, 1]
    assert index.with_words(["locked"], (), most=9) == [3, 1]


def test_the_passage_with_more_of_the_words_is_first(index: SqliteWorkingIndex) -> None:
    assert index.with_words(["deadlock", "locks"], (), most=9)[0] == 1


def test_a_search_can_be_held_to_kinds(index: SqliteWorkingIndex) -> None:
    assert index.with_words(["locks"], ("memory",), most=9) == [3]
    index.add_vectors({1: b"a", 2: b"b", 3: b"c"})
    assert index.vectors(("tool_outcome", "memory")) == ([2, 3], b"bc")


@pytest.mark.parametrize("word", ['"', "a OR", "x*", "NEAR(a)", "^a", "\x00", "col:a", "'"])
def test_no_word_of_a_question_is_taken_for_syntax(word: str, index: SqliteWorkingIndex) -> None:
    assert index.with_words([word], (), most=9) == []


def test_words_are_counted_among_all_and_among_some(index: SqliteWorkingIndex) -> None:
    total, having = index.having(["locks", "door"], [1, 2])
    assert total == 3
    assert (having["locks"].count, having["locks"].among) == (2, frozenset({1}))
    assert (having["door"].count, having["door"].among) == (1, frozenset({2}))


def test_a_passage_gets_its_vector_once(index: SqliteWorkingIndex) -> None:
    assert [number for number, _ in index.without_vectors(2)] == [1, 2]
    index.add_vectors({1: b"x", 2: b"y"})
    assert [number for number, _ in index.without_vectors(2)] == [3]
    assert [(one.id, vector) for one, vector in index.with_vectors()] == [(2, b"y"), (1, b"x")]


def test_what_is_taken_out_is_found_no_more(index: SqliteWorkingIndex) -> None:
    index.update(gone=[3], new=[], mark="n")
    assert index.with_words(["locks"], (), most=9) == [1]
    assert index.mark() == "n"


def test_a_passage_that_another_process_put_in_is_not_put_in_twice(
    index: SqliteWorkingIndex,
) -> None:
    index.update(gone=(), new=[passage(1, "The deadlock came from two locks")], mark="m")
    assert len(index.kept()) == 3
    assert index.with_words(["deadlock"], (), most=9) == [1]


def test_a_failed_update_changes_nothing(index: SqliteWorkingIndex, path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TRIGGER no BEFORE DELETE ON passages BEGIN SELECT RAISE(FAIL, 'no'); END"
        )
    db.close()
    with pytest.raises(StorageError):
        index.update(gone=[1], new=[passage(9, "new")], mark="n")
    assert index.mark() == "m"
    assert len(index.kept()) == 3


@pytest.mark.parametrize(
    "data", [b"this is no database" * 99, b"SQLite format 3\0" + b"\xff" * 999]
)
def test_a_damaged_file_is_replaced_by_an_empty_one(data: bytes, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(data)
    index = SqliteWorkingIndex(str(path))
    assert index.kept() == ()
    index.update(gone=(), new=[passage(1, "text")], mark="m")
    assert index.with_words(["text"], (), most=9) == [1]


def test_a_file_of_another_layout_is_replaced(index: SqliteWorkingIndex, path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert index.kept() == ()


@pytest.mark.parametrize("side", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("lies", ["folder", "full folder", "link", "pipe"])
def test_whatever_lies_in_its_place_is_taken_away_and_a_folder_set_aside(
    lies: str, side: str, path: Path, tmp_path: Path
) -> None:
    path.parent.mkdir()
    at, outside = Path(f"{path}{side}"), tmp_path / "outside"
    outside.write_text("mine")
    match lies:
        case "link":
            at.symlink_to(outside)
        case "pipe":
            os.mkfifo(at)
        case _:
            at.mkdir()
            if lies == "full folder":
                (at / "inner").write_text("mine")
    index = SqliteWorkingIndex(str(path))
    index.update(gone=(), new=[passage(1, "text")], mark="m")
    assert index.with_words(["text"], (), most=9) == [1]
    assert outside.read_text() == "mine"
    if lies == "full folder":
        assert (path.parent / f"{at.name}.aside-1/inner").read_text() == "mine"


def test_calls_share_a_connection_while_it_is_had_alone(
    index: SqliteWorkingIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    real = sqlite3.connect

    def connect(path: str, **more: Any) -> sqlite3.Connection:
        made.append(path)
        return real(path, **more)

    monkeypatch.setattr(sqlite3, "connect", connect)
    with index.alone():
        assert index.mark() == "m"
        assert index.with_words(["locks"], (), most=9)
        assert len(made) == 1
        index.forget()
        assert index.kept() == ()
        assert len(made) == 2
    assert index.kept() == ()
    assert len(made) == 3


def test_a_call_that_failed_leaves_nothing_begun_for_the_next(
    index: SqliteWorkingIndex, path: Path
) -> None:
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TRIGGER no BEFORE DELETE ON passages BEGIN SELECT RAISE(FAIL, 'no'); END"
        )
    db.close()
    with index.alone():
        with pytest.raises(StorageError):
            index.update(gone=[1], new=[], mark="n")
        index.update(gone=(), new=[passage(9, "new")], mark="o")
    assert index.mark() == "o"
    assert len(index.kept()) == 4


def test_a_lock_that_cannot_be_opened_is_an_error_with_a_name(path: Path) -> None:
    Path(f"{path}.lock").mkdir(parents=True)
    with pytest.raises(StorageError) as caught, SqliteWorkingIndex(str(path)).alone():
        pass
    assert caught.value.code == "index_unusable"


def test_a_word_that_most_have_is_counted_like_a_rare_one(path: Path) -> None:
    index = SqliteWorkingIndex(str(path))
    texts = [f"common {'rare' if number % 50 == 0 else ''}" for number in range(300)]
    index.update(gone=(), new=[passage(n, text) for n, text in enumerate(texts)], mark="m")
    for ids in ([1], [1, 2, 51], list(range(1, 301))):
        total, having = index.having(["common", "rare", "none"], ids)
        assert (total, having["common"].count, having["rare"].count) == (300, 300, 6)
        assert having["common"].among == set(ids)
        assert having["rare"].among == {number for number in ids if number % 50 == 1}
        assert having["none"].among == set()


def test_nothing_is_left_on_the_disk_after_forgetting(
    index: SqliteWorkingIndex, path: Path
) -> None:
    index.forget()
    assert list(path.parent.iterdir()) == []
    index.forget()
    assert index.kept() == ()


@pytest.mark.usefixtures("index")
def test_only_the_user_can_read_it(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError):
        SqliteWorkingIndex(str(tmp_path / "recall" / "x")).kept()
