"""What the daemon tells of this machine's capsules, and the messages it takes for them."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from importlib.metadata import version
from typing import Final, cast

from sojourn.agent import Machine, Place
from sojourn.agent.standing import standing_of
from sojourn.core.tenure import MayLook
from sojourn.daemon.gate import Call
from sojourn.errors import NotFoundError, SojournError
from sojourn.format.upgrade import READ_VERSION, WRITE_VERSION
from sojourn.peers import shapes
from sojourn.peers.limits import BEAT_SECONDS, PROTOCOL
from sojourn.ports import Store

FOLLOW_SECONDS: Final = 0.25
"""How often the length of a followed log is looked at."""

PASS: Final = 256 * 1024
"""Bytes of a log that are read at once."""


async def hello(call: Call) -> shapes.Hello:
    """Who is here."""
    house = call.house
    return shapes.Hello(
        protocol=PROTOCOL,
        version=version("sojourn"),
        machine=house.identity.machine,
        boot=house.boot,
        format_write=WRITE_VERSION,
        format_read=READ_VERSION,
    )


async def capsules(call: Call) -> shapes.Listing:
    """All capsules that the caller may see."""
    listed = await asyncio.to_thread(_all, _fresh(call.house.machine))
    limits = set(call.caller.known.capsules) if call.caller.known else set[str]()
    if call.caller.near or not limits:
        return shapes.Listing(capsules=listed)
    seen = tuple(one for one in listed if limits & {one.capsule, one.name})
    return shapes.Listing(capsules=seen)


async def message(call: Call) -> shapes.Taken:
    """A message for an agent, durable before the answer."""
    said = cast(shapes.Said, call.asks)
    place = await asyncio.to_thread(_place, call)

    def leave() -> shapes.Taken:
        # A machine of its own: the queue's connection belongs to one thread.
        machine = _fresh(call.house.machine)
        taken = asyncio.run(machine.send(place, said.text, request=said.request))
        return shapes.Taken(capsule=taken.capsule, request=taken.request, already=taken.already)

    return await asyncio.to_thread(leave)


async def log(call: Call) -> AsyncGenerator[bytes]:
    """The lines of a log from a byte on, as they are stored."""
    asked = cast(shapes.Log, call.asks)
    place = await asyncio.to_thread(_place, call)
    store = call.house.machine.ports.store_at(place.folder)
    return _lines(call, store, asked.start, follow=bool(asked.follow))


async def _lines(call: Call, store: Store, at: int, *, follow: bool) -> AsyncGenerator[bytes]:
    """Whole lines; an empty one now and then while nothing is added."""
    stop, quiet = call.house.stop, 0.0
    while not stop.is_set():
        data = await asyncio.to_thread(_whole, store, at)
        if data:
            at, quiet = at + len(data), 0.0
            yield data
            continue
        if not follow:
            return
        try:
            async with asyncio.timeout(FOLLOW_SECONDS):
                await stop.wait()
        except TimeoutError:
            quiet += FOLLOW_SECONDS
        if quiet >= BEAT_SECONDS:
            quiet = 0.0
            yield b"\n"


def _whole(store: Store, at: int) -> bytes:
    """Whole lines from a byte on: some, one long one, or none yet."""
    size = store.size()
    end, data = at, b""
    while end < size:
        start, end = end, min(end + PASS, size)
        data += b"".join(store.read_log(start, end))
        cut = data.rfind(b"\n") + 1
        if cut:
            return data[:cut]
    return b""


def _place(call: Call) -> Place:
    """The capsule that the path names. Raises: NotFoundError; Refused."""
    wanted = call.path["capsule"]
    for place in _fresh(call.house.machine).places():
        if place.capsule == wanted:
            call.caller.check_capsule(place.capsule, place.name)
            return place
    raise NotFoundError(
        f"there is no capsule {wanted[:12]} on this machine",
        code="no_capsule",
        state="Nothing was done.",
        hint="`sojourn ps -a --remote` lists those that are there.",
    )


def _fresh(machine: Machine) -> Machine:
    return Machine(machine.environment)


def _all(machine: Machine) -> tuple[shapes.Listed, ...]:
    return tuple(_rows(machine))


def _rows(machine: Machine) -> Iterator[shapes.Listed]:
    for place in machine.places():
        try:
            yield _row(machine, place)
        except (OSError, SojournError) as failure:
            code = failure.code if isinstance(failure, SojournError) else "unreadable"
            yield shapes.Listed(
                capsule=place.capsule,
                name=place.name,
                folder=place.folder,
                standing="damaged",
                model=None,
                held_by=None,
                events=0,
                last_time=None,
                waiting=0,
                reason=shapes.Fault(code=code, message=str(failure)),
            )


def _row(machine: Machine, place: Place) -> shapes.Listed:
    look = machine.look(place)
    held, why = look.held_by, look.admission
    return shapes.Listed(
        capsule=place.capsule,
        name=place.name,
        folder=place.folder,
        standing=standing_of(look),
        model=look.model,
        held_by=None
        if held is None
        else shapes.HeldBy(pid=held.pid, since=held.since, command=held.command),
        events=look.events,
        last_time=look.last_time,
        waiting=look.waiting,
        reason=shapes.Fault(code=why.code, message=why.message)
        if isinstance(why, MayLook)
        else None,
    )
