"""What a capsule's folder is made of when it is made from another one (docs/protocol.md#fork)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sojourn.ids import BlobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """What a capsule's folder is made of when it is made from another one.

    The log is the first `length` bytes of that in the folder `source`, whose sha256 is `digest`,
    and then `added`. `blobs` are copied from there. `files` are whole small files, the manifest
    among them, and `kept` blobs that are new.
    """

    source: str
    length: int
    digest: str
    added: bytes
    blobs: Sequence[BlobId]
    kept: Mapping[BlobId, bytes]
    files: Mapping[str, bytes]
