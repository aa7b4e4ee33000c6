"""Puts new bytes in a file's place: all or none, and durable on return."""

import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256

from sojourn.errors import CallError
from sojourn.format.event import FileDigest
from sojourn.ids import BlobId, CallKey
from sojourn.tools.beneath import DRAFT, PathRefused, Spot, kind_of


def digest_of(found: Spot) -> BlobId | None:
    """sha256 of the file's bytes, None when there is none.

    Raises: PathRefused when something else is there.
    """
    if found.stat() is None:
        return None
    with os.fdopen(found.open_file(), "rb") as file:
        return BlobId(file_digest(file, "sha256").hexdigest())


def replace_file(
    found: Spot, data: bytes, *, key: CallKey, before: BlobId | None, seen: os.stat_result | None
) -> FileDigest:
    """Put `data` where the spot is, with the mode of the file that was there.

    `seen` is the file as its reader saw it, None when there was none; `before` its digest.

    Raises: PathRefused when something else is there now, or it may not be written; CallError
    `write_failed`, and `write_unsure` when it was replaced but may not survive a power cut.
    """
    _refuse_unwritable(found, seen)
    after = BlobId(sha256(data).hexdigest())
    listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=found.folder)
    try:
        with _draft(listed, key) as draft:
            try:
                _write(listed, draft, data, seen)
                _refuse_changed(found, seen)
                os.rename(draft, found.name, src_dir_fd=listed, dst_dir_fd=found.folder)
            except OSError as error:
                raise CallError(
                    f"{found.shown}: not written: {os.strerror(error.errno or 0)}",
                    code="write_failed",
                ) from error
        _sync(listed, found)
    finally:
        os.close(listed)
    return FileDigest(path=found.shown, before=before, after=after)


def _refuse_unwritable(found: Spot, seen: os.stat_result | None) -> None:
    if found.name == ".":
        raise PathRefused(f"{found.shown}: is a folder", code="is_folder")
    if seen is None:
        return
    if not stat.S_ISREG(seen.st_mode):
        raise PathRefused(f"{found.shown}: is a {kind_of(seen.st_mode)}, not a regular file")
    if not seen.st_mode & 0o222:
        raise PathRefused(f"{found.shown}: is read-only", code="read_only")


def _refuse_changed(found: Spot, seen: os.stat_result | None) -> None:
    """Somebody else's change between reading and replacing must not be lost."""
    now = found.stat()
    if _version(now) != _version(seen):
        raise PathRefused(
            f"{found.shown}: was changed by somebody else just now; read it again", code="changed"
        )


def _version(found: os.stat_result | None) -> tuple[int, ...] | None:
    return found and (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@contextmanager
def _draft(listed: int, key: CallKey) -> Generator[str]:
    """A name for the new bytes that nobody else writes to; nothing is left under it."""
    try:
        fcntl.flock(listed, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft = DRAFT
    except OSError:
        # Another capsule writes in the same folder, or its file system has no locks.
        draft = f"{DRAFT}.{key}"
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=listed)
    try:
        yield draft
    finally:
        with suppress(OSError):
            os.unlink(draft, dir_fd=listed)


def _write(listed: int, draft: str, data: bytes, seen: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(draft, flags, 0o666, dir_fd=listed)
    with os.fdopen(opened, "wb") as file:
        file.write(data)
        file.flush()
        if seen is not None:
            _keep_mode(opened, seen)
        os.fsync(opened)


def _keep_mode(opened: int, seen: os.stat_result) -> None:
    mode, now = stat.S_IMODE(seen.st_mode), os.fstat(opened)
    if (now.st_uid, now.st_gid) != (seen.st_uid, seen.st_gid):
        try:
            os.fchown(opened, seen.st_uid, seen.st_gid)
        except OSError:
            # Not ours to give away: then a set-uid bit must not come along either.
            mode &= 0o777
    os.fchmod(opened, mode)


def _sync(listed: int, found: Spot) -> None:
    try:
        os.fsync(listed)
    except OSError as error:
        raise CallError(
            f"{found.shown}: replaced, but its folder could not be synced:"
            f" {os.strerror(error.errno or 0)}",
            code="write_unsure",
            may_have_happened=True,
        ) from error
