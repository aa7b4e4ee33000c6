"""The pairing that the person at this machine opened it for: one at a time (docs/link.md#pairing).

Everything is in memory: a pairing that was not finished when the daemon ends never was.
"""

import secrets
from base64 import b64encode
from dataclasses import dataclass
from typing import Literal

from sojourn.daemon.door import Caller
from sojourn.daemon.refusal import Refused
from sojourn.peers.book import Book, Known
from sojourn.peers.pairing import Side, code, commitment, side
from sojourn.peers.shapes import (
    Countered,
    Offered,
    Pairing,
    Revealed,
    Verdict,
    Window,
)
from sojourn.ports import WallClock
from sojourn.ports_link import Certificate, Identity


@dataclass(slots=True, kw_only=True)
class _Guest:
    """Who came, and how far it got; `shown` is the code once there is one."""

    pairing: str
    caller: Caller
    offered: Offered
    own: Side
    shown: str = ""
    decided: bool | None = None


class Meeting:
    """Open for one guest at most; a guest that cheats closes it."""

    def __init__(
        self, *, identity: Identity, certificate: Certificate, book: Book, clock: WallClock
    ) -> None:
        self._identity = identity
        self._certificate = certificate
        self._book = book
        self._clock = clock
        self._window: Window | None = None
        self._guest: _Guest | None = None

    def open(self, window: Window) -> Pairing:
        """Let one other machine come; an earlier pairing is forgotten."""
        self._window, self._guest = window, None
        return self.state()

    def close(self) -> Pairing:
        """Nobody may come; a guest about whom it was decided may still ask what was."""
        self._window = None
        if self._guest is not None and self._guest.decided is None:
            self._guest = None
        return self.state()

    def state(self) -> Pairing:
        """How far it is, for the person at this machine."""
        guest = self._guest
        if guest is None:
            return Pairing(state="closed" if self._window is None else "open")
        return Pairing(
            state=_state(guest),
            code=guest.shown,
            machine=guest.caller.machine,
            name=guest.offered.name,
        )

    def offered(self, caller: Caller, offered: Offered) -> Countered:
        """Somebody comes. Raises: Refused."""
        window = self._window
        if window is None or self._guest is not None:
            raise _closed()
        own = Side(
            key=self._identity.public,
            certificate=self._certificate.der,
            nonce=secrets.token_hex(32),
        )
        pairing = secrets.token_hex(16)
        self._guest = _Guest(pairing=pairing, caller=caller, offered=offered, own=own)
        return Countered(
            pairing=pairing,
            name=window.own,
            certificate=b64encode(own.certificate).decode(),
            nonce=own.nonce,
        )

    def revealed(self, caller: Caller, pairing: str, revealed: Revealed) -> Pairing:
        """The nonce is told: it must be the one whose digest came first. Raises: Refused."""
        guest = self._of(caller, pairing)
        if guest.shown:
            raise _closed()
        try:
            other = side(
                key=caller.key, certificate=guest.offered.certificate, nonce=revealed.nonce
            )
        except ValueError:
            other = None
        if other is None or commitment(other) != guest.offered.commitment:
            self.close()
            raise Refused(
                "not_allowed",
                "the nonce is not the one whose digest came first",
                state="The pairing is over, and nobody was let in.",
                hint="Somebody may stand between the two machines.",
            )
        guest.shown = code(asks=other, answers=guest.own)
        return Pairing(state=_state(guest))

    def asked(self, caller: Caller, pairing: str) -> Pairing:
        """What the guest may know: whether the person here decided. Raises: Refused."""
        return Pairing(state=_state(self._of(caller, pairing)))

    def decided(self, verdict: Verdict) -> Pairing:
        """The person here compared the codes; when they agree the guest is let in from now on.

        Raises: Refused; UsageError `name_taken`; StorageError.
        """
        guest, window = self._guest, self._window
        if guest is None or window is None or not guest.shown or verdict.code != guest.shown:
            raise _closed()
        if guest.decided is None and verdict.agreed:
            self._book.add(
                Known(
                    name=window.name or guest.offered.name,
                    machine=guest.caller.machine,
                    key=guest.caller.key,
                    address=guest.offered.address,
                    certificate=guest.offered.certificate,
                    rights=window.rights,
                    capsules=window.capsules,
                    since=self._clock.now(),
                )
            )
        if guest.decided is None:
            guest.decided = verdict.agreed
        return self.state()

    def _of(self, caller: Caller, pairing: str) -> _Guest:
        guest = self._guest
        if guest is None or guest.pairing != pairing or guest.caller.machine != caller.machine:
            raise _closed()
        return guest


def _state(guest: _Guest) -> Literal["asked", "shown", "agreed", "refused"]:
    if guest.decided is not None:
        return "agreed" if guest.decided else "refused"
    return "shown" if guest.shown else "asked"


def _closed() -> Refused:
    return Refused(
        "pairing_closed",
        "this machine is not open for a pairing, or not for this one",
        state="Nothing was done.",
        hint="The person there opens it with `sojourn pair`, for one other machine.",
    )
