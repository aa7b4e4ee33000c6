"""Other machines, from this one: its key, the machines it knows, and a way to speak to them."""

import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from sojourn.agent.machine import Machine
from sojourn.errors import PeerError
from sojourn.ids import MachineId
from sojourn.keys.certificate import FileCertificate
from sojourn.keys.identity import KeyIdentity
from sojourn.keys.machine import FileMachineKey
from sojourn.peers.book import Book, Known
from sojourn.peers.connect import Connector
from sojourn.peers.link import Link
from sojourn.peers.near import NAME
from sojourn.peers.peer import LinkPeer
from sojourn.peers.places import Tls, Way, read_way
from sojourn.store.disk import OsDisk
from sojourn.store.durable import Durable
from sojourn.store.system import host_digest

SSH_VARIABLE: Final = "SOJOURN_SSH"
"""The program that stands for ssh, with its options, as a shell would read it."""


def identity_of(machine: Machine) -> KeyIdentity:
    """The machine's key, to sign with."""
    files = Durable(OsDisk())
    return KeyIdentity(FileMachineKey(machine.home, files=files, host=host_digest()))


def certificate_of(machine: Machine) -> FileCertificate:
    """The machine's certificate for TLS. Raises: as the machine's id does."""
    files = Durable(OsDisk())
    return FileCertificate(machine.home, files=files, machine=machine.ports.key.machine())


def book_of(machine: Machine) -> Book:
    """The machines that this one knows."""
    return Book(folder=machine.home, files=Durable(OsDisk()))


def socket_of(machine: Machine) -> str:
    """The path of the socket of this machine's daemon."""
    return f"{machine.home}/{NAME}"


def place_of(machine: Machine, where: str) -> tuple[Way, Known | None]:
    """The machine that `where` names or addresses, and what is known of it.

    Raises: UsageError `address_refused`; NotFoundError `remote_unknown`; FormatError.
    """
    way, book = read_way(where), book_of(machine)
    if way is None:
        known = book.named(where)
        named = read_way(known.address)
        if named is None:
            raise PeerError(
                f"{where} can come here, but it is not known where it is",
                code="address_unknown",
                state="Nothing was sent.",
                hint=f"`sojourn remote add {where} ADDRESS` says where.",
            )
        return named, known
    return way, next((one for one in book.known() if one.address == str(way)), None)


def link_to(
    machine: Machine, way: Way, known: Known | None, *, expected: MachineId | None = None
) -> Link:
    """A link that is not used yet; only the known or `expected` machine counts.

    Raises: PeerError `not_paired` for TLS to a machine that was never paired.
    """
    if isinstance(way, Tls) and (known is None or not known.pin):
        raise PeerError(
            f"{way} is not paired with this machine",
            code="not_paired",
            state="Nothing was sent.",
            hint=f"`sojourn pair {way}` introduces the two; both people compare a code.",
        )
    own = certificate_of(machine) if isinstance(way, Tls) else None
    ssh = tuple(shlex.split(machine.environment.get(SSH_VARIABLE, ""))) or ("ssh",)
    connector = Connector(way, pin=known.pin if known else "", own=own, ssh=ssh)
    return Link(
        way,
        connector,
        identity=identity_of(machine),
        expected=expected or (known.machine if known else None),
        token=machine.ports.randomness.token,
    )


@asynccontextmanager
async def open_peer(
    machine: Machine, where: str, *, expected: MachineId | None = None
) -> AsyncGenerator[LinkPeer]:
    """The machine at a name or address, which has proved who it is; closed at the end.

    With `expected` only that machine counts. Raises: PeerError; UsageError; NotFoundError.
    """
    way, known = place_of(machine, where)
    if known is None and expected is not None:
        known = book_of(machine).of(expected)
    peer = await LinkPeer.open(link_to(machine, way, known, expected=expected))
    try:
        yield peer
    finally:
        await peer.aclose()
