"""The workspace at one moment: path to fingerprint (docs/format.md#snapshots)."""

from typing import Final, Literal, TypeAlias

import msgspec

from sojourn.errors import FormatError
from sojourn.format import canon, layout, paths
from sojourn.format.failures import Code, say
from sojourn.format.parts import Count, Digest

FORMAT: Final = "sojourn.snapshot/1"

Type: TypeAlias = Literal["file", "executable", "symlink", "directory"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One path; `sha256` and `size` are of the file's or link target's bytes.

    An empty directory has neither.
    """

    path: str
    type: Type
    sha256: Digest | None = None
    size: Count | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All entries, sorted by the bytes of their paths."""

    entries: tuple[Entry, ...]
    format: Literal["sojourn.snapshot/1"] = FORMAT


EMPTY: Final = Snapshot(entries=())
"""An empty workspace, or one of which no snapshot was taken."""


def make(entries: tuple[Entry, ...]) -> Snapshot:
    """The snapshot with these entries, in order.

    Raises: FormatError `path_unsafe` or `snapshot_malformed`.
    """
    snapshot = Snapshot(entries=tuple(sorted(entries, key=lambda entry: entry.path.encode())))
    _check(snapshot)
    return snapshot


def encode(snapshot: Snapshot) -> bytes:
    """The file's bytes."""
    return canon.encode(snapshot) + b"\n"


def load(data: bytes) -> Snapshot:
    """The snapshot in a file's bytes.

    Raises: FormatError with the loader's codes, `snapshot_malformed` or `path_unsafe`.
    """
    value = canon.load(data, what=layout.SNAPSHOT, limit=layout.MAX_SNAPSHOT)
    if not isinstance(value, dict) or "format" not in value:
        raise _error("snapshot_malformed", "it has no format")
    try:
        snapshot = msgspec.convert(value, Snapshot)
    except msgspec.ValidationError as error:
        raise _error("snapshot_malformed", str(error)) from None
    _check(snapshot)
    return snapshot


def check_path(path: str) -> str | None:
    """Why a path may not stand in a snapshot, or None."""
    return paths.unsafe(path)


def _check(snapshot: Snapshot) -> None:
    for entry in snapshot.entries:
        reason = paths.unsafe(entry.path)
        if reason is not None:
            raise _error("path_unsafe", f"{entry.path!r}: {reason}")
    before = b""
    files: set[str] = set()
    for entry in snapshot.entries:
        name = entry.path.encode()
        if name <= before:
            raise _error("snapshot_malformed", f"{entry.path!r} is not in its place")
        bare = entry.sha256 is None and entry.size is None
        whole = entry.sha256 is not None and entry.size is not None
        if not (bare if entry.type == "directory" else whole):
            raise _error("snapshot_malformed", f"{entry.path!r} has a wrong fingerprint")
        parts = entry.path.split("/")
        if any("/".join(parts[:depth]) in files for depth in range(1, len(parts))):
            raise _error("snapshot_malformed", f"{entry.path!r} lies in a file")
        files.add(entry.path)
        before = name


def _error(code: Code, detail: str) -> FormatError:
    return FormatError(say(code, detail), code=code, file=layout.SNAPSHOT, line=1)
