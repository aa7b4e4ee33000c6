"""What the source of a move offers: a manifest that lists every file, and the bytes of each.

While the agent runs the list is of one moment, read without its lock; the sealed one is made when
it is frozen. Neither is written into the capsule's folder (docs/moving.md#offer).
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Protocol

import msgspec

from sojourn.core.migration_messages import Offer, Wanted
from sojourn.drive.export import Seal
from sojourn.drive.reading import read_manifest
from sojourn.errors import MigrationError
from sojourn.format import index, layout, manifest, seal
from sojourn.format.manifest import FileMark, Manifest
from sojourn.ids import BlobId, EventId
from sojourn.ports import Store
from sojourn.ports_move import Piece

PIECE: Final = 256 * layout.KIB
"""Bytes of one piece."""

MOST: Final = layout.MAX_SNAPSHOT
"""Bytes of the longest small file."""

HEADER: Final = b',"header":'

Sent = Callable[[int], None]
"""Told how many bytes went out since it was last told."""


class Hash(Protocol):
    """A running hash."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class Folder(Protocol):
    """A capsule's folder, to be read in pieces."""

    def paths(self) -> Iterable[str]: ...

    def blob_sizes(self) -> Mapping[str, int]: ...

    def size(self, path: str) -> int | None: ...

    def read(self, path: str, limit: int) -> bytes | None: ...

    def chunks(self, path: str, size: int = PIECE, *, start: int = 0) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """An offer, the manifest behind it, and small contents that are in memory."""

    offer: Offer
    manifest: Manifest
    held: Mapping[BlobId, bytes]

    def sources(self) -> dict[BlobId, str]:
        """The path of each content in the folder, by its digest."""
        found = self.manifest
        listed = {one.sha256: path for path, one in found.files.items()}
        blobs = {} if found.seal is None else found.seal.blobs
        listed |= {BlobId(name): layout.blob_path(BlobId(name)) for name in blobs}
        return listed

    def sizes(self) -> dict[BlobId, int]:
        """The size of each content by its digest, the timeline's apart."""
        blobs = {} if self.manifest.seal is None else self.manifest.seal.blobs
        sizes = {BlobId(name): size for name, size in blobs.items()}
        sizes |= {digest: len(data) for digest, data in self.held.items()}
        return sizes | {one.sha256: one.size for one in self.manifest.files.values()}


@dataclass(slots=True)
class LogReading:
    """Reads a growing log once for all offers, and remembers what its beginnings hashed to."""

    store: Store
    length: int = 0
    last: EventId | None = None
    marks: dict[int, str] = field(default_factory=dict[int, str])
    _digest: Hash = field(default_factory=sha256)

    def read_on(self) -> str:
        """The sha256 of all whole lines that are there now. Raises: StorageError."""
        size = self.store.size()
        tail = b""
        if size < self.length:
            # It was rewritten: nothing that was read counts any more.
            self.length, self.marks, self._digest = 0, {}, sha256()
        for data in self.store.read_log(self.length, size):
            data = tail + data
            end = data.rfind(b"\n") + 1
            self._add(data[:end])
            tail = data[end:]
        found = self.marks[self.length] = self._digest.hexdigest()
        return found

    def begins_with(self, length: int, digest: str) -> bool:
        """Whether the first bytes of the log are those that hash to `digest`."""
        if length == 0:
            return True
        if length not in self.marks and length <= self.store.size():
            running = sha256()
            for data in self.store.read_log(0, length):
                running.update(data)
            self.marks[length] = running.hexdigest()
        return self.marks.get(length) == digest

    def _add(self, data: bytes) -> None:
        if data:
            self._digest.update(data)
            self.length += len(data)
            self.last = last_event(data)


def last_event(data: bytes) -> EventId | None:
    """The id of the last event of whole lines (docs/format.md#events)."""
    line = data[data.rfind(b"\n", 0, -1) + 1 : -1]
    at = line.rfind(HEADER)
    return None if at < 0 else EventId(sha256(line[at + len(HEADER) : -1]).hexdigest())


def live_offer(folder: Folder, log: LogReading, listed: bytes, *, label: str) -> Offered:
    """What a capsule that may be running has at this moment; `listed` is its workspace's list.

    Raises: FormatError when it cannot be read; StorageError.
    """
    live = read_manifest(log.store)
    digest = log.read_on()
    files: dict[str, bytes] = {layout.SNAPSHOT: listed, layout.INDEX: index.EMPTY}
    for path in folder.paths():
        known = path in layout.FIXED_FILES or path.startswith(f"{layout.ENVIRONMENT}/")
        if known and path not in files:
            files[path] = folder.read(path, MOST) or b""
    found = msgspec.structs.replace(
        live,
        files={path: _mark(path, data) for path, data in files.items()},
        timeline=manifest.TimelineMark(
            heads=live.timeline.heads, length=log.length, sha256=BlobId(digest)
        ),
        seal=manifest.Seal(
            blobs=_blobs(folder),
            event=log.last or EventId("0" * 64),
            number=1,
            previous=None,
            purpose="move",
            sums=BlobId("0" * 64),
        ),
    )
    held = {BlobId(sha256(data).hexdigest()): data for data in files.values()}
    return _offered(found, manifest.encode(found), held, log.last, label=label, final=False)


def sealed_offer(made: Seal, folder: Folder, *, label: str) -> Offered:
    """What is moved: the capsule as it was sealed, which nobody can change any more."""
    held = {BlobId(sha256(data).hexdigest()): data for data in (index.EMPTY, seal.VERIFY_TEXT)}
    for path in made.manifest.files:
        data = folder.read(path, MOST) if path not in (layout.INDEX, layout.VERIFY) else None
        if data is not None:
            held[BlobId(sha256(data).hexdigest())] = data
    last = None if made.manifest.seal is None else made.manifest.seal.event
    return _offered(made.manifest, made.data, held, last, label=label, final=True)


def _offered(
    found: Manifest,
    data: bytes,
    held: dict[BlobId, bytes],
    last: EventId | None,
    *,
    label: str,
    final: bool,
) -> Offered:
    blobs = {} if found.seal is None else found.seal.blobs
    root = BlobId(sha256(data).hexdigest())
    size = found.timeline.length + sum(one.size for one in found.files.values())
    offer = Offer(
        root=root,
        last=last or EventId("0" * 64),
        name=found.name,
        files=len(found.files) + len(blobs) + 1,
        size=size + sum(blobs.values()),
        log=found.timeline.length,
        label=label,
        final=final,
    )
    return Offered(offer=offer, manifest=found, held={**held, root: data})


async def pieces(
    offered: Offered,
    wanted: Wanted,
    folder: Folder,
    log: LogReading,
    sent: Sent,
    *,
    with_log: bool,
) -> AsyncIterator[Piece]:
    """The bytes that are wanted, from where a part is there already, in bounded pieces.

    Raises: MigrationError `not_offered` for a content that the offer does not list.
    """
    paths, sizes = offered.sources(), offered.sizes()
    for digest, start in wanted.contents:
        size = sizes.get(digest)
        if size is None:
            raise MigrationError(
                "the other machine asks for a content that was not offered", code="not_offered"
            )
        place = start if start < size else 0
        for data in _bytes(offered, folder, digest, paths.get(digest, ""), place):
            sent(len(data))
            yield Piece(digest=digest, size=size, offset=place, data=data)
            place += len(data)
        if not size:
            yield Piece(digest=digest, size=0, offset=0, data=b"")
    if not with_log:
        return
    mark = offered.manifest.timeline
    if wanted.log > mark.length or not log.begins_with(wanted.log, wanted.prefix):
        place = 0
    else:
        place = wanted.log
    for data in _whole(log.store.read_log(place, mark.length)):
        sent(len(data))
        yield Piece(digest=mark.sha256, size=mark.length, offset=place, data=data)
        place += len(data)


def _whole(found: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of `PIECE`, the last one shorter."""
    waiting = bytearray()
    for data in found:
        waiting += data
        if len(waiting) >= PIECE:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


def _bytes(
    offered: Offered, folder: Folder, digest: BlobId, path: str, start: int
) -> Iterator[bytes]:
    held = offered.held.get(digest)
    if held is None:
        yield from folder.chunks(path, PIECE, start=start)
        return
    for place in range(start, len(held), PIECE):
        yield held[place : place + PIECE]


def _mark(path: str, data: bytes) -> FileMark:
    return seal.mark(data, derived=path in layout.DERIVED_FILES)


def _blobs(folder: Folder) -> dict[str, int]:
    sizes = folder.blob_sizes()
    return {name: size for name, size in sizes.items() if layout.is_blob_name(name)}
