"""What is too large for a line, or holds lone surrogates, before it is written.

docs/format.md#blobs and #json are the specification. Works on any body: positions for text are
found by their types.
"""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import TypeAlias, cast, get_args

import msgspec

from sojourn.errors import LimitError
from sojourn.format import canon, layout
from sojourn.format.event import AnyBody
from sojourn.format.parts import BlobRef
from sojourn.ids import BlobId

TEXT_TYPE = "text/plain"
BODY_TYPE = "application/json"

WORTH_A_BLOB = 2 * layout.KIB
"""Bytes of the smallest text that a reference with its preview is shorter than."""

Change: TypeAlias = Callable[[str, bool], object]
"""Gives what stands for a string; True when it stands in a position for text."""


def mend(body: AnyBody) -> AnyBody:
    """The body with U+FFFD for each lone surrogate, and their number in `mended`."""
    count = 0

    def clean(text: str, position: bool) -> str:
        del position
        nonlocal count
        cleaned, lone = canon.mend_text(text)
        count += lone
        return cleaned

    mended = cast(AnyBody, _map(body, clean, text=False))
    return msgspec.structs.replace(mended, mended=count)


def shrink(body: AnyBody, blobs: dict[BlobId, bytes]) -> tuple[AnyBody, bytes]:
    """The body and its bytes once every long text is in a blob.

    Texts above 16 KiB go; then the largest until the body is small enough or none is left.
    """
    sizes: list[int] = []

    def measure(text: str, position: bool) -> str:
        if position:
            sizes.append(len(text.encode()))
        return text

    _map(body, measure, text=False)
    limit = layout.MAX_TEXT
    body = _spill(body, limit, blobs)
    data = canon.quick(body)
    smaller = sorted(size for size in sizes if WORTH_A_BLOB < size <= limit)
    while len(data) > layout.MAX_BODY and smaller:
        # The larger half each time: few rounds, and the largest go first.
        limit = smaller[len(smaller) // 2] - 1
        smaller = smaller[: len(smaller) // 2]
        body = _spill(body, limit, blobs)
        data = canon.quick(body)
    return body, data


def whole(data: bytes, salt: str, blobs: dict[BlobId, bytes]) -> bytes:
    """The body that stands for one that lies in a blob whole.

    Raises: LimitError `body_too_large`.
    """
    if len(data) > layout.MAX_LARGE:
        raise LimitError(f"a body of {len(data)} bytes", code="body_too_large")
    ref = keep(data, BODY_TYPE, "", blobs)
    return canon.quick({"large": ref, "salt": salt})


def keep(data: bytes, media_type: str, preview: str, blobs: dict[BlobId, bytes]) -> BlobRef:
    """The reference to a blob with these bytes, which are put with the others."""
    blob = BlobId(sha256(data).hexdigest())
    blobs[blob] = data
    return BlobRef(sha256=blob, size=len(data), media_type=media_type, preview=preview)


def _spill(body: AnyBody, limit: int, blobs: dict[BlobId, bytes]) -> AnyBody:
    def move(text: str, position: bool) -> object:
        if not position or len(text) * 4 <= limit:
            return text
        data = text.encode()
        if len(data) <= limit:
            return text
        return keep(data, TEXT_TYPE, text[: layout.MAX_PREVIEW], blobs)

    return cast(AnyBody, _map(body, move, text=False))


def _map(value: object, change: Change, *, text: bool) -> object:
    """The value with each string changed; what nothing changed in stays the same object."""
    match value:
        case str():
            return change(value, text)
        case msgspec.Struct():
            positions = _text_positions(type(value))
            changes: dict[str, object] = {}
            for name in value.__struct_fields__:
                old = cast(object, getattr(value, name))
                new = _map(old, change, text=name in positions)
                if new is not old:
                    changes[name] = new
            return msgspec.structs.replace(value, **changes) if changes else value
        case tuple():
            items = cast(tuple[object, ...], value)
            mapped = tuple(_map(item, change, text=False) for item in items)
            same = all(new is old for new, old in zip(mapped, items, strict=True))
            return items if same else mapped
        case dict():
            pairs = cast(dict[str, object], value)
            if not pairs:
                return pairs
            return {str(change(key, False)): _map(pairs[key], change, text=False) for key in pairs}
        case _:
            return value


@cache
def _text_positions(struct: type[msgspec.Struct]) -> frozenset[str]:
    """The names of the fields that may hold a string or a blob reference."""
    return frozenset(
        field.name
        for field in msgspec.structs.fields(struct)
        if {str, BlobRef} <= set(get_args(field.type))
    )
