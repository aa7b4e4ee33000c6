"""Who says a request or an answer: signatures over what it says (docs/link.md#signatures).

So identity does not hang on the way by which two machines talk, a request of an earlier start is
not done again, and an answer is that of the right machine to the very request that was sent.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from sojourn.ids import MachineId, machine_id
from sojourn.ports_link import Identity

KEY: Final = "sojourn-key"
TO: Final = "sojourn-to"
BOOT: Final = "sojourn-boot"
NONCE: Final = "sojourn-nonce"
BODY: Final = "sojourn-body"
SIGNATURE: Final = "sojourn-signature"

ANYONE: Final = "-"
"""In `sojourn-to` and `sojourn-boot`: the sender does not know yet whom it speaks to."""

STREAMED: Final = "stream"
"""In `sojourn-body`: the body's parts prove themselves and are not signed."""

_KEY: Final = re.compile(r"[A-Za-z0-9+/]{43}=")
_SIGNATURE: Final = re.compile(r"[A-Za-z0-9+/]{86}==")
_TO: Final = re.compile(r"[0-9a-f]{64}|-")
_NONCE: Final = re.compile(r"[0-9a-f]{32}")
_BOOT: Final = re.compile(r"[0-9a-f]{32}|-")
_BODY: Final = re.compile(r"[0-9a-f]{64}|stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the signature of a request covers; `target` is the path with its query."""

    method: str
    target: str
    key: str
    to: str
    boot: str
    nonce: str
    body: str

    @property
    def machine(self) -> MachineId:
        """Whose key it is."""
        return machine_id(b64decode(self.key))

    def signed(self) -> bytes:
        """The bytes that are signed."""
        parts = (self.method, self.target, self.key, self.to, self.boot, self.nonce, self.body)
        return "\n".join(("sojourn.request/1", *parts)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the signature of an answer covers; `request` is the sha256 of what was asked."""

    request: str
    status: int
    key: str
    boot: str
    body: str

    @property
    def machine(self) -> MachineId:
        """Whose key it is."""
        return machine_id(b64decode(self.key))

    def signed(self) -> bytes:
        """The bytes that are signed."""
        parts = (self.request, str(self.status), self.key, self.boot, self.body)
        return "\n".join(("sojourn.answer/1", *parts)).encode()


def digest(body: bytes) -> str:
    """What `sojourn-body` says of a body."""
    return sha256(body).hexdigest()


def ask_headers(asked: Asked, identity: Identity) -> dict[str, str]:
    """The headers of a request."""
    return {
        KEY: asked.key,
        TO: asked.to,
        BOOT: asked.boot,
        NONCE: asked.nonce,
        BODY: asked.body,
        SIGNATURE: b64encode(identity.sign(asked.signed())).decode(),
    }


def answer_headers(
    asked: Asked | None, *, status: int, boot: str, body: str, identity: Identity
) -> dict[str, str]:
    """The headers of an answer; `asked` is None for a request that said nothing of itself."""
    request = ANYONE if asked is None else digest(asked.signed())
    key = b64encode(identity.public).decode()
    answered = Answered(request=request, status=status, key=key, boot=boot, body=body)
    return {
        KEY: key,
        BOOT: boot,
        BODY: body,
        SIGNATURE: b64encode(identity.sign(answered.signed())).decode(),
    }


def read_asked(method: str, target: str, headers: Mapping[str, str]) -> Asked | None:
    """What a request says of itself; None when a header is missing or malformed."""
    key, to, boot = (headers.get(name, "") for name in (KEY, TO, BOOT))
    nonce, body = headers.get(NONCE, ""), headers.get(BODY, "")
    forms = ((_KEY, key), (_TO, to), (_BOOT, boot), (_NONCE, nonce), (_BODY, body))
    if not all(form.fullmatch(text) for form, text in forms) or not target.isascii():
        return None
    return Asked(method=method, target=target, key=key, to=to, boot=boot, nonce=nonce, body=body)


def read_answered(asked: Asked, status: int, headers: Mapping[str, str]) -> Answered | None:
    """What an answer says of itself; None when a header is missing or malformed."""
    key, boot, body = (headers.get(name, "") for name in (KEY, BOOT, BODY))
    forms = ((_KEY, key), (_NONCE, boot), (_BODY, body))
    if not all(form.fullmatch(text) for form, text in forms):
        return None
    return Answered(request=digest(asked.signed()), status=status, key=key, boot=boot, body=body)


def is_signed(what: Asked | Answered, headers: Mapping[str, str], identity: Identity) -> bool:
    """Whether the signature beside it is that of the key in it."""
    text = headers.get(SIGNATURE, "")
    if not _SIGNATURE.fullmatch(text):
        return False
    try:
        key, signature = b64decode(what.key, validate=True), b64decode(text, validate=True)
    except NotBase64:
        return False
    return identity.verify(key, signature, what.signed())
