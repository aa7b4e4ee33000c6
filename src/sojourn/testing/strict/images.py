"""Images in a request: valid base64, of the type they claim, within the provider's sizes."""

import base64
import binascii
import struct
from typing import Final

from sojourn.testing.strict.refusal import Path, Refused, Rule

_MAGIC: Final = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}

MEDIA_TYPES: Final = tuple(_MAGIC)
"""The media types that both APIs take."""


def check_image(data: str, media_type: str, path: Path) -> bytes:
    """The bytes of an inline image.

    Raises: Refused with `image_type`, `image_empty` or `image_base64`.
    """
    if media_type not in _MAGIC:
        options = ", ".join(f"'{one}'" for one in MEDIA_TYPES)
        raise Refused(Rule.IMAGE_TYPE, f"Input should be one of {options}", path=path)
    if not data:
        raise Refused(Rule.IMAGE_EMPTY, "image cannot be empty", path=path)
    try:
        body = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(Rule.IMAGE_BASE64, "invalid base64 data", path=path) from None
    if not body.startswith(_MAGIC[media_type]):
        raise Refused(Rule.IMAGE_TYPE, f"the image does not appear to be {media_type}", path=path)
    return body


def pixels(body: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG or a GIF; None for what is not measured here."""
    if body.startswith(_MAGIC["image/png"]) and len(body) >= 24:
        width, height = struct.unpack(">II", body[16:24])
        return width, height
    if body.startswith(_MAGIC["image/gif"]) and len(body) >= 10:
        width, height = struct.unpack("<HH", body[6:10])
        return width, height
    return None
