"""Where an arriving capsule goes, written down before it is put there (docs/moving.md#landing).

Whoever cleans up after a crash removes the very folders that are named, and no others.
"""

from typing import Final

import msgspec

from sojourn.errors import FormatError
from sojourn.format.canon import encode, load
from sojourn.store.disk import Disk
from sojourn.store.durable import read_whole, reading

PLACES: Final = "places"
"""The file's name in the folder of a move."""

_LIMIT: Final = 1 << 16


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where capsule and workspace go, their folders' numbers, and an older copy's folders."""

    folder: str
    folder_inode: int
    workspace: str
    workspace_inode: int
    older: tuple[str, ...] = ()

    def encoded(self) -> bytes:
        """The file's bytes."""
        return encode(self) + b"\n"


def load_places(disk: Disk, path: str) -> Places | None:
    """What the file at `path` says; None when there is none, or none that can be read.

    Raises: StorageError.
    """
    with reading(path):
        data = read_whole(disk, path, limit=_LIMIT)
    try:
        return None if data is None else msgspec.convert(load(data, what=path), Places)
    except (FormatError, msgspec.ValidationError):
        return None
