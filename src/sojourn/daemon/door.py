"""Who may come in: signatures, this start's nonce, no request twice, paired machines by TLS.

docs/link.md#admission is the specification, in the order of the checks here.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sojourn.daemon.origin import Origin
from sojourn.daemon.refusal import Refused
from sojourn.ids import MachineId
from sojourn.peers.book import Book, Known
from sojourn.peers.limits import NONCES
from sojourn.peers.shapes import Right
from sojourn.peers.signing import ANYONE, Asked, is_signed
from sojourn.ports_link import Identity

Need: TypeAlias = Right | Literal["anyone", "paired", "near"]
"""What a path wants: a right, or nothing, to be paired at all, to be on this machine's socket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whose request it is; `known` is None for one that came by the unix socket unintroduced."""

    machine: MachineId
    key: str
    near: bool
    known: Known | None
    pin: str = ""

    def check_capsule(self, *names: str) -> None:
        """Nothing, unless the caller is limited to other capsules. Raises: Refused."""
        limits = () if self.near or self.known is None else self.known.capsules
        if limits and not set(limits) & set(names):
            raise Refused(
                "not_allowed",
                "this machine lets the other one at some capsules only, and not at this one",
                state="Nothing was done.",
                hint="The person there can pair the two again with other limits.",
            )

    @property
    def address(self) -> str:
        """Where it can be reached, as far as this machine knows."""
        return "" if self.known is None else self.known.address


class Door:
    """Checks requests of one start of the daemon, whose nonce is `boot`."""

    def __init__(self, *, identity: Identity, boot: str, book: Book) -> None:
        self._identity = identity
        self._boot = boot
        self._book = book
        self._seen: dict[str, None] = {}

    def admit(
        self,
        asked: Asked | None,
        headers: Mapping[str, str],
        origin: Origin,
        *,
        need: Need,
        body: str,
        to_anyone: bool = False,
    ) -> Caller:
        """Whose request it is, when it may be done; `body` is what its body really is.

        `to_anyone` allows a request by who does not know this machine yet. Raises: Refused.
        """
        if asked is None:
            raise Refused("unsigned", "the request does not say whose it is")
        if not is_signed(asked, headers, self._identity):
            raise Refused("signature_wrong", "the signature is not that of the key beside it")
        if asked.body != body:
            raise Refused("signature_wrong", "the body is not the one that was signed")
        self._check_target(asked, to_anyone=to_anyone)
        caller = self._caller(asked, origin)
        _check_need(caller, need)
        self._once(asked)
        return caller

    def _check_target(self, asked: Asked, *, to_anyone: bool) -> None:
        if to_anyone and asked.to == asked.boot == ANYONE:
            return
        if asked.to != self._identity.machine:
            raise Refused(
                "wrong_machine", "the request is for another machine", state="Nothing was done."
            )
        if asked.boot != self._boot:
            raise Refused(
                "stale_boot",
                "the request is for an earlier start of this daemon",
                state="Nothing was done.",
                hint="Ask who is there, and send it again.",
            )

    def _caller(self, asked: Asked, origin: Origin) -> Caller:
        machine = asked.machine
        known = self._book.of(machine)
        if origin.near:
            if origin.uid not in (None, 0, os.getuid()):
                raise Refused("not_allowed", "the socket is for this account alone")
            return Caller(machine=machine, key=asked.key, near=True, known=known)
        fits = known is not None and known.pin != "" and known.pin == origin.pin
        return Caller(
            machine=machine,
            key=asked.key,
            near=False,
            known=known if fits else None,
            pin=origin.pin,
        )

    def _once(self, asked: Asked) -> None:
        """A request that was admitted before is not done again.

        Only so many are remembered; what older ones ask for is the same when it is done twice.
        """
        name = f"{asked.key} {asked.nonce}"
        if name in self._seen:
            raise Refused("replayed", "this request was done before", state="Nothing was done.")
        self._seen[name] = None
        if len(self._seen) > NONCES:
            del self._seen[next(iter(self._seen))]


def _check_need(caller: Caller, need: Need) -> None:
    if need == "anyone" or caller.near:
        return
    if need == "near":
        raise Refused("not_allowed", "this is only for the machine's own commands")
    if caller.known is None:
        raise Refused(
            "not_paired",
            "this machine does not know the other one",
            state="Nothing was done.",
            hint="`sojourn pair` introduces the two; both people compare a code.",
        )
    if need != "paired" and need not in caller.known.rights:
        raise Refused(
            "not_allowed",
            f"this machine does not let the other one {_words(need)}",
            state="Nothing was done.",
            hint="The person there can pair the two again with that right.",
        )


def _words(need: Right) -> str:
    words = {"look": "see its capsules", "send": "send messages", "move": "move capsules to it"}
    return words[need]
