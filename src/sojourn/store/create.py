"""Making a capsule's folder: it appears whole or not at all (docs/protocol.md#ledger)."""

import errno
import os
from collections.abc import Mapping
from typing import Final

from sojourn.errors import UsageError
from sojourn.format import layout
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import Durable, durable_write, temporary_names, write_whole

TAKEN: Final = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
"""How the kernel says that a folder cannot be put where something is."""


def create_capsule(folder: str, files: Mapping[str, bytes], *, disk: Disk | None = None) -> None:
    """Make a capsule of these files (relative path to bytes), durable on return.

    The folder must not be there, or be empty; then the manifest is what appears last in it.
    Raises: UsageError `exists`; StorageError.
    """
    disk = disk or OsDisk()
    parent = os.path.dirname(folder)
    Durable(disk).make_folder(parent)
    with durable_write(folder):
        found = disk.stat_path(folder)
        if found is not None:
            if found.kind != "folder" or disk.list(folder):
                raise exists(folder)
            _fill(disk, folder, files)
            disk.sync_folder(parent)
            return
        staging = new_staging(disk, folder)
        _fill(disk, staging, files)
        try:
            disk.rename(staging, folder)
        except OSError as failure:
            if failure.errno not in TAKEN:
                raise
            raise exists(folder) from failure
        disk.sync_folder(parent)


def _fill(disk: Disk, folder: str, files: Mapping[str, bytes]) -> None:
    for name in layout.FOLDERS:
        disk.make_folder(f"{folder}/{name}")
    for name, data in sorted(files.items()):
        if name != layout.MANIFEST:
            _write(disk, f"{folder}/{name}", data)
    for name in (*layout.FOLDERS, ""):
        disk.sync_folder(f"{folder}/{name}".rstrip("/"))
    if layout.MANIFEST in files:
        Durable(disk).create(f"{folder}/{layout.MANIFEST}", files[layout.MANIFEST])


def _write(disk: Disk, path: str, data: bytes) -> None:
    handle = disk.open(path, "create")
    try:
        write_whole(disk, handle, data)
        disk.sync(handle)
    finally:
        disk.close(handle)


def new_staging(disk: Disk, folder: str) -> str:
    """A new folder beside `folder`, named as a half-made form of it."""
    for staging in temporary_names(folder):
        try:
            disk.make_folder(staging)
        except FileExistsError:
            continue
        return staging
    raise exists(folder)


def exists(folder: str) -> UsageError:
    """The refusal of a place that is taken."""
    return UsageError(
        f"{folder} exists and is not empty",
        code="exists",
        state="Nothing was changed.",
        hint="Choose another folder or name.",
    )
