"""What the commands that carry capsules share: progress, seals and signatures in words."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sojourn.cli.people import size
from sojourn.cli.voice import Painted, Voice
from sojourn.drive.observe import Unwatched

if TYPE_CHECKING:
    from sojourn.cli.shapes_archive import SealShape, SignatureShape
    from sojourn.format.manifest import Manifest
    from sojourn.format.signature import Signed

EACH: Final = 0.2
"""Seconds between two words about progress on a terminal."""


class Noting(Unwatched):
    """Tells people what the runtime did while the capsule was opened."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice

    def note(self, text: str) -> None:
        self._voice.talk(text)


def progress(voice: Voice, doing: str) -> Callable[[int, int], None] | None:
    """Tells a terminal how far it is; None where nobody sees it."""
    if voice.settings.quiet or voice.settings.json or not voice.err.terminal:
        return None
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last < EACH and (done < total or not total):
            return
        last = time.monotonic()
        voice.err.erase()
        of = f" of {size(total)}" if total else ""
        voice.err.put(Painted(f"{doing} {size(done)}{of}", "dim"))
        if total and done >= total:
            voice.err.erase()

    return tell


def seal_shape(found: "Manifest | None", digest: str) -> "SealShape | None":
    """The seal as --json names it."""
    from sojourn.cli.shapes_archive import SealShape

    if found is None or found.seal is None:
        return None
    return SealShape(
        number=found.seal.number,
        purpose=found.seal.purpose,
        without_workspace=found.seal.without_workspace,
        manifest=digest,
    )


def signature_shape(signed: "Signed | None") -> "SignatureShape | None":
    """The signature as --json names it."""
    from sojourn.cli.shapes_archive import SignatureShape

    if signed is None:
        return None
    return SignatureShape(
        fingerprint=signed.fingerprint, kind=signed.kind, principal=signed.principal
    )


def said_of(seal: "SealShape") -> str:
    """A seal in words."""
    without = ", without its workspace" if seal.without_workspace else ""
    return f"seal {seal.number}, for {seal.purpose}{without}"


def signed_by(signature: "SignatureShape | None") -> tuple[str | Painted, ...]:
    """Who signed, in words."""
    if signature is None:
        return ("nobody",)
    key = f"{signature.kind} {signature.fingerprint}"
    if signature.principal is None:
        return (key, Painted("  (no list of allowed signers was given)", "dim"))
    return (Painted(signature.principal, "good"), f"  {key}")


def confirmed(voice: Voice, question: str) -> bool | None:
    """Whether the person at the terminal says yes; None when nobody sits there."""
    if voice.settings.json or not voice.err.terminal or not sys.stdin.isatty():
        return None
    voice.err.put(Painted("? ", "alarm"), Painted(question, "bold"), " [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
