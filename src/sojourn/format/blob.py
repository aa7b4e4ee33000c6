"""Blobs: bytes that are named by their sha256 (docs/format.md#blobs)."""

from hashlib import sha256
from typing import Final, cast, get_args

import msgspec

from sojourn.errors import FormatError
from sojourn.format import layout
from sojourn.format.failures import Code, say
from sojourn.format.parts import BlobRef
from sojourn.ids import BlobId


def blob_id(data: bytes) -> BlobId:
    """The name of the blob with these bytes."""
    return BlobId(sha256(data).hexdigest())


def ref(data: bytes, *, media_type: str, preview: str = "") -> BlobRef:
    """A reference to the blob with these bytes; of `preview` the first 256 characters are kept."""
    return BlobRef(
        sha256=blob_id(data),
        size=len(data),
        media_type=media_type,
        preview=preview[: layout.MAX_PREVIEW],
    )


def check(name: BlobId, data: bytes | None, *, size: int | None = None) -> bytes:
    """The bytes, when they are the blob's; the size is compared before the digest.

    Raises: FormatError `blob_missing`, `blob_size` or `blob_altered`.
    """
    code: Code | None = None
    if data is None:
        code = "blob_missing"
    elif size is not None and len(data) != size:
        code = "blob_size"
    elif blob_id(data) != name:
        code = "blob_altered"
    if code is not None or data is None:
        raise FormatError(say(code or "blob_missing"), code=code, file=layout.blob_path(name))
    return data


def refs(body: object) -> list[BlobRef]:
    """Every reference in a body, in typed positions: none that a text could forge."""
    found: list[BlobRef] = []
    _collect(body, found)
    return found


def _collect(value: object, found: list[BlobRef]) -> None:
    kind = type(value)
    if kind is tuple:
        for item in cast(tuple[object, ...], value):
            _collect(item, found)
    elif isinstance(value, BlobRef):
        found.append(value)
    else:
        names = _HOLDERS.get(kind)
        for name in _holders(kind) if names is None else names:
            held = cast(object, getattr(value, name))
            if held and type(held) is not str:
                _collect(held, found)


_HOLDERS: Final[dict[type, tuple[str, ...]]] = {}
"""What `_holders` found, looked up for every event."""


def _holders(kind: type) -> tuple[str, ...]:
    """The names of the fields that may hold a reference, however deep."""
    names: tuple[str, ...] = ()
    if issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        names = tuple(field.name for field in fields if _may_hold(field.type))
    _HOLDERS[kind] = names
    return names


def _may_hold(kind: object) -> bool:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind is BlobRef or bool(_holders(kind))
    return any(_may_hold(item) for item in get_args(kind))
