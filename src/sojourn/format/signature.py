"""Signatures of sealed manifests as bytes: armored SSHSIG (docs/format.md#signature)."""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from dataclasses import dataclass
from hashlib import sha256, sha512
from typing import Final, NoReturn

from sojourn.errors import FormatError
from sojourn.format import layout

NAMESPACE: Final = "sojourn-capsule@v1"
HASH: Final = "sha512"

_MAGIC: Final = b"SSHSIG"
_COLUMNS: Final = 70
_ARMOR: Final = re.compile(
    rb"-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END SSH SIGNATURE-----\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a signature says of itself; whether it is good only a key can tell.

    `key` is the public key as SSH encodes it, `kind` its type, `fingerprint` as ssh-keygen -l
    prints it.
    """

    key: bytes
    kind: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A signature that was checked; `principal` is who made it by the list of allowed signers.

    None for `principal` when no list was given: then any key may have made it.
    """

    fingerprint: str
    kind: str
    principal: str | None


def load(data: bytes) -> Signature:
    """The signature in the bytes of `manifest.json.sig`.

    Raises: FormatError `signature_malformed` or `signature_namespace`.
    """
    found = _ARMOR.fullmatch(data) if len(data) <= layout.MAX_SIGNATURE else None
    if found is None:
        _malformed()
    try:
        packed = b64decode(re.sub(rb"[\r\n]", b"", found[1]), validate=True)
    except NotBase64:
        _malformed()
    if packed[:10] != _MAGIC + b"\0\0\0\1":
        _malformed()
    fields = _strings(packed[10:])
    if len(fields) != 5 or not (kinds := _strings(fields[0], whole=False)):
        _malformed()
    key, namespace, _, digest, _ = fields
    if namespace != NAMESPACE.encode():
        raise FormatError(
            f"the signature is for another use: {namespace.decode('utf-8', 'replace')!r}, "
            f"not {NAMESPACE!r}",
            code="signature_namespace",
            hint="Whoever sealed the capsule must sign it with `sojourn sign`.",
            file=layout.SIGNATURE,
        )
    if digest != HASH.encode():
        _malformed()
    return Signature(
        key=key,
        kind=kinds[0].decode("ascii", "replace"),
        fingerprint="SHA256:" + b64encode(sha256(key).digest()).decode().rstrip("="),
    )


def to_sign(manifest: bytes) -> bytes:
    """What a key signs to sign a manifest."""
    parts = (NAMESPACE.encode(), b"", HASH.encode(), sha512(manifest).digest())
    return _MAGIC + b"".join(map(string, parts))


def armored(*, key: bytes, signature: bytes) -> bytes:
    """The file of a signature; both arguments as SSH encodes them."""
    parts = (key, NAMESPACE.encode(), b"", HASH.encode(), signature)
    packed = b64encode(_MAGIC + b"\0\0\0\1" + b"".join(map(string, parts))).decode()
    lines = [packed[at : at + _COLUMNS] for at in range(0, len(packed), _COLUMNS)]
    text = "\n".join(("-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----"))
    return text.encode() + b"\n"


def string(data: bytes) -> bytes:
    """A string as SSH encodes it: its length in four bytes, and its bytes."""
    return len(data).to_bytes(4, "big") + data


def _strings(data: bytes, *, whole: bool = True) -> list[bytes]:
    """The strings that follow each other; none when they do not fill the data as they should."""
    found: list[bytes] = []
    while data:
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 + size:
            return [] if whole else found
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


def _malformed() -> NoReturn:
    raise FormatError(
        "the signature is not one that ssh-keygen could have made",
        code="signature_malformed",
        hint="Get the archive again from where it came from, or have it signed again.",
        file=layout.SIGNATURE,
    )
