"""Pairing over the link: the guest's side by any way, the person's by this machine's socket."""

from typing import cast

from sojourn.daemon.gate import Call
from sojourn.peers.shapes import Countered, Offered, Pairing, Revealed, Verdict, Window


async def open_window(call: Call) -> Pairing:
    """The person at this machine opens it for one other."""
    return call.house.meeting.open(cast(Window, call.asks))


async def close_window(call: Call) -> Pairing:
    """The person at this machine closes it."""
    return call.house.meeting.close()


async def state(call: Call) -> Pairing:
    """How far it is, with the code, for the person at this machine."""
    return call.house.meeting.state()


async def verdict(call: Call) -> Pairing:
    """The person at this machine compared the codes."""
    return call.house.meeting.decided(cast(Verdict, call.asks))


async def offer(call: Call) -> Countered:
    """A guest comes."""
    return call.house.meeting.offered(call.caller, cast(Offered, call.asks))


async def reveal(call: Call) -> Pairing:
    """The guest tells its nonce."""
    revealed = cast(Revealed, call.asks)
    return call.house.meeting.revealed(call.caller, call.path["pairing"], revealed)


async def ask(call: Call) -> Pairing:
    """The guest asks whether the person here decided."""
    return call.house.meeting.asked(call.caller, call.path["pairing"])
