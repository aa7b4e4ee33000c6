"""Whether a path lies on a network file system, from the kernel's own table of mounts.

Locks and syncs promise too little there to run a capsule (docs/protocol.md#state-folder).
"""

import os
import re
from typing import Final

NETWORK_TYPES: Final = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs", "ceph", "lustre", "glusterfs",
    "fuse.sshfs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.smbnetfs",
    "fuse.gvfsd-fuse", "fuse.curlftpfs", "fuse.davfs2", "fuse.juicefs", "fuse.gcsfuse",
))  # fmt: skip
"""Types of file systems whose files another host may change at the same time."""

_TABLE: Final = "/proc/self/mountinfo"


def network_type(path: str) -> str | None:
    """The type of the network file system at `path`; None when local, or where nothing tells."""
    try:
        with open(_TABLE, encoding="utf-8", errors="surrogateescape") as table:
            text = table.read()
    except OSError:
        return None
    return network_type_in(text, os.path.realpath(path))


def network_type_in(table: str, path: str) -> str | None:
    """The same from a table of mounts and a resolved absolute path."""
    best, found = -1, ""
    for line in table.split("\n"):
        place, kind = _mount(line)
        if place is not None and _lies_in(path, place) and len(place) >= best:
            best, found = len(place), kind
    return found if found in NETWORK_TYPES else None


def _mount(line: str) -> tuple[str | None, str]:
    """Mount point and type of one line of mountinfo: fields, a lone `-`, type, source, options."""
    fields = line.split(" ")
    if len(fields) < 5 or "-" not in fields[5:-1]:
        return None, ""
    place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
    return place, fields[fields.index("-", 5) + 1]


def _lies_in(path: str, place: str) -> bool:
    return place == "/" or path == place or path.startswith(f"{place}/")
