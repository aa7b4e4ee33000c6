"""Folders of capsules that arrive: built in `<state>/arriving`, then put into their live places.

One folder a move, `<capsule id>/<move>`, which holds `capsule/` and `workspace/`. What was put into
place is written down first, by the numbers of both folders, so that whoever cleans up after a crash
removes these and no others (docs/moving.md#landing).
"""

import errno
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Literal

import msgspec

from sojourn.errors import MigrationError
from sojourn.format import layout
from sojourn.ids import BlobId, CapsuleId, MoveId
from sojourn.ports_move import Piece
from sojourn.store.arriving_places import PLACES, Places, load_places
from sojourn.store.create import TAKEN
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import Durable, chunks, durable_write, reading, write_whole
from sojourn.store.landing import Cache, Hash, fresh

_NAME: Final = re.compile(r"[0-9a-f]{1,64}")
_TRIES: Final = 100


@dataclass(slots=True)
class _Log:
    """The timeline as it arrives, `toward` the one with this digest."""

    handle: int
    length: int
    digest: Hash = field(default_factory=sha256)
    toward: str = ""


class FolderLanding:
    """The `Landing` port; folders are given absolute and on one file system."""

    def __init__(
        self, *, arriving: str, cache: str, capsules: str, workspaces: str, disk: Disk | None = None
    ) -> None:
        self._disk = disk or OsDisk()
        self._files = Durable(self._disk)
        self._arriving = arriving
        self._capsules = capsules
        self._workspaces = workspaces
        self._logs: dict[str, _Log] = {}
        self._linked: dict[str, set[BlobId]] = {}
        self.cache: Final = Cache(cache, self._disk)

    def at(self, capsule: CapsuleId, move: MoveId) -> str:
        """The folder of a move. Raises: MigrationError `name_refused`."""
        if not (_NAME.fullmatch(capsule) and _NAME.fullmatch(move)):
            raise MigrationError("a capsule's or a move's id is none", code="name_refused")
        return f"{self._arriving}/{capsule}/{move}"

    def free_folder(self, name: str) -> str:
        """Where a capsule of that name can lie: the first free one of `name`, `name-2`, ..."""
        return self._free(f"{self._capsules}/{name}")

    def free_workspace(self, capsule: CapsuleId) -> str:
        """Where a capsule can work."""
        return self._free(f"{self._workspaces}/{capsule}")

    def have(self, digest: BlobId, size: int) -> int:
        """See `Cache.have`."""
        return self.cache.have(digest, size)

    def take(self, piece: Piece) -> bool:
        """See `Cache.take`."""
        return self.cache.take(piece)

    def keep(self, data: bytes) -> BlobId:
        """See `Cache.keep`."""
        return self.cache.keep(data)

    def borrow(self, folder: str, blobs: Mapping[BlobId, int]) -> None:
        """See `Cache.borrow`."""
        self.cache.borrow(folder, blobs)

    def read(self, digest: BlobId, limit: int) -> bytes | None:
        """See `Cache.read`."""
        return self.cache.read(digest, limit)

    def room(self) -> int:
        """See `Cache.room`."""
        return self.cache.room()

    def begin(self, landing: str, *, older: str | None = None) -> None:
        """The folder is there; its log begins with that of the capsule in `older`, if any.

        Other moves of the capsule that began here and never came to anything are removed by who
        calls. Raises: StorageError.
        """
        if self._disk.stat_path(landing) is not None:
            return
        # Not with what is known to be durable: a landing that is over takes the folder above along.
        Durable(self._disk).make_folder(landing)
        with durable_write(landing):
            for name in ("", *layout.FOLDERS):
                self._disk.make_folder(f"{landing}/capsule/{name}".rstrip("/"))
            path = None if older is None else f"{older}/{layout.TIMELINE}"
            if path is not None and self._disk.stat_path(path) is not None:
                log = self._log(landing)
                for data in self._bytes(path):
                    self._add(log, data)

    def log_here(self, landing: str) -> tuple[int, str]:
        """How many bytes of the timeline are here, and their sha256. Raises: StorageError."""
        log = self._log(landing)
        return log.length, log.digest.hexdigest()

    def take_log(self, landing: str, piece: Piece) -> None:
        """Keep bytes of the timeline; from 0 on they take the place of what does not begin it.

        Raises: MigrationError `content_gap`; StorageError.
        """
        log = self._log(landing)
        if piece.digest != log.toward:
            if piece.offset == 0:
                self._restart(landing, log)
            log.toward = piece.digest
        data = fresh(piece, log.length)
        with durable_write(landing):
            self._add(log, data)

    def put_files(self, landing: str, files: Mapping[str, bytes]) -> None:
        """The capsule's small files are these. Raises: StorageError."""
        with durable_write(landing):
            for name, data in sorted(files.items()):
                path = f"{landing}/capsule/{name}"
                self._make_way(landing, name)
                if self._disk.stat_path(path) is not None:
                    self._disk.unlink(path)
                self._write(path, data)

    def link(self, landing: str, blobs: Iterable[BlobId]) -> None:
        """The capsule has these blobs, all of which are in the cache. Raises: StorageError."""
        there = self._linked.setdefault(landing, set())
        for blob in blobs:
            if blob in there:
                continue
            path = f"{landing}/capsule/{layout.blob_path(blob)}"
            with suppress(FileExistsError):
                self.cache.link(blob, path)
            there.add(blob)

    def prune(self, landing: str, *, blobs: Collection[BlobId], files: Collection[str]) -> None:
        """The capsule has no other blobs and no other files. Raises: StorageError."""
        blob_folder = f"{landing}/capsule/{layout.BLOBS}"
        with durable_write(landing):
            for name, _ in self._disk.list(blob_folder):
                if name not in blobs:
                    self._disk.unlink(f"{blob_folder}/{name}")
            self._prune_files(f"{landing}/capsule", "", {*files, layout.TIMELINE})
        self._linked[landing] = set(blobs)

    def settle(self, landing: str) -> None:
        """All that came by this move is on the disk. Raises: StorageError."""
        with durable_write(landing):
            if not self._disk.sync_all(landing):
                self._sync_each(landing)
            self._disk.sync_folder(landing)

    def place(
        self, landing: str, *, folder: str, workspace: str, older: tuple[str, ...]
    ) -> tuple[str, str]:
        """Put capsule and workspace into their places, durable on return; where they are now.

        `older` are folders of a copy that this one takes the place of, once it was opened soundly.
        Raises: StorageError.
        """
        log = self._logs.pop(landing, None)
        if log is not None:
            self._disk.close(log.handle)
        folder, workspace = self._free(folder), self._free(workspace)
        self.settle(landing)
        with durable_write(landing):
            places = Places(
                folder=folder,
                folder_inode=self._inode(f"{landing}/capsule"),
                workspace=workspace,
                workspace_inode=self._inode(f"{landing}/workspace"),
                older=older,
            )
            for above in (os.path.dirname(folder), os.path.dirname(workspace)):
                self._files.make_folder(above)
            self._files.replace(f"{landing}/{PLACES}", places.encoded())
            places = self._put(landing, "capsule", places)
            places = self._put(landing, "workspace", places)
            for above in (os.path.dirname(folder), os.path.dirname(workspace), landing):
                self._disk.sync_folder(above)
        return places.folder, places.workspace

    def is_placed(self, landing: str) -> bool:
        """See `ports_move.Landing`. Raises: StorageError."""
        path = f"{landing}/{PLACES}"
        with reading(path):
            return self._disk.stat_path(path) is not None

    def drop(self, landing: str) -> None:
        """Remove all that came by this move, wherever it was put. Raises: StorageError."""
        places = load_places(self._disk, f"{landing}/{PLACES}")
        if places is not None:
            self._remove_if(places.folder, places.folder_inode)
            self._remove_if(places.workspace, places.workspace_inode)
        self._clear(landing)

    def live(self, landing: str) -> None:
        """What came by this move was opened soundly: the older copy goes, and the landing.

        Only older folders in default places are removed. Raises: StorageError.
        """
        places = load_places(self._disk, f"{landing}/{PLACES}")
        if places is not None:
            for path in places.older:
                default = os.path.dirname(path) in (self._capsules, self._workspaces)
                if default and path not in (places.folder, places.workspace):
                    self._remove(path)
            for name, _ in self._disk.list(f"{places.folder}/{layout.BLOBS}"):
                if layout.is_blob_name(name):
                    self.cache.forget(BlobId(name))
        self._clear(landing)

    def landings(self) -> tuple[str, ...]:
        """Every folder of a move that arrived or did not."""
        with reading(self._arriving):
            above = [name for name, kind in self._disk.list(self._arriving) if kind == "folder"]
            return tuple(
                f"{self._arriving}/{capsule}/{move}"
                for capsule in above
                for move, kind in self._disk.list(f"{self._arriving}/{capsule}")
                if kind == "folder"
            )

    def tidy(self, seconds: float) -> None:
        """See `ports_move.Landing`. Raises: StorageError."""
        with durable_write(self._arriving):
            for name, kind in self._disk.list(self._arriving):
                if kind == "folder" and not self._disk.list(f"{self._arriving}/{name}"):
                    self._disk.remove_folder(f"{self._arriving}/{name}")
        self.cache.tidy(seconds)

    def _put(self, landing: str, name: Literal["capsule", "workspace"], places: Places) -> Places:
        """Give it its place, or the next one when another process takes that just now."""
        for _ in range(_TRIES):
            path = places.folder if name == "capsule" else places.workspace
            try:
                self._disk.rename(f"{landing}/{name}", path)
            except OSError as failure:
                if failure.errno not in TAKEN:
                    raise
            else:
                return places
            free = self._next(path)
            folder = free if name == "capsule" else places.folder
            workspace = free if name == "workspace" else places.workspace
            places = msgspec.structs.replace(places, folder=folder, workspace=workspace)
            self._files.replace(f"{landing}/{PLACES}", places.encoded())
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)

    def _free(self, path: str) -> str:
        return path if self._is_free(path) else self._next(path)

    def _next(self, path: str) -> str:
        stem = re.sub(r"-[0-9]{1,6}$", "", path)
        count = 2
        while not self._is_free(f"{stem}-{count}"):
            count += 1
        return f"{stem}-{count}"

    def _is_free(self, path: str) -> bool:
        with reading(path):
            return self._disk.stat_path(path) is None

    def _log(self, landing: str) -> _Log:
        log = self._logs.get(landing)
        if log is not None:
            return log
        path = f"{landing}/capsule/{layout.TIMELINE}"
        with durable_write(path):
            there = self._disk.stat_path(path) is not None
            log = _Log(self._disk.open(path, "append" if there else "create"), 0)
            if there:
                for data in self._bytes(path):
                    log.digest.update(data)
                    log.length += len(data)
        self._logs[landing] = log
        return log

    def _bytes(self, path: str) -> Iterator[bytes]:
        handle = self._disk.open(path, "read")
        try:
            yield from chunks(self._disk, handle)
        finally:
            self._disk.close(handle)

    def _restart(self, landing: str, log: _Log) -> None:
        if log.length:
            with durable_write(landing):
                self._disk.truncate(log.handle, 0)
            log.length, log.digest = 0, sha256()

    def _add(self, log: _Log, data: bytes) -> None:
        if data:
            write_whole(self._disk, log.handle, data)
            log.digest.update(data)
            log.length += len(data)

    def _write(self, path: str, data: bytes) -> None:
        handle = self._disk.open(path, "create")
        try:
            if data:
                write_whole(self._disk, handle, data)
        finally:
            self._disk.close(handle)

    def _make_way(self, landing: str, name: str) -> None:
        path = f"{landing}/capsule"
        for part in name.split("/")[:-1]:
            path = f"{path}/{part}"
            if self._disk.stat_path(path) is None:
                self._disk.make_folder(path)

    def _prune_files(self, root: str, inside: str, keep: Collection[str]) -> None:
        for name, kind in self._disk.list(f"{root}/{inside}".rstrip("/")):
            path = f"{inside}/{name}".lstrip("/")
            if path == layout.BLOBS:
                continue
            if kind == "folder":
                self._prune_files(root, path, keep)
            elif path not in keep:
                self._disk.unlink(f"{root}/{path}")

    def _inode(self, path: str) -> int:
        found = self._disk.stat_path(path)
        return 0 if found is None else found.inode

    def _remove_if(self, path: str, inode: int) -> None:
        """Guard: only the very folder that was put there."""
        if inode and self._inode(path) == inode:
            self._remove(path)

    def _clear(self, landing: str) -> None:
        log = self._logs.pop(landing, None)
        if log is not None:
            self._disk.close(log.handle)
        self._linked.pop(landing, None)
        self._remove(landing)
        with suppress(OSError):
            self._disk.remove_folder(os.path.dirname(landing))

    def _remove(self, path: str) -> None:
        """Remove a folder and all that is in it; its last name goes durably."""
        with durable_write(path):
            if self._disk.stat_path(path) is None:
                return
            self._remove_inside(path)
            self._disk.sync_folder(os.path.dirname(path))

    def _remove_inside(self, path: str) -> None:
        for name, kind in self._disk.list(path):
            if kind == "folder":
                self._remove_inside(f"{path}/{name}")
            else:
                self._disk.unlink(f"{path}/{name}")
        self._disk.remove_folder(path)

    def _sync_each(self, folder: str) -> None:
        for name, kind in self._disk.list(folder):
            if kind == "folder":
                self._sync_each(f"{folder}/{name}")
                self._disk.sync_folder(f"{folder}/{name}")
            elif kind == "file":
                handle = self._disk.open(f"{folder}/{name}", "append")
                try:
                    self._disk.sync(handle)
                finally:
                    self._disk.close(handle)
