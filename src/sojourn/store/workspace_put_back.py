"""Carries out a plan: every file is whole, checked and synced before the first change.

docs/format.md#snapshots. New files are made in one folder below the workspace and renamed from
there, so each path is at every moment what it was or what it will be.
"""

import os
import stat
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Final

from sojourn.errors import FormatError, StoppedError
from sojourn.format import layout
from sojourn.format.failures import say
from sojourn.format.snapshot import Entry, folders
from sojourn.ids import BlobId
from sojourn.ports_workspace import Plan, Progress, Stop
from sojourn.store.disk import Disk
from sojourn.store.durable import chunks, durable_write
from sojourn.store.workspace_folders import Reach, open_folder
from sojourn.store.workspace_known import EMPTY_FOLDER, Row, key_of

DRAFTS: Final = f"{layout.TEMPORARY_PREFIX}restore"
"""The folder in which files are made; what an earlier run left there is removed."""

LARGE: Final = 1 << 20
THREADS: Final = 2


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
        self, plan: Plan, path: str, *, now: Callable[[], int] = time.time_ns
    ) -> dict[str, Row]:
        """Do it; the rows of what was made, as the next reading will find them."""
        with durable_write(path), self._drafts() as drafts:
            files = [entry for entry in plan.make if entry.type != "directory"]
            written = self._write_all(files, drafts)
            for number, entry in enumerate(plan.links, len(files)):
                os.symlink(self._read_blob(entry), str(number), dir_fd=drafts)
            self._sync(path)
            self._remove(plan)
            for entry in plan.make:
                if entry.type == "directory":
                    self._reach.at(entry.path, make=True)
            for number, entry in enumerate([*files, *plan.links]):
                folder, _, name = entry.path.rpartition("/")
                inside = self._reach.at(folder, make=True)
                os.rename(str(number), name, src_dir_fd=drafts, dst_dir_fd=inside)
        with durable_write(path):
            self._sync(path)
        return self._rows(plan, written, now)

    @contextmanager
    def _drafts(self) -> Generator[int]:
        """The folder for half-made files, empty; it is gone afterwards."""
        self._sweep()
        os.mkdir(DRAFTS, 0o700, dir_fd=self._reach.root)
        handle = open_folder(DRAFTS, inside=self._reach.root)
        try:
            yield handle
        finally:
            os.close(handle)
            self._sweep()

    def _sweep(self) -> None:
        try:
            handle = open_folder(DRAFTS, inside=self._reach.root)
        except FileNotFoundError:
            return
        try:
            for name in os.listdir(handle):
                os.unlink(name, dir_fd=handle)
        finally:
            os.close(handle)
        os.rmdir(DRAFTS, dir_fd=self._reach.root)

    def _write_all(self, files: list[Entry], drafts: int) -> list[os.stat_result]:
        """Write every file into the drafts, named by its number; how each is then."""
        large = {number for number, one in enumerate(files) if (one.size or 0) >= LARGE}
        with ThreadPoolExecutor(THREADS) as pool:
            waiting = {
                number: pool.submit(self._write, files[number], drafts, number)
                for number in sorted(large)
            }
            try:
                found = {
                    number: self._write(entry, drafts, number)
                    for number, entry in enumerate(files)
                    if number not in large
                }
                found |= {number: future.result() for number, future in waiting.items()}
            except BaseException:
                self._stop = _at_once
                raise
        return [found[number] for number in range(len(files))]

    def _write(self, entry: Entry, drafts: int, number: int) -> os.stat_result:
        mode = 0o777 if entry.type == "executable" else 0o666
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(str(number), flags, mode, dir_fd=drafts)
        try:
            for piece in self._pieces(entry):
                _write_whole(handle, piece)
                self._tell(0, len(piece))
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
        digest = sha256()
        try:
            for piece in chunks(self._disk, source):
                self._check_stop()
                digest.update(piece)
                yield piece
        finally:
            self._disk.close(source)
        if digest.hexdigest() != name:
            raise _blob_error("blob_altered", where)

    def _read_blob(self, entry: Entry) -> bytes:
        return b"".join(self._pieces(entry))

    def _remove(self, plan: Plan) -> None:
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
        for entry in (*plan.make, *plan.links):
            if entry.type != "directory":
                self._clear(entry.path)

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
        self, plan: Plan, written: list[os.stat_result], now: Callable[[], int]
    ) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        files = [entry for entry in plan.make if entry.type != "directory"]
        for entry, before in zip(files, written, strict=True):
            found, at = self._reach.stat(entry.path), now()
            ours = found is not None and (found.st_ino, found.st_mtime_ns, found.st_size) == (
                before.st_ino,
                before.st_mtime_ns,
                before.st_size,
            )
            if found is not None and ours:
                rows[entry.path] = key_of(found, entry.sha256 or "", now=at)
        for entry in plan.make:
            if entry.type == "directory":
                rows[entry.path] = EMPTY_FOLDER
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
