"""Which blobs a line of the log names, in whatever form (docs/format.md#blobs)."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from sojourn.errors import FormatError
from sojourn.format import blob
from sojourn.format.capsule_kinds import Snapshotted
from sojourn.format.event import Event, Unknown
from sojourn.format.line import ReadBlob
from sojourn.format.parts import BlobRef
from sojourn.ids import BlobId

DIGEST: Final = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
"""What may be the name of a blob, anywhere in bytes."""


class _Body(msgspec.Struct):
    large: BlobRef | None = None


class _Line(msgspec.Struct):
    body: _Body | None = None


def named_by(line: bytes, event: Event, read: ReadBlob) -> Iterator[BlobId]:
    """The blobs that a line's body names: its own, references, and the contents of a snapshot.

    Of a kind that is not known every digest in the body counts.
    """
    own = large_of(line)
    if own is not None:
        yield own.sha256
    for ref in blob.refs(event.body):
        yield ref.sha256
    match event.body:
        case Snapshotted() as body:
            for text in (body.delta, body.full):
                yield from map(BlobId, digests(_bytes(text, read)))
        case Unknown(raw=raw):
            yield from map(BlobId, digests(raw))
        case _:
            return


def large_of(line: bytes) -> BlobRef | None:
    """The blob that holds the line's body, None when the body stands in the line."""
    if b'"large"' not in line:
        return None
    try:
        found = msgspec.json.decode(line, type=_Line)
    except msgspec.MsgspecError:
        return None
    return None if found.body is None else found.body.large


def digests(data: bytes) -> Iterator[str]:
    """Whatever may be a digest in bytes of any kind."""
    return (found.decode() for found in DIGEST.findall(data))


def _bytes(text: str | BlobRef | None, read: ReadBlob) -> bytes:
    if text is None:
        return b""
    if isinstance(text, str):
        return text.encode()
    try:
        return read(text) or b""
    except FormatError:
        return b""
