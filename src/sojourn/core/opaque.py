"""Tells bytes whose text cannot be seen in them: compressed, enciphered, or in wide characters.

What is searched for in texts is not found in those (docs/format.md#scan).
"""

from typing import Final, Literal, TypeAlias

Opaque: TypeAlias = Literal["compressed", "enciphered", "in wide characters"]

START: Final = 32
"""So many bytes at the beginning are enough to tell."""

_BEGINNINGS: Final[tuple[tuple[bytes, Opaque], ...]] = (
    (b"\x1f\x8b", "compressed"),
    (b"PK\x03\x04", "compressed"),
    (b"BZh", "compressed"),
    (b"\xfd7zXZ\x00", "compressed"),
    (b"(\xb5/\xfd", "compressed"),
    (b"\x04\x22M\x18", "compressed"),
    (b"7z\xbc\xaf\x27\x1c", "compressed"),
    (b"Rar!\x1a\x07", "compressed"),
    (b"%PDF-", "compressed"),
    (b"PACK\x00\x00\x00", "compressed"),
    (b"age-encryption.org/", "enciphered"),
    (b"-----BEGIN AGE ENCRYPTED", "enciphered"),
    (b"-----BEGIN PGP MESSAGE", "enciphered"),
    (b"Salted__", "enciphered"),
    (b"LUKS\xba\xbe", "enciphered"),
    (b"\xff\xfe", "in wide characters"),
    (b"\xfe\xff", "in wide characters"),
)

_ZLIB: Final = frozenset((b"\x78\x01", b"\x78\x9c", b"\x78\xda"))
"""How the objects of a git repository begin."""


def opaque(start: bytes) -> Opaque | None:
    """What hides the text of a file that begins so; None where nothing is known to.

    Pictures and other programs' own formats are not told apart from text.
    """
    for beginning, kind in _BEGINNINGS:
        if start.startswith(beginning):
            return kind
    return "compressed" if start[:2] in _ZLIB else None
