"""Pairing as two people see it: one waits, one goes, both compare a code (docs/link.md#pairing).

What either person says counts for their own machine alone.
"""

from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from sojourn.agent.links import book_of, certificate_of, identity_of, link_to, socket_of
from sojourn.agent.machine import Machine
from sojourn.errors import PeerError, SojournError, UsageError
from sojourn.ids import machine_id
from sojourn.peers.book import Book, Known
from sojourn.peers.connect import Connector
from sojourn.peers.link import Link
from sojourn.peers.pairing import Side, code, commitment, side
from sojourn.peers.places import Near, Ssh, Tls, read_way
from sojourn.peers.shapes import (
    Countered,
    Offered,
    Pairing,
    Revealed,
    Right,
    Verdict,
    Window,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a person wants of a pairing: names for both, and what the other machine may do here.

    `name` is what the other one is called here (empty: what it calls itself), `own` what this one
    calls itself; `address` is where this one can be reached by TLS, empty when it cannot be.
    """

    own: str
    name: str = ""
    address: str = ""
    rights: tuple[Right, ...] = ()
    capsules: tuple[str, ...] = ()


class Going:
    """At the machine that waits: the code is known, and nothing is decided."""

    def __init__(
        self, machine: Machine, link: Link, *, pairing: str, shown: str, other: Known
    ) -> None:
        self._machine = machine
        self._link = link
        self._pairing = pairing
        self.shown = shown
        self.other = other

    def agree(self) -> Known:
        """The person here saw the same code there. Raises: UsageError `name_taken`."""
        book_of(self._machine).add(self.other)
        return self.other

    async def there(self) -> Literal["waiting", "agreed", "refused"]:
        """What the other person said by now. Raises: PeerError."""
        pairing = await self._link.call("GET", f"/v1/pairings/{self._pairing}", Pairing)
        if pairing.state == "agreed" or pairing.state == "refused":
            return pairing.state
        return "waiting"


@asynccontextmanager
async def going(machine: Machine, host: str, wishes: Wishes) -> AsyncGenerator[Going]:
    """Go to the machine that waits at `host` and find out the code.

    Raises: PeerError, also `wrong_machine` when two answer there; UsageError.
    """
    way = read_way(host) or read_way(f"https://{host}")
    if isinstance(way, Ssh) or way is None:
        raise UsageError(
            "machines that reach each other by ssh need no pairing",
            code="pairing_needless",
            state="Nothing was sent.",
            hint=f"`sojourn remote add NAME {host}` gives it a name.",
        )
    identity, own = identity_of(machine), certificate_of(machine)
    link = Link(
        way,
        Connector(way),
        identity=identity,
        expected=None,
        token=machine.ports.randomness.token,
    )
    try:
        nonce = machine.ports.randomness.token(32).hex()
        mine = Side(key=identity.public, certificate=own.der, nonce=nonce)
        offered = Offered(
            name=wishes.own,
            address=wishes.address,
            certificate=b64encode(own.der).decode(),
            commitment=commitment(mine),
        )
        countered = await link.call("POST", "/v1/pairings", Countered, offered)
        other = _checked(link, countered, tls=isinstance(way, Tls))
        target = f"/v1/pairings/{countered.pairing}/nonce"
        await link.call("POST", target, Pairing, Revealed(nonce=nonce))
        known = Known(
            name=wishes.name or countered.name,
            machine=machine_id(other.key),
            key=link.key,
            address=str(way),
            certificate=countered.certificate,
            rights=wishes.rights,
            capsules=wishes.capsules,
            since=machine.ports.clock.now(),
        )
        shown = code(asks=mine, answers=other)
        yield Going(machine, link, pairing=countered.pairing, shown=shown, other=known)
    finally:
        await link.aclose()


def _checked(link: Link, countered: Countered, *, tls: bool) -> Side:
    """The other side, whose certificate must be the one that it spoke with."""
    try:
        other = side(key=link.key, certificate=countered.certificate, nonce=countered.nonce)
    except ValueError:
        other = None
    if other is None or (tls and other.certificate != link.seen):
        raise PeerError(
            f"{link.way} speaks with another certificate than it shows",
            code="wrong_machine",
            state="Nothing was kept.",
            hint="Somebody may stand between the two machines.",
        )
    return other


class Waiting:
    """This machine is open for one other; `decide` says what the person here saw."""

    def __init__(self, link: Link, book: Book) -> None:
        self._link = link
        self._book = book

    async def state(self) -> Pairing:
        """How far it is. Raises: PeerError."""
        return await self._link.call("GET", "/v1/pairing", Pairing)

    async def decide(self, shown: str, *, agreed: bool) -> Known | None:
        """Let the other machine in, or not. Raises: PeerError."""
        verdict = Verdict(code=shown, agreed=agreed)
        pairing = await self._link.call("POST", "/v1/pairing/verdict", Pairing, verdict)
        found = (one for one in self._book.known() if one.machine == pairing.machine)
        return next(found, None) if agreed else None


@asynccontextmanager
async def waiting(machine: Machine, wishes: Wishes) -> AsyncGenerator[Waiting]:
    """Open this machine's daemon, which runs, for one other machine; closed again at the end.

    Raises: PeerError.
    """
    way = Near(socket_of(machine))
    link = Link(
        way,
        Connector(way),
        identity=identity_of(machine),
        expected=machine.ports.key.machine(),
        token=machine.ports.randomness.token,
    )
    window = Window(
        own=wishes.own, name=wishes.name, rights=wishes.rights, capsules=wishes.capsules
    )
    try:
        await link.call("POST", "/v1/pairing", Pairing, window)
        yield Waiting(link, book_of(machine))
    finally:
        with suppress(SojournError):
            await link.call("DELETE", "/v1/pairing", Pairing)
        await link.aclose()


async def introduced(machine: Machine, name: str, address: str) -> Known:
    """Keep the machine at `address` under `name`, with its key; what a pairing gave it stays.

    Raises: PeerError; UsageError `address_refused`, `name_taken`, `name_refused`.
    """
    way, book = read_way(address), book_of(machine)
    if way is None:
        raise UsageError(
            f"{address} is no address of a machine",
            code="address_refused",
            state="Nothing was kept.",
            hint="Write user@host, ssh://user@host:port or https://host:port.",
        )
    earlier = next((one for one in book.known() if one.name == name), None)
    link = link_to(machine, way, earlier)
    try:
        hello = await link.hello()
    finally:
        await link.aclose()
    before = earlier or book.of(hello.machine)
    known = Known(
        name=name,
        machine=hello.machine,
        key=link.key,
        address=str(way),
        certificate=before.certificate if before else "",
        rights=before.rights if before else (),
        capsules=before.capsules if before else (),
        since=machine.ports.clock.now(),
    )
    book.add(known)
    return known
