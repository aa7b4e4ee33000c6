"""What earlier readings of a workspace found: for each path its stat key and its fingerprint.

It lies in the state folder, outside every capsule, and is worth nothing but time: damaged, gone or
of another folder, it is made anew. A key is trusted only when it was taken so long after the file's
last change that a further change must have shown in it.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from operator import attrgetter
from typing import Final, cast

import msgspec

from sojourn.ids import BlobId

MAGIC: Final = b"sojourn.stat/2\n"
TICK: Final = 20_000_000
"""Nanoseconds that a file system's clock may lag behind the machine's."""

SECOND: Final = 1_000_000_000
COARSE: Final = 2 * SECOND
"""The same where times are whole seconds."""

NEVER: Final = -1
"""Stands in the place of a time that is not trusted."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One path: what it was when it was read, and the sha256 of its content.

    The key is of `STAT`; an empty folder has the digest "".
    """

    key: tuple[int, int, int, int, int]
    sha256: str

    @property
    def mode(self) -> int:
        """Type and permissions, as the kernel has them."""
        return self.key[0]

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return self.key[1]


STAT: Final = cast(
    "Callable[[os.stat_result], tuple[int, int, int, int, int]]",
    attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino"),
)
"""What a row keeps of a path's state: one comparison says whether it is as it was."""

Rows = dict[str, dict[str, Row]]
"""Rows by folder and name; a folder is the beginning of its paths: "" or it ends in `/`."""

EMPTY_FOLDER: Final = Row((stat.S_IFDIR | 0o755, 0, NEVER, NEVER, 0), "")
"""The times and modes of an empty folder do not matter."""


class Known(msgspec.Struct, array_like=True):
    """All paths of one reading; `result` is the digest of the list that they make."""

    device: int
    inode: int
    result: BlobId
    rows: Rows

    def count(self) -> int:
        """How many paths there are."""
        return sum(map(len, self.rows.values()))


def row_at(rows: Rows, path: str) -> Row | None:
    """The row of a path."""
    folder, slash, name = path.rpartition("/")
    return rows.get(folder + slash, {}).get(name)


def with_rows(rows: Rows, new: Mapping[str, Row]) -> Rows:
    """Rows and others by their paths, which replace those of the same path."""
    made = dict(rows)
    copied: set[str] = set()
    for path, row in new.items():
        folder, slash, name = path.rpartition("/")
        folder += slash
        if folder not in copied:
            copied.add(folder)
            made[folder] = dict(made.get(folder, {}))
        made[folder][name] = row
    return made


def without_rows(rows: Rows, gone: Iterable[str]) -> Rows:
    """Rows but for those of some paths."""
    left = {folder: dict(names) for folder, names in rows.items()}
    for path in gone:
        folder, slash, name = path.rpartition("/")
        left.get(folder + slash, {}).pop(name, None)
    return left


def key_of(found: os.stat_result, digest: str, *, now: int) -> Row:
    """The row of a file whose state was `found` at `now`, before its content was read."""
    whole = found.st_mtime_ns % SECOND == 0 and found.st_ctime_ns % SECOND == 0
    slack = COARSE if whole else TICK
    mode, size, modified, changed, inode = STAT(found)
    trusted = max(modified, changed) + slack <= now
    return Row((mode, size, modified, changed if trusted else NEVER, inode), digest)


def holds(row: Row, found: os.stat_result) -> bool:
    """Whether a path is certain to be as it was read."""
    return row.key == STAT(found)


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
