"""Archives as files: written whole or not at all, read in order or at any place.

docs/format.md#archive. What is compressed or encrypted is unpacked to a file without a name when it
must be read at any place.
"""

import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from tempfile import TemporaryFile
from typing import Final, Literal, TypeAlias

from sojourn.errors import FormatError, NotFoundError, StorageError, UsageError
from sojourn.format import archive, layout
from sojourn.format.archive import Member
from sojourn.ids import BlobId
from sojourn.store import zstd
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import (
    durable_write,
    maker_of,
    open_temporary,
    reading,
    storage_error,
    write_whole,
)
from sojourn.store.system import process_start

CHUNK: Final = 1 << 20

Write: TypeAlias = Callable[[bytes], None]
Decrypt: TypeAlias = Callable[[Iterable[bytes], Write], None]
"""Takes the pieces of an encrypted file and hands on what they hold."""

Wrapping: TypeAlias = Literal["age", "zstd"]

AGE: Final = (b"age-encryption.org/v1\n", b"-----BEGIN AGE ENCRYPTED FILE-----")


def write_archive(
    path: str,
    fill: Callable[[Write], None],
    check: Callable[[str], None],
    *,
    force: bool,
    disk: Disk | None = None,
) -> None:
    """Make a file of what `fill` writes, durable on return; it appears once `check` passed it.

    `check` gets the path of the half-made file and raises for what is wrong. Nothing is left
    behind when anything fails. Raises: UsageError `exists` unless `force`; StorageError.
    """
    disk = disk or OsDisk()
    path = os.path.abspath(path)
    check_target(path, force=force)
    temporary = ""
    try:
        with durable_write(path):
            temporary, handle = open_temporary(disk, path)
            try:
                fill(lambda data: write_whole(disk, handle, data))
                disk.sync(handle)
            finally:
                disk.close(handle)
            check(temporary)
            if force:
                disk.rename(temporary, path)
            else:
                disk.link(temporary, path)
            disk.sync_folder(os.path.dirname(path))
    except StorageError as failure:
        if isinstance(failure.__cause__, FileExistsError):
            raise _exists(path) from failure
        raise
    finally:
        with suppress(OSError):
            disk.unlink(temporary)


def sweep_half_made(path: str) -> None:
    """Remove what writers of this file left beside it that died. What cannot be removed is left."""
    folder, name = os.path.split(os.path.abspath(path))
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            maker = maker_of(entry.name)
            half = maker is not None and maker[0] == name and not process_start(maker[1])
            if half and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)


def check_target(path: str, *, force: bool) -> None:
    """Nothing, when a file may be made there.

    Raises: UsageError `exists` or `not_a_file`; NotFoundError `folder_missing`.
    """
    path = os.path.abspath(path)
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder", code="not_a_file", state="Nothing was written.")
    if not force and os.path.lexists(path):
        raise _exists(path)
    if not os.path.isdir(os.path.dirname(path)):
        raise NotFoundError(
            f"there is no folder {os.path.dirname(path)}",
            code="folder_missing",
            state="Nothing was written.",
        )


def digest_of(path: str) -> str:
    """The sha256 of a file's bytes as they are read back."""
    running = sha256()
    with reading(path), open(path, "rb", buffering=0) as file:
        while data := file.read(CHUNK):
            running.update(data)
    return running.hexdigest()


class Opened:
    """An archive's file, open; `wrapped` is what is around the plain archive, outermost first."""

    def __init__(self, path: str, handle: int, decrypt: Decrypt | None) -> None:
        self._path = path
        self._handle = handle
        self._spools: list[int] = []
        self.wrapped: tuple[Wrapping, ...] = ()
        start = os.pread(handle, 64, 0)
        if start.startswith(AGE):
            if decrypt is None:
                raise _no_identity(path)
            self._handle = self._spooled(lambda write: decrypt(_pieces(handle), write))
            self.wrapped = ("age",)
            start = os.pread(self._handle, 64, 0)
        if start.startswith(zstd.MAGIC):
            self.wrapped = (*self.wrapped, "zstd")
        self._packed = "zstd" in self.wrapped

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the plain archive, in order."""
        raw = _pieces(self._handle)
        return zstd.decompressed(raw) if self._packed else raw

    def plain(self) -> int:
        """A handle of the plain archive, to be read at any place."""
        if self._packed:
            pieces = self.pieces()
            self._handle = self._spooled(lambda write: _each(pieces, write))
            self._packed = False
        return self._handle

    def close(self) -> None:
        """Let go of everything that was unpacked."""
        for handle in self._spools:
            os.close(handle)

    def _spooled(self, fill: Callable[[Write], None]) -> int:
        """A file without a name that holds what `fill` writes."""
        with durable_write(self._path), TemporaryFile(buffering=0) as file:
            handle = os.dup(file.fileno())
            self._spools.append(handle)
            fill(lambda data: write_whole(OsDisk(), handle, data))
        return handle


@contextmanager
def open_archive(path: str, *, decrypt: Decrypt | None) -> Generator[Opened]:
    """The archive in a file.

    Raises: NotFoundError `file_missing`; UsageError `identity_needed`; what `decrypt` raises.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        handle = os.open(path, flags)
    except OSError as failure:
        raise NotFoundError(
            f"cannot read {path}: {failure.strerror}", code="file_missing", file=path
        ) from failure
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UsageError(f"{path} is not a regular file", code="not_an_archive", file=path)
        opened = Opened(path, handle, decrypt)
        try:
            yield opened
        finally:
            opened.close()
    finally:
        os.close(handle)


class ArchiveFiles:
    """The `CapsuleFiles` of docs/format.md#verification for an open plain archive.

    Making it reads the whole archive once. Raises: FormatError with a code of
    `sojourn.format.archive`.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._members: dict[str, Member] = {}
        self._digests: dict[str, str] = {}
        running = sha256()
        for item in archive.read(_pieces(handle)):
            if isinstance(item, bytes):
                running.update(item)
                continue
            self._close(running.hexdigest())
            running = sha256()
            self._members[item.path] = item
        self._close(running.hexdigest())

    def log(self) -> Iterable[bytes] | None:
        """The log in chunks, None when there is none."""
        return self.chunks(layout.TIMELINE) if layout.TIMELINE in self._members else None

    def paths(self) -> Iterable[str]:
        """Every member but the blobs."""
        return [path for path in self._members if not path.startswith(f"{layout.BLOBS}/")]

    def blobs(self) -> Iterable[str]:
        """The names of the blobs."""
        start = f"{layout.BLOBS}/"
        return [path.removeprefix(start) for path in self._members if path.startswith(start)]

    def read(self, path: str, limit: int) -> bytes | None:
        """The first `limit` + 1 bytes of a member, None when there is none."""
        found = self._members.get(path)
        if found is None:
            return None
        return b"".join(_pieces(self._handle, found.offset, min(found.size, limit + 1)))

    def size(self, path: str) -> int | None:
        """The size of a member, None when there is none."""
        found = self._members.get(path)
        return None if found is None else found.size

    def digest(self, path: str) -> str | None:
        """The sha256 of a member's bytes, None when there is none."""
        return self._digests.get(path)

    def digests(self, paths: Iterable[str]) -> Iterable[tuple[str, str | None]]:
        """The same of many members."""
        return [(path, self._digests.get(path)) for path in paths]

    def chunks(self, path: str) -> Iterator[bytes]:
        """The bytes of a member in pieces."""
        found = self._members.get(path)
        return iter(()) if found is None else _pieces(self._handle, found.offset, found.size)

    def read_blob(self, blob: BlobId) -> bytes | None:
        """A blob whole."""
        path = layout.blob_path(blob)
        return self.read(path, self.size(path) or 0)

    def _close(self, digest: str) -> None:
        """Note the digest of the member that was read last."""
        if self._members:
            self._digests[next(reversed(self._members))] = digest


def check_same(pieces: Iterable[bytes], wanted: Mapping[str, str]) -> None:
    """Nothing, when an archive has just these members, path to sha256.

    Raises: FormatError `export_failed` or a code of `sojourn.format.archive`.
    """
    found: dict[str, str] = {}
    path, running = "", sha256()
    for item in archive.read(pieces):
        if isinstance(item, bytes):
            running.update(item)
            continue
        found[path] = running.hexdigest()
        path, running = item.path, sha256()
    found[path] = running.hexdigest()
    del found[""]
    if found != wanted:
        raise not_written()


def not_written() -> FormatError:
    """The error when what was written is read back as something else."""
    return FormatError(
        "what was written was read back as something else",
        code="export_failed",
        state="No archive was written.",
        hint="Look at the disk's health, and try again.",
    )


def _pieces(handle: int, start: int = 0, size: int | None = None) -> Iterator[bytes]:
    place, end = start, None if size is None else start + size
    while end is None or place < end:
        wanted = CHUNK if end is None else min(CHUNK, end - place)
        try:
            data = os.pread(handle, wanted, place)
        except OSError as failure:
            raise storage_error(failure, "the archive", done="read") from failure
        if not data:
            return
        yield data
        place += len(data)


def _each(pieces: Iterable[bytes], write: Write) -> None:
    for piece in pieces:
        write(piece)


def _exists(path: str) -> UsageError:
    return UsageError(
        f"{path} is there already",
        code="exists",
        state="Nothing was written.",
        hint="Choose another file, or replace it with --force.",
    )


def _no_identity(path: str) -> UsageError:
    return UsageError(
        f"{os.path.basename(path)} is encrypted",
        code="identity_needed",
        state="Nothing was read.",
        hint="Give --identity FILE with the key of one of its recipients.",
        exit_code=6,
    )
