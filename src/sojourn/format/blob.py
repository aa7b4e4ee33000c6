"""Blobs: bytes that are named by their sha256 (docs/format.md#blobs)."""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from operator import attrgetter
from typing import Final, TypeAlias, cast, get_args

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


def refs(body: object) -> Sequence[BlobRef]:
    """Every reference in a body, in typed positions and any order: none that a text could forge."""
    if (_HOLDERS.get(type(body)) or _holders(type(body))) is _none:
        return ()
    found: list[BlobRef] = []
    waiting = [body]
    for value in waiting:
        kind = type(value)
        if kind is BlobRef:
            found.append(cast(BlobRef, value))
            continue
        for held in (_HOLDERS.get(kind) or _holders(kind))(value):
            if held and type(held) is not str:
                waiting.append(held)
    return found


_Holders: TypeAlias = Callable[[object], Iterable[object]]
"""Gives the values that may hold a reference, however deep."""

_HOLDERS: Final[dict[type, _Holders]] = {}
"""What `_holders` made, looked up for every event."""


def _holders(kind: type) -> _Holders:
    holders = _holders_of_fields(_names(kind)) if kind is not tuple else _items
    _HOLDERS[kind] = holders
    return holders


def _holders_of_fields(names: tuple[str, ...]) -> _Holders:
    match names:
        case ():
            return _none
        case (name,):
            return lambda value: (getattr(value, name),)
        case _:
            return cast(_Holders, attrgetter(*names))


def _none(value: object) -> tuple[object, ...]:
    del value
    return ()


def _items(value: object) -> tuple[object, ...]:
    return cast(tuple[object, ...], value)


def _names(kind: type) -> tuple[str, ...]:
    if not issubclass(kind, msgspec.Struct):
        return ()
    return tuple(field.name for field in msgspec.structs.fields(kind) if _may_hold(field.type))


def _may_hold(kind: object) -> bool:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind is BlobRef or bool(_names(kind))
    return any(_may_hold(item) for item in get_args(kind))
