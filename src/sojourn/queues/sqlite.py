"""The queue of one host in SQLite: wake-ups that can always be made again (docs/protocol.md#queue).

WAL with full sync, one transaction a call, safe for several processes. A damaged file is moved
aside and named, and a new one made.
"""

import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from typing import Final, TypeVar, cast

from sojourn.errors import StorageError
from sojourn.ids import CapsuleId
from sojourn.ports import Job, WallClock

BUSY_SECONDS: Final = 10.0
"""How long one call waits for other processes."""

POLL_SECONDS: Final = 0.05
"""How often a waiting worker asks; one question takes some microseconds and no disk."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS jobs (
    capsule TEXT PRIMARY KEY, folder TEXT NOT NULL, put_at TEXT NOT NULL,
    worker TEXT, puts INTEGER NOT NULL
) WITHOUT ROWID
"""
_PUT: Final = """
INSERT INTO jobs VALUES (?, ?, ?, NULL, 1)
ON CONFLICT (capsule) DO UPDATE SET folder = excluded.folder, puts = puts + 1
"""
_JOBS: Final = "SELECT capsule, folder, put_at, worker, puts FROM jobs"
_DAMAGED: Final = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
_CODES: Final = {
    "SQLITE_BUSY": "queue_busy",
    "SQLITE_LOCKED": "queue_busy",
    "SQLITE_FULL": "disk_full",
    "SQLITE_IOERR": "io_error",
    "SQLITE_READONLY": "read_only",
    "ENOSPC": "disk_full",
    "EDQUOT": "disk_full",
    "EIO": "io_error",
    "EROFS": "read_only",
    "EACCES": "not_allowed",
    "EPERM": "not_allowed",
}

_Row = tuple[str, str, str, str | None, int]
_Answer = TypeVar("_Answer")


class SqliteQueue:
    """The `Queue` port in one file; `set_aside` names the damaged files that were kept.

    A call waits up to `busy_seconds` for other processes.
    """

    def __init__(self, path: str, *, clock: WallClock, busy_seconds: float = BUSY_SECONDS) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self.set_aside: tuple[str, ...] = ()

    def put(self, capsule: CapsuleId, folder: str) -> None:
        """Idempotent: one job a capsule, and one that is at work will be looked at again.

        Raises: StorageError.
        """
        at = self._clock.now()
        self._run(lambda connection: _change(connection, _PUT, (capsule, folder, at)))

    def jobs(self) -> tuple[Job, ...]:
        """Every job, the longest waiting first. Raises: StorageError."""
        query = f"{_JOBS} ORDER BY put_at, capsule"
        return tuple(_job(row) for row in self._run(lambda c: _rows(c, query), changes=False))

    def lease(
        self, capsule: CapsuleId, worker: str, *, is_free: Callable[[CapsuleId], bool]
    ) -> Job | None:
        """Take the job; one that another worker has is taken over when the capsule's lock is free.

        None when there is no job, or when it is at work elsewhere. Raises: StorageError.
        """
        return self._run(lambda connection: _lease(connection, capsule, worker, is_free))

    def ack(self, job: Job) -> None:
        """The turn's end is in the log: the job goes, unless it was put again since the lease.

        Then it is free for whoever comes. A job that another worker took over stays as it is.
        Raises: StorageError.
        """
        self._run(lambda connection: _ack(connection, job))

    async def wait_for_change(self, seconds: float) -> bool:
        """Return True when any process changed the queue, or False after that long.

        Raises: StorageError.
        """
        end = self._clock.monotonic() + seconds
        before = self._run(_version, changes=False)
        while True:
            left = end - self._clock.monotonic()
            if left <= 0:
                return False
            await self._clock.wait(min(POLL_SECONDS, left))
            if self._was_replaced() or self._run(_version, changes=False) != before:
                return True

    def close(self) -> None:
        """Let go of the file; the queue may be used again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _run(
        self, work: Callable[[sqlite3.Connection], _Answer], *, changes: bool = True
    ) -> _Answer:
        """One transaction; a damaged file is replaced and the work done on the new one."""
        try:
            return self._transact(work, changes=changes)
        except (sqlite3.DatabaseError, OSError) as failure:
            if isinstance(failure, OSError) or _name(failure) not in _DAMAGED:
                raise _storage_error(failure, self._path) from failure
        try:
            self._replace_damaged()
            return self._transact(work, changes=changes)
        except (sqlite3.DatabaseError, OSError) as failure:
            raise _storage_error(failure, self._path) from failure

    def _transact(self, work: Callable[[sqlite3.Connection], _Answer], *, changes: bool) -> _Answer:
        connection = self._opened()
        if not changes:
            return work(connection)
        try:
            connection.execute("BEGIN IMMEDIATE")
            answer = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return answer

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and not self._was_replaced():
            return self._connection
        self.close()
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(_SCHEMA)
            self._inode = os.stat(self._path).st_ino
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _was_replaced(self) -> bool:
        try:
            return os.stat(self._path).st_ino != self._inode
        except FileNotFoundError:
            return True

    def _replace_damaged(self) -> None:
        """Move the file aside, unless another process did it while this one waited for its turn."""
        self.close()
        with _turn(f"{self._path}.lock"):
            if not _is_damaged(self._path):
                return
            count = 1
            while os.path.lexists(f"{self._path}.damaged-{count}"):
                count += 1
            aside = f"{self._path}.damaged-{count}"
            os.rename(self._path, aside)
            for ending in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.rename(self._path + ending, aside + ending)
            self.set_aside = (*self.set_aside, aside)


def _change(connection: sqlite3.Connection, query: str, values: tuple[str | int, ...]) -> None:
    connection.execute(query, values)


def _rows(connection: sqlite3.Connection, query: str, values: tuple[str, ...] = ()) -> list[_Row]:
    return cast(list[_Row], connection.execute(query, values).fetchall())


def _job(row: _Row) -> Job:
    capsule, folder, put_at, worker, puts = row
    return Job(capsule=CapsuleId(capsule), folder=folder, put_at=put_at, worker=worker, puts=puts)


def _lease(
    connection: sqlite3.Connection,
    capsule: CapsuleId,
    worker: str,
    is_free: Callable[[CapsuleId], bool],
) -> Job | None:
    rows = _rows(connection, f"{_JOBS} WHERE capsule = ?", (capsule,))
    if not rows:
        return None
    job = _job(rows[0])
    if job.worker not in (None, worker) and not is_free(capsule):
        return None
    _change(connection, "UPDATE jobs SET worker = ? WHERE capsule = ?", (worker, capsule))
    return Job(capsule=capsule, folder=job.folder, put_at=job.put_at, worker=worker, puts=job.puts)


def _ack(connection: sqlite3.Connection, job: Job) -> None:
    mine = (job.capsule, job.worker or "")
    at_work = "WHERE capsule = ? AND worker = ?"
    _change(connection, f"DELETE FROM jobs {at_work} AND puts = ?", (*mine, job.puts))
    _change(connection, f"UPDATE jobs SET worker = NULL {at_work}", mine)


def _version(connection: sqlite3.Connection) -> tuple[int, int]:
    (row,) = connection.execute("PRAGMA data_version").fetchall()
    return cast(int, row[0]), connection.total_changes


def _is_damaged(path: str) -> bool:
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
            rows = connection.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.DatabaseError as failure:
        return _name(failure) in _DAMAGED
    return rows != [("ok",)]


def _name(failure: sqlite3.Error) -> str:
    """SQLite's name of the failure, without its finer distinctions."""
    name = cast(str | None, getattr(failure, "sqlite_errorname", None)) or ""
    return "_".join(name.split("_")[:2])


def _storage_error(failure: sqlite3.Error | OSError, path: str) -> StorageError:
    if isinstance(failure, OSError):
        name = errno.errorcode.get(failure.errno or 0, "")
    else:
        name = _name(failure)
    return StorageError(
        f"the queue could not be used: {failure}",
        code=_CODES.get(name, "storage_failed"),
        state="Messages and capsules are whole; the queue only wakes workers.",
        hint="Try again; a lost wake-up is made again by the next command that looks.",
        file=path,
    )


@contextmanager
def _turn(path: str) -> Generator[None]:
    """One process at a time; the kernel ends it when the process dies."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
