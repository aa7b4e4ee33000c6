"""What earlier readings of a workspace found: for each path its stat key and its fingerprint.

It lies in the state folder, outside every capsule, and is worth nothing but time: damaged, gone or
of another folder, it is made anew. A key is trusted only when it was taken so long after the file's
last change that a further change must have shown in it.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Final

import msgspec

from sojourn.ids import BlobId

MAGIC: Final = b"sojourn.stat/1\n"
TICK: Final = 20_000_000
"""Nanoseconds that a file system's clock may lag behind the machine's."""

SECOND: Final = 1_000_000_000
COARSE: Final = 2 * SECOND
"""The same where times are whole seconds."""

NEVER: Final = -1
"""Stands in the place of a time that is not trusted."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One path: what it was when it was read, and the sha256 of its content.

    Times are in nanoseconds; an empty folder has the digest "".
    """

    mode: int
    size: int
    modified: int
    changed: int
    inode: int
    sha256: str


class Known(msgspec.Struct, array_like=True):
    """All paths of one reading, sorted; `result` is the digest of the list that they make."""

    device: int
    inode: int
    result: BlobId
    rows: dict[str, Row]


def key_of(found: os.stat_result, digest: str, *, now: int) -> Row:
    """The row of a file whose state was `found` at `now`, before its content was read."""
    whole = found.st_mtime_ns % SECOND == 0 and found.st_ctime_ns % SECOND == 0
    slack = COARSE if whole else TICK
    trusted = max(found.st_mtime_ns, found.st_ctime_ns) + slack <= now
    return Row(
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns if trusted else NEVER,
        found.st_ino,
        digest,
    )


def holds(row: Row, found: os.stat_result) -> bool:
    """Whether a path is certain to be as it was read."""
    return (
        row.changed == found.st_ctime_ns
        and row.modified == found.st_mtime_ns
        and row.size == found.st_size
        and row.inode == found.st_ino
        and row.mode == found.st_mode
    )


def load(path: str, device: int, inode: int) -> Known:
    """What is known of the folder with this device and inode; nothing when that cannot be read."""
    nothing = Known(device=device, inode=inode, result=BlobId(""), rows={})
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return nothing
    head, mark, body = data[: len(MAGIC)], data[len(MAGIC) :][:32], data[len(MAGIC) + 32 :]
    if head != MAGIC or sha256(body).digest() != mark:
        return nothing
    try:
        known = msgspec.msgpack.decode(body, type=Known)
    except msgspec.MsgspecError:
        return nothing
    return known if (known.device, known.inode) == (device, inode) else nothing


def save(path: str, known: Known) -> None:
    """Keep it; what fails here costs the next reading time, and nothing else.

    An empty path keeps nothing.
    """
    if not path:
        return
    body = msgspec.msgpack.encode(known)
    temporary = f"{path}.{os.getpid()}.tmp"
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(MAGIC + sha256(body).digest() + body)
        os.rename(temporary, path)


def ordered(rows: Mapping[str, Row]) -> dict[str, Row]:
    """The rows in the order of their paths' bytes."""
    return dict(sorted(rows.items(), key=lambda item: item[0].encode()))
