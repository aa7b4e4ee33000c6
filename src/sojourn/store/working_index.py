"""The working index of one capsule: SQLite with FTS5 and vectors, beside the capsule, never in it.

It can be deleted at any time. A damaged file, or one of another layout, is replaced
(docs/recall.md#working-index).
"""

import fcntl
import itertools
import os
import sqlite3
import stat
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import Any, Final, cast

from sojourn.core.passages import Passage
from sojourn.core.recall import Having
from sojourn.errors import StorageError
from sojourn.ids import EventId
from sojourn.ports_recall import Kept

LAYOUT: Final = 1
"""Changes with the tables; a file of another layout is made again."""

BUSY_SECONDS: Final = 20.0

LISTED: Final = 100
"""So many times more passages than are asked about are listed rather than looked up."""

_TABLES: Final = """
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, space TEXT NOT NULL, place TEXT NOT NULL, part INTEGER NOT NULL,
    kind TEXT NOT NULL, event TEXT NOT NULL, number INTEGER NOT NULL, time TEXT NOT NULL,
    digest TEXT NOT NULL, text TEXT NOT NULL, vector BLOB,
    UNIQUE (space, place, part)
);
CREATE INDEX unembedded ON passages (id) WHERE vector IS NULL;
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = 'passages', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_COLUMNS: Final = "id, space, place, part, kind, event, number, time, digest, text"
_INSERT: Final = (
    f"INSERT OR IGNORE INTO passages ({_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_DAMAGED: Final = ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_FORMAT")
_SIDES: Final = ("", "-wal", "-shm", "-journal")


class SqliteWorkingIndex:
    """The `WorkingIndex` port in one file; any thread may call.

    Each call opens the file, but for those of the thread that has it `alone`.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._thread: int | None = None
        self._db: sqlite3.Connection | None = None

    def mark(self) -> str:
        """What the last update said it fits, empty when nothing is known."""
        with self._open() as db:
            row = db.execute("SELECT value FROM marks WHERE name = 'fits'").fetchone()
        return "" if row is None else str(row[0])

    def kept(self) -> tuple[Kept, ...]:
        """Every passage, ascending by number."""
        query = "SELECT id, space, place, part, digest, number FROM passages ORDER BY id"
        with self._open() as db:
            return tuple(_kept(row) for row in db.execute(query))

    def update(self, *, gone: Sequence[int], new: Sequence[Passage], mark: str) -> None:
        """Take passages out and others in, all or none."""
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            for number in gone:
                _take_out(db, number)
            for passage in new:
                _put_in(db, passage)
            db.execute("INSERT OR REPLACE INTO marks VALUES ('fits', ?)", (mark,))
            db.execute("COMMIT")

    def without_vectors(self, most: int) -> tuple[tuple[int, str], ...]:
        """Numbers and texts of passages that have none yet, ascending."""
        query = "SELECT id, text FROM passages WHERE vector IS NULL ORDER BY id LIMIT ?"
        with self._open() as db:
            return tuple((int(row[0]), str(row[1])) for row in db.execute(query, (most,)))

    def add_vectors(self, vectors: Mapping[int, bytes]) -> None:
        """Give passages their vectors."""
        rows = [(vector, number) for number, vector in vectors.items()]
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("UPDATE passages SET vector = ? WHERE id = ?", rows)
            db.execute("COMMIT")

    def vectors(self, kinds: Sequence[str]) -> tuple[Sequence[int], bytes]:
        """Numbers of passages, ascending, and their vectors one after the other."""
        limits, values = _of_kinds(kinds)
        query = f"SELECT id, vector FROM passages WHERE vector IS NOT NULL{limits} ORDER BY id"
        with self._open() as db:
            rows = cast("list[tuple[int, bytes]]", db.execute(query, values).fetchall())
        return [row[0] for row in rows], b"".join(row[1] for row in rows)

    def with_words(self, words: Sequence[str], kinds: Sequence[str], *, most: int) -> list[int]:
        """Passages with any of the words, the best first (BM25)."""
        if not words:
            return []
        asked = " OR ".join(map(_quoted, words))
        limits, values = _of_kinds(kinds)
        # Looking every passage up only to learn its number would take twice as long.
        joined = " JOIN passages ON passages.id = words.rowid" if kinds else ""
        query = (
            f"SELECT words.rowid FROM words{joined}"
            f" WHERE words MATCH ?{limits} ORDER BY bm25(words), words.rowid LIMIT ?"
        )
        with self._open() as db:
            return [int(row[0]) for row in db.execute(query, (asked, *values, most))]

    def having(self, words: Sequence[str], ids: Sequence[int]) -> tuple[int, dict[str, Having]]:
        """How many passages there are; and of each word how many have it, and which of these."""
        found: dict[str, Having] = {}
        wanted = frozenset(ids)
        counted = "SELECT count(*) FROM words WHERE words MATCH ?"
        every = "SELECT rowid FROM words WHERE words MATCH ?"
        among = f"{every} AND rowid IN ({', '.join(str(int(number)) for number in ids)})"
        with self._open() as db:
            (total,) = db.execute("SELECT count(*) FROM passages").fetchone()
            for word in words:
                asked = (_quoted(word),)
                (count,) = db.execute(counted, asked).fetchone()
                # A number takes as long to be looked up as some hundred do to be listed.
                query = every if count < LISTED * len(wanted) else among
                rows = db.execute(query, asked).fetchall() if ids else []
                found[word] = Having(int(count), wanted.intersection(int(row[0]) for row in rows))
        return int(total), found

    def with_vectors(self) -> Iterator[tuple[Kept, bytes]]:
        """Passages and their vectors, the newest first."""
        query = (
            "SELECT id, space, place, part, digest, number, vector FROM passages"
            " WHERE vector IS NOT NULL ORDER BY id DESC"
        )
        with self._open() as db:
            for row in db.execute(query):
                yield _kept(row), row[6]

    def passages(self, ids: Sequence[int]) -> dict[int, Passage]:
        """The passages of these numbers."""
        found: dict[int, Passage] = {}
        query = f"SELECT {_COLUMNS} FROM passages WHERE id = ?"
        with self._open() as db:
            for number in ids:
                row = db.execute(query, (number,)).fetchone()
                if row is not None:
                    found[number] = _passage(row)
        return found

    def forget(self) -> None:
        """Take it off the disk: nothing of what was redacted stays in a free page.

        A folder that lies in its place is not ours and is set aside.
        """
        self._close()
        try:
            for side in _SIDES:
                _take_away(self._path + side)
        except OSError as error:
            raise StorageError(
                f"the working index cannot be removed: {error.strerror}",
                code="index_stuck",
                state="It is a copy of the log's texts, and nothing else needs it.",
                hint=f"Remove {self._path} yourself.",
            ) from error

    @contextmanager
    def alone(self) -> Generator[None]:
        """Others who ask for the same wait meanwhile, so that nobody replaces a file in use.

        Calls of this thread share one connection until then. Raises: StorageError.
        """
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self._path + ".lock", flags, 0o600)
        except OSError as error:
            raise _unusable(str(error)) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self._thread = get_ident()
            yield
        finally:
            self._close()
            self._thread = None
            os.close(handle)

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """A connection to a file of this layout; a damaged one is replaced first.

        Damage that shows later ends the call; the next one starts with an empty file.
        """
        shared = self._thread == get_ident()
        db: sqlite3.Connection | None = None
        try:
            db = (self._db if shared else None) or self._connect()
            self._db = db if shared else self._db
            yield db
        except BaseException as error:
            # What a failed call began must not go on in the next one.
            self._close()
            if isinstance(error, sqlite3.DatabaseError) and _is_damage(error):
                self.forget()
            if isinstance(error, (sqlite3.DatabaseError, OSError)):
                raise _unusable(str(error)) from error
            raise
        finally:
            if db is not None and not shared:
                db.close()

    def _close(self) -> None:
        if self._db is not None and self._thread == get_ident():
            self._db.close()
            self._db = None

    def _connect(self) -> sqlite3.Connection:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        if any(os.path.lexists(path) and not _is_file(path) for path in self._files()):
            self.forget()
        try:
            return _ready(self._path)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
        self.forget()
        return _ready(self._path)

    def _files(self) -> Iterator[str]:
        return (self._path + side for side in _SIDES)


def _is_file(path: str) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)


def _take_away(path: str) -> None:
    """Remove a file or link; a folder gets another name."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError:
        # Linux says that it is a folder, others that it is not permitted.
        if not os.path.isdir(path):
            raise
        taken = (f"{path}.aside-{number}" for number in itertools.count(1))
        os.rename(path, next(name for name in taken if not os.path.lexists(name)))


def _unusable(why: str) -> StorageError:
    return StorageError(
        f"the working index cannot be used: {why}",
        code="index_unusable",
        state="The capsule was not touched.",
        hint="Search again: a damaged index is made anew.",
    )


def _ready(path: str) -> sqlite3.Connection:
    """Open it and make its tables; one of another layout is a damaged one."""
    if not os.path.exists(path):
        _make(path)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        # Losing the last update in a power cut loses nothing: it is made again from the log.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        if _layout(db) != LAYOUT:
            _make_tables(db)
    except BaseException:
        db.close()
        raise
    return db


def _layout(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _make_tables(db: sqlite3.Connection) -> None:
    """Fill a new file, unless another process was quicker."""
    db.execute("BEGIN IMMEDIATE")
    layout = _layout(db)
    if layout not in (0, LAYOUT):
        raise _OtherLayout
    if layout == 0:
        for statement in _TABLES.split(";\n"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {LAYOUT}")
    db.execute("COMMIT")


def _make(path: str) -> None:
    """An empty file for this user alone, unless there is one by now.

    It is closed before it has its name: closing a file of SQLite lets go of the locks that other
    threads of this process have on it.
    """
    handle, made = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".sojourn-")
    os.close(handle)
    try:
        with suppress(FileExistsError):
            os.link(made, path)
    finally:
        os.unlink(made)


class _OtherLayout(sqlite3.DatabaseError):
    """Written by another version."""

    sqlite_errorname = "SQLITE_NOTADB"


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    name = str(getattr(error, "sqlite_errorname", ""))
    return name.startswith(_DAMAGED)


def _quoted(word: str) -> str:
    """The word as FTS5 takes it, whatever is in it."""
    return '"' + word.replace('"', '""').replace("\x00", "") + '"'


def _of_kinds(kinds: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if not kinds:
        return "", ()
    return f" AND passages.kind IN ({', '.join('?' * len(kinds))})", tuple(kinds)


def _take_out(db: sqlite3.Connection, number: int) -> None:
    row = db.execute("SELECT text FROM passages WHERE id = ?", (number,)).fetchone()
    if row is not None:
        db.execute(
            "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (number, row[0])
        )
        db.execute("DELETE FROM passages WHERE id = ?", (number,))


def _put_in(db: sqlite3.Connection, passage: Passage) -> None:
    space, place, part = passage.key
    values = (
        space,
        place,
        part,
        passage.kind,
        passage.event,
        passage.number,
        passage.time,
        passage.digest,
        passage.text,
    )
    made = db.execute(_INSERT, values)
    # Another process that searches may have been quicker.
    if made.rowcount == 1:
        row = (made.lastrowid, passage.text)
        db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", row)


def _kept(row: Sequence[Any]) -> Kept:
    return Kept(id=row[0], key=(row[1], row[2], row[3]), digest=row[4], number=row[5])


def _passage(row: Iterable[object]) -> Passage:
    _, _, place, part, kind, event, number, time, _, text = row
    return Passage(
        kind=str(kind),
        place=str(place),
        part=int(cast("int", part)),
        event=EventId(str(event)),
        number=int(cast("int", number)),
        time=str(time),
        text=str(text),
    )
