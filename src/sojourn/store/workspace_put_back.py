"""Carries out a plan: every file is whole, checked and synced before the first change.

docs/format.md#snapshots. New files are made in one folder below the workspace and renamed from
there, so each path is at every moment what it was or what it will be.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from hashlib import sha256
from typing import Final

from sojourn.errors import FormatError, StoppedError
from sojourn.format import layout
from sojourn.format.failures import say
from sojourn.format.snapshot import Entry, folders
from sojourn.ids import BlobId
from sojourn.ports_workspace import Plan, Progress, Stop
from sojourn.store.disk import Disk
from sojourn.store.durable import durable_write, is_hole
from sojourn.store.workspace_drafts import Drafts
from sojourn.store.workspace_folders import Reach
from sojourn.store.workspace_known import EMPTY_FOLDER, Row, key_of

LARGE: Final = 1 << 20
"""Bytes from which on a file is written in pieces, and by a thread of its own."""

CHUNK: Final = 1 << 18
THREADS: Final = 2
WAITING: Final = 2 * THREADS
"""Large files that are open at once."""


class PutBack:
    """One plan for one open workspace."""

    def __init__(
        self,
        reach: Reach,
        capsule: str,
        disk: Disk,
        *,
        progress: Progress | None = None,
        stop: Stop | None = None,
    ) -> None:
        self._reach = reach
        self._capsule = capsule
        self._disk = disk
        self._progress = progress
        self._stop = stop

    def carry_out(
        self, plan: Plan, path: str, *, now: Callable[[], int] = time.time_ns, rows: bool = True
    ) -> dict[str, Row]:
        """Do it; the rows of what was made when they are asked for.

        They are as the next reading will find them.
        """
        with durable_write(path), Drafts(self._reach) as drafts:
            written = self._write_all(plan, drafts)
            for entry in plan.links:
                drafts.make_link(entry.path, b"".join(self._pieces(entry)))
            self._sync(path)
            self._remove(plan, drafts)
            drafts.move()
            for entry in plan.make:
                if entry.type == "directory":
                    self._reach.at(entry.path, make=True)
        with durable_write(path):
            self._sync(path)
        return self._rows(plan, written, now) if rows else {}

    def _write_all(self, plan: Plan, drafts: Drafts) -> "dict[str, os.stat_result]":
        """Write every file into the drafts; how each is then."""
        found: dict[str, os.stat_result] = {}
        files = [entry for entry in plan.make if entry.type != "directory"]
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                self._write_files(files, drafts, pool, found)
            except BaseException:
                self._stop = _at_once
                raise
        return found

    def _write_files(
        self,
        files: Iterable[Entry],
        drafts: Drafts,
        pool: ThreadPoolExecutor,
        found: "dict[str, os.stat_result]",
    ) -> None:
        """Short files here, long ones by the threads of `pool`."""
        running: dict[Future[os.stat_result], str] = {}
        for entry in files:
            mode = 0o777 if entry.type == "executable" else 0o666
            if (entry.size or 0) < LARGE:
                data = b"".join(self._pieces(entry))
                handle = drafts.make_file(entry.path, mode)
                found[entry.path] = self._write((data,), handle)
                continue
            self._collect(running, found, WAITING - 1)
            handle = drafts.make_file(entry.path, mode)
            running[pool.submit(self._write, self._pieces(entry), handle)] = entry.path
        self._collect(running, found, 0)

    def _collect(
        self,
        running: "dict[Future[os.stat_result], str]",
        found: "dict[str, os.stat_result]",
        most: int,
    ) -> None:
        """Take what is done until at most `most` are running."""
        while len(running) > most:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                found[running.pop(future)] = future.result()

    def _write(self, pieces: Iterable[bytes], handle: int) -> os.stat_result:
        try:
            hole = False
            for piece in pieces:
                hole = is_hole(piece)
                if hole:
                    os.lseek(handle, len(piece), os.SEEK_CUR)
                else:
                    _write_whole(handle, piece)
                self._tell(0, len(piece))
            if hole:
                os.ftruncate(handle, os.lseek(handle, 0, os.SEEK_CUR))
            self._tell(1, 0)
            return os.fstat(handle)
        finally:
            os.close(handle)

    def _pieces(self, entry: Entry) -> Iterator[bytes]:
        """The bytes of the entry's blob; those that do not have its name are refused at the end."""
        name = BlobId(entry.sha256 or "")
        where = layout.blob_path(name)
        try:
            source = self._disk.open(f"{self._capsule}/{where}", "read")
        except FileNotFoundError:
            raise _blob_error("blob_missing", where) from None
        digest, left = sha256(), entry.size or 0
        try:
            # A read of the very length that is left has met the end: no other is needed for that.
            while left >= 0:
                self._check_stop()
                data = self._disk.read_at(source, min(left + 1, CHUNK), (entry.size or 0) - left)
                if not data:
                    break
                digest.update(data)
                left -= len(data)
                yield data
                if left == 0 and len(data) < CHUNK:
                    break
        finally:
            self._disk.close(source)
        if digest.hexdigest() != name:
            raise _blob_error("blob_altered", where)

    def _remove(self, plan: Plan, drafts: Drafts) -> None:
        """Files first, then the folders that nothing is left in, the deepest first."""
        for entry in plan.remove:
            if entry.type != "directory":
                folder, _, name = entry.path.rpartition("/")
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=self._reach.at(folder))
        empty = {entry.path for entry in plan.remove if entry.type == "directory"}
        empty |= folders(entry.path for entry in plan.remove)
        for path in sorted(empty - plan.folders, key=lambda path: path.count("/"), reverse=True):
            folder, _, name = path.rpartition("/")
            with suppress(OSError):
                os.rmdir(name, dir_fd=self._reach.at(folder))
        self._reach.again()
        for path in drafts.alone():
            self._clear(path)

    def _clear(self, path: str) -> None:
        """Remove empty folders of ours that lie where a file belongs."""
        found = self._reach.stat(path)
        if found is None or not stat.S_ISDIR(found.st_mode):
            return
        below = [path]
        for folder in below:
            handle = self._reach.at(folder)
            below += [f"{folder}/{name}" for name in os.listdir(handle)]
        for folder in reversed(below):
            above, _, name = folder.rpartition("/")
            os.rmdir(name, dir_fd=self._reach.at(above))
        self._reach.again()

    def _rows(
        self, plan: Plan, written: "dict[str, os.stat_result]", now: Callable[[], int]
    ) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        for entry in plan.make:
            if entry.type == "directory":
                rows[entry.path] = EMPTY_FOLDER
                continue
            before = written[entry.path]
            found, at = self._reach.stat(entry.path), now()
            ours = found is not None and (found.st_ino, found.st_mtime_ns, found.st_size) == (
                before.st_ino,
                before.st_mtime_ns,
                before.st_size,
            )
            if found is not None and ours:
                rows[entry.path] = key_of(found, entry.sha256 or "", now=at)
        return rows

    def _sync(self, path: str) -> None:
        if not self._disk.sync_all(path):
            os.sync()

    def _tell(self, files: int, size: int) -> None:
        if self._progress is not None:
            self._progress(files, size)

    def _check_stop(self) -> None:
        if self._stop is not None and self._stop():
            raise StoppedError("putting back was stopped", state="Nothing was changed.")


def _at_once() -> bool:
    return True


def _write_whole(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _blob_error(code: str, where: str) -> FormatError:
    known = "blob_missing" if code == "blob_missing" else "blob_altered"
    return FormatError(say(known), code=known, file=where, state="Nothing was changed.")
