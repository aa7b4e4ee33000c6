"""What the source of a move offers: a manifest that lists every file, and the bytes of each.

While the agent runs the list is of one moment, read without its lock; the sealed one is made when
it is frozen. Neither is written into the capsule's folder (docs/moving.md#offer).
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Protocol

import msgspec

from sojourn.core.migration_messages import Offer, Wanted
from sojourn.drive.export import Seal
from sojourn.drive.reading import read_manifest
from sojourn.errors import FormatError, MigrationError
from sojourn.format import index, layout, manifest, seal
from sojourn.format.manifest import FileMark, Manifest
from sojourn.ids import BlobId, EventId
from sojourn.ports import Store
from sojourn.ports_move import Piece

PIECE: Final = 256 * layout.KIB
"""Bytes of one piece."""

Sent = Callable[[int], None]
"""Told how many bytes went out since it was last told."""


class Folder(Protocol):
    """A capsule's folder, to be read in pieces."""

    def paths(self) -> Iterator[str]: ...

    def blobs(self) -> Iterator[str]: ...

    def size(self, path: str) -> int | None: ...

    def read(self, path: str, limit: int) -> bytes | None: ...

    def chunks(self, path: str, size: int, *, start: int) -> Iterator[bytes]: ...


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
        return listed | {found.timeline.sha256: layout.TIMELINE}


@dataclass(slots=True)
class Reading:
    """Reads the log once for all offers: how much of it was read, its hash, and its last event."""

    length: int = 0
    digest: "object" = field(default_factory=sha256)
