"""The workspace at one moment: path to fingerprint (docs/format.md#snapshots)."""

from collections.abc import Iterable
from hashlib import sha256
from operator import attrgetter
from typing import Final, Literal, TypeAlias

import msgspec

from sojourn.errors import FormatError, LimitError
from sojourn.format import canon, layout, paths
from sojourn.format.failures import Code, say
from sojourn.format.parts import Count, Digest
from sojourn.ids import BlobId

FORMAT: Final = "sojourn.snapshot/1"
DELTA: Final = "delta"
"""What errors call a snapshot event's delta."""

Type: TypeAlias = Literal["file", "executable", "symlink", "directory"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One path; `sha256` and `size` are of the file's or link target's bytes.

    An empty directory has neither.
    """

    path: str
    sha256: Digest | None = None
    size: Count | None = None
    type: Type


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All entries, sorted by the bytes of their paths."""

    entries: tuple[Entry, ...]
    format: Literal["sojourn.snapshot/1"] = FORMAT


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """What to add to a list or replace in it, and what to take out; both sorted by path."""

    changed: tuple[Entry, ...]
    gone: tuple[str, ...]


EMPTY: Final = Snapshot(entries=())
"""An empty workspace, or one of which no snapshot was taken."""


def make(entries: Iterable[Entry]) -> Snapshot:
    """The snapshot with these entries, in order.

    Raises: FormatError `path_unsafe` or `snapshot_malformed`.
    """
    snapshot = Snapshot(entries=tuple(sorted(entries, key=_place)))
    check(snapshot)
    return snapshot


def ordered(entries: Iterable[Entry]) -> Snapshot:
    """The snapshot with entries that are known to obey every rule, put in order."""
    return Snapshot(entries=tuple(sorted(entries, key=_place)))


def encode(snapshot: Snapshot) -> bytes:
    """The file's bytes.

    Raises: LimitError `workspace_too_large` when no reader would take them.
    """
    data = canon.quick(snapshot) + b"\n"
    if len(data) > layout.MAX_SNAPSHOT:
        raise LimitError(
            f"the list of {len(snapshot.entries):,} files would be longer than "
            f"{layout.MAX_SNAPSHOT // layout.MIB} MiB",
            code="workspace_too_large",
            state="No snapshot was taken; nothing else changed.",
            hint="Name folders that can be made again in .sojournignore.",
        )
    return data


def digest(data: bytes) -> BlobId:
    """What a snapshot event calls the list that is stored as `data`."""
    return BlobId(sha256(data).hexdigest())


NO_CONTENT: Final = digest(b"")
"""The digest of the content of an empty file."""

NOTHING: Final = digest(encode(EMPTY))
"""The digest of the empty list."""


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
    check(snapshot)
    return snapshot


def load_known(data: bytes) -> Snapshot:
    """The snapshot in bytes whose digest a snapshot event names, so that a writer checked them."""
    return msgspec.json.decode(data, type=Snapshot)


def delta(before: Snapshot, after: Snapshot) -> Delta:
    """What `apply` makes `after` of `before` with."""
    old = {entry.path: entry for entry in before.entries}
    changed = tuple(entry for entry in after.entries if old.pop(entry.path, None) != entry)
    return Delta(changed=changed, gone=tuple(old))


def apply(before: Snapshot, change: Delta) -> Snapshot:
    """The list that a delta makes of another; every entry of the delta must change something.

    Raises: FormatError `path_unsafe` or `snapshot_malformed`.
    """
    found = {entry.path: entry for entry in before.entries}
    _check_order((entry.path for entry in change.changed), "changed")
    _check_order(change.gone, "gone")
    for path in change.gone:
        if found.pop(path, None) is None:
            raise _error("snapshot_malformed", f"{path!r} is gone and was not there", DELTA)
    gone = set(change.gone)
    for entry in change.changed:
        if entry.path in gone or found.get(entry.path) == entry:
            raise _error("snapshot_malformed", f"{entry.path!r} did not change", DELTA)
        found[entry.path] = entry
    return make(found.values())


def encode_delta(change: Delta) -> str:
    """The text that a snapshot event holds."""
    return canon.quick(change).decode()


def load_delta(data: bytes) -> Delta:
    """The delta in a text's bytes; whether it fits a list is seen when it is applied.

    Raises: FormatError with the loader's codes or `snapshot_malformed`.
    """
    value = canon.load(data, what=DELTA, limit=layout.MAX_SNAPSHOT)
    try:
        return msgspec.convert(value, Delta)
    except msgspec.ValidationError as error:
        raise _error("snapshot_malformed", str(error), DELTA) from None


def check_path(path: str) -> str | None:
    """Why a path may not stand in a snapshot, or None."""
    return paths.unsafe(path)


def check(snapshot: Snapshot) -> None:
    """Nothing, when the entries obey every rule of docs/format.md#snapshots.

    Raises: FormatError `path_unsafe` or `snapshot_malformed`.
    """
    for entry in snapshot.entries:
        reason = paths.unsafe(entry.path)
        if reason is not None:
            raise _error("path_unsafe", f"{entry.path!r}: {reason}")
    _check_order((entry.path for entry in snapshot.entries), "entries")
    for entry in snapshot.entries:
        bare = entry.sha256 is None and entry.size is None
        whole = entry.sha256 is not None and entry.size is not None
        if not (bare if entry.type == "directory" else whole):
            raise _error("snapshot_malformed", f"{entry.path!r} has a wrong fingerprint")
    above = folders(entry.path for entry in snapshot.entries)
    for entry in snapshot.entries:
        if entry.path in above:
            raise _error("snapshot_malformed", f"{entry.path!r} is a folder of another path")


def folders(below: Iterable[str]) -> set[str]:
    """Every folder on the way to one of these paths."""
    found: set[str] = set()
    for path in below:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _check_order(names: Iterable[str], what: str) -> None:
    before = b""
    for path in names:
        try:
            name = path.encode()
        except UnicodeEncodeError:
            raise _error("path_unsafe", f"{path!r} is not valid Unicode") from None
        if name <= before:
            raise _error("snapshot_malformed", f"{path!r} is not in its place in {what}")
        before = name


_path = attrgetter("path")


def _place(entry: Entry) -> bytes:
    return _path(entry).encode()


def _error(code: Code, detail: str, file: str = layout.SNAPSHOT) -> FormatError:
    return FormatError(say(code, detail), code=code, file=file, line=1)
