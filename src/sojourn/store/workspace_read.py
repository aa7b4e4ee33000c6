"""Reads files of a workspace into blobs: what is hashed are the bytes that are written.

A file that changes while it is read is read again, and left out when it never holds still.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from sojourn.errors import StoppedError
from sojourn.format.capsule_kinds import LeftOut
from sojourn.ports_workspace import Progress, Stop
from sojourn.store.blob_batch import BlobBatch
from sojourn.store.workspace_folders import FILE_FLAGS, Reach
from sojourn.store.workspace_known import STAT, Row, key_of
from sojourn.store.workspace_walk import CHANGED, Unread, escaped, unreadable

LARGE: Final = 1 << 20
"""Bytes from which on a file is read in pieces, and by a thread of its own."""

THREADS: Final = 2
WAITING: Final = 2 * THREADS
"""Large files that are open at once."""

TRIES: Final = 3
"""How often a file that changes is read."""

_Read = Row | str
"""What became of a file: its row, or why it is left out."""


class Contents:
    """The contents of a workspace on their way into a batch of blobs.

    `now` gives the time in nanoseconds, as the kernel stamps files with.
    """

    def __init__(
        self,
        reach: Reach,
        batch: BlobBatch,
        *,
        progress: Progress | None = None,
        stop: Stop | None = None,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._reach = reach
        self._batch = batch
        self._progress = progress
        self._stop = stop
        self._now = now
        self.rows: dict[str, Row] = {}
        self.left_out: list[LeftOut] = []

    def read(self, unread: list[Unread]) -> None:
        """Fill `rows` and `left_out`. Raises: StorageError, StoppedError."""
        pool: ThreadPoolExecutor | None = None
        running: dict[Future[_Read], str] = {}
        try:
            for one in unread:
                self._check_stop()
                if stat.S_ISREG(one.found.st_mode) and one.found.st_size >= LARGE:
                    pool = pool or ThreadPoolExecutor(THREADS)
                    self._collect(running, WAITING - 1)
                    self._begin(pool, running, one.path)
                else:
                    self._note(one.path, self._read_small(one))
                    self._tell(1, one.found.st_size)
            self._collect(running, 0)
        finally:
            if pool is not None:
                self._stop = self._stop if not running else _at_once
                pool.shutdown()

    def _begin(
        self, pool: ThreadPoolExecutor, running: dict[Future[_Read], str], path: str
    ) -> None:
        try:
            handle = self._open(path)
        except FileNotFoundError:
            return
        except OSError as failure:
            self._note(path, unreadable(failure))
            return
        running[pool.submit(self._read_large, handle)] = path

    def _collect(self, running: dict[Future[_Read], str], most: int) -> None:
        """Take what is done until at most `most` are running."""
        while len(running) > most:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                self._note(running.pop(future), future.result())
                self._tell(1, 0)

    def _note(self, path: str, read: "_Read | None") -> None:
        if isinstance(read, str):
            self.left_out.append(LeftOut(path=escaped(path), reason=read))
        elif read is not None:
            self.rows[path] = read

    def _read_small(self, one: Unread) -> "_Read | None":
        """A short file or a link; None when it is gone."""
        try:
            if stat.S_ISLNK(one.found.st_mode):
                return self._read_link(one.path)
            handle = self._open(one.path)
        except FileNotFoundError:
            return None
        except OSError as failure:
            return unreadable(failure)
        try:
            return self._read_whole(handle, one.found)
        finally:
            os.close(handle)

    def _read_link(self, path: str) -> _Read:
        folder, _, name = path.rpartition("/")
        inside = self._reach.at(folder)
        for _ in range(TRIES):
            now = self._now()
            before = os.stat(name, dir_fd=inside, follow_symlinks=False)
            if not stat.S_ISLNK(before.st_mode):
                return CHANGED
            target = os.fsencode(os.readlink(name, dir_fd=inside))
            if _same(before, os.stat(name, dir_fd=inside, follow_symlinks=False)):
                return key_of(before, self._batch.add(target), now=now)
        return CHANGED

    def _read_whole(self, handle: int, before: os.stat_result) -> _Read:
        """A short file, which was as `before` when it was found."""
        for _ in range(TRIES):
            now = self._now()
            try:
                data = os.pread(handle, before.st_size + 1, 0)
            except OSError as failure:
                # What is no file any more cannot be read so either.
                is_file = stat.S_ISREG(os.fstat(handle).st_mode)
                return unreadable(failure) if is_file else CHANGED
            after = os.fstat(handle)
            if len(data) == before.st_size and STAT(after) == STAT(before):
                return key_of(before, self._batch.add(data), now=now)
            if not stat.S_ISREG(after.st_mode):
                return CHANGED
            if after.st_size >= LARGE:
                return self._stream(handle)
            before = after
        return CHANGED

    def _read_large(self, handle: int) -> _Read:
        try:
            return self._stream(handle)
        finally:
            os.close(handle)

    def _stream(self, handle: int) -> _Read:
        """A long file; each try writes a blob, and one that did not hold still is not named."""
        for _ in range(TRIES):
            now = self._now()
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                return CHANGED
            failures: list[OSError] = []
            blob, size = self._batch.add_stream(self._pieces(handle, failures))
            if failures:
                return unreadable(failures[0])
            if size == before.st_size and _same(before, os.fstat(handle)):
                return key_of(before, blob, now=now)
        return CHANGED

    def _pieces(self, handle: int, failures: list[OSError]) -> Iterator[bytes]:
        place = 0
        while True:
            self._check_stop()
            try:
                data = os.pread(handle, LARGE, place)
            except OSError as failure:
                failures.append(failure)
                return
            if not data:
                return
            place += len(data)
            self._tell(0, len(data))
            yield data

    def _open(self, path: str) -> int:
        folder, _, name = path.rpartition("/")
        return os.open(name, FILE_FLAGS, dir_fd=self._reach.at(folder))

    def _tell(self, files: int, size: int) -> None:
        if self._progress is not None:
            self._progress(files, size)

    def _check_stop(self) -> None:
        if self._stop is not None and self._stop():
            raise StoppedError("the snapshot was stopped", state="No snapshot was taken.")


def _at_once() -> bool:
    return True


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    """Whether a file held still; its name may have gone meanwhile."""
    return (before.st_size, before.st_mtime_ns, before.st_ctime_ns, before.st_mode) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
        after.st_mode,
    )
