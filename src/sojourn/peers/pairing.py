"""The code that two people compare when their machines meet for the first time.

Who stands between the two has other keys than they have. It could choose its own nonces so that the
codes agree only if it knew the nonce of the one who asks before it must tell its own: but of that
one only the digest is told first. So a wrong pairing is seen, but for one try in 10**8
(docs/link.md#pairing).
"""

from base64 import b64decode
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

DIGITS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two: its raw public key, its certificate in DER, and its nonce in hex."""

    key: bytes
    certificate: bytes
    nonce: str


def commitment(side: Side) -> str:
    """What the one who asks tells first; it binds key and certificate too."""
    return sha256(b"sojourn.pairing.commitment/1\n" + _line(side)).hexdigest()


def code(*, asks: Side, answers: Side) -> str:
    """What both screens show: `1234 5678`."""
    data = b"sojourn.pairing.code/1\n" + _line(asks) + _line(answers)
    number = int.from_bytes(sha256(data).digest(), "big") % 10**DIGITS
    text = f"{number:0{DIGITS}d}"
    return f"{text[: DIGITS // 2]} {text[DIGITS // 2 :]}"


def side(*, key: str, certificate: str, nonce: str) -> Side:
    """A side from what is on the link, where bytes are in base64. Raises: ValueError."""
    return Side(
        key=b64decode(key, validate=True),
        certificate=b64decode(certificate, validate=True),
        nonce=nonce,
    )


def _line(side: Side) -> bytes:
    """Fixed lengths, so that no two different sides have the same bytes."""
    certificate = sha256(side.certificate).hexdigest()
    return f"{sha256(side.key).hexdigest()} {certificate} {side.nonce}\n".encode()
