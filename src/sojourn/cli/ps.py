"""`sojourn ps`: the capsules of this machine."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import (
    STANDINGS,
    held_shape,
    reason_of,
    shape_of,
    standing_of,
)
from sojourn.cli.group import Command
from sojourn.cli.people import ago, counted, table
from sojourn.cli.remotes import close_by, remote_option, row_shape
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Machine, Place
    from sojourn.cli.shapes import ListedShape


@click.command(
    "ps",
    cls=Command,
    examples=["sojourn ps", "sojourn ps -a", "sojourn ps --remote box", "sojourn ps --json"],
)
@click.option("-a", "--all", "everything", is_flag=True, help="Those that rest, too.")
@remote_option()
@click.pass_obj
def command(settings: Settings, everything: bool, remote: str | None) -> None:
    """List the capsules of this machine that run, wait or need somebody; with -a all of them."""
    from sojourn.agent import Machine
    from sojourn.cli.shapes import PsAnswer

    machine = Machine()
    names: dict[str, str] = {}
    if remote is None:
        places = machine.places()
        listed = [_listed(machine, place) for place in places]
        names = {place.folder: machine.reference(place, places) for place in places}
    else:
        listed = _listed_there(machine, remote)
    shown = [row for row in listed if everything or row.standing != "resting"]
    voice, resting = Voice(settings), len(listed) - len(shown)
    if settings.json:
        voice.answer(PsAnswer(capsules=tuple(shown), resting=resting))
        return
    if shown:
        head = ("NAME", "STATE", "MODEL", "HELD BY", "EVENTS", "LAST EVENT", "WAITING")
        named = [(row, names.get(row.capsule.folder, row.capsule.name)) for row in shown]
        table(voice.out, head, [_row(row, name) for row, name in named])
    more = "" if remote is None else f" --remote {remote}"
    if resting:
        voice.talk(Painted(f"{counted(resting, 'capsule')} at rest: sojourn ps -a{more}", "dim"))
    elif not listed and remote is None:
        voice.talk("no capsules here yet; make one with  sojourn init -n NAME")
    elif not listed:
        voice.talk("no capsules there")


def _listed_there(machine: "Machine", remote: str) -> "list[ListedShape]":
    """The rows of another machine, as it says them."""
    import asyncio

    from sojourn.agent.links import open_peer

    async def ask() -> "list[ListedShape]":
        async with open_peer(machine, close_by(remote, machine)) as peer:
            return [row_shape(one) for one in (await peer.capsules()).capsules]

    return asyncio.run(ask())


def _listed(machine: "Machine", place: "Place") -> "ListedShape":
    """One row; what cannot be read at all is a row too."""
    from sojourn.cli.shapes import FaultShape, ListedShape
    from sojourn.errors import SojournError

    try:
        look = machine.look(place)
    except (OSError, SojournError) as failure:
        code = failure.code if isinstance(failure, SojournError) else "unreadable"
        return ListedShape(
            capsule=shape_of(place),
            standing="damaged",
            model=None,
            held_by=None,
            events=0,
            last_time=None,
            waiting=0,
            reason=FaultShape(code=code, message=str(failure)),
        )
    return ListedShape(
        capsule=shape_of(place),
        standing=standing_of(look),
        model=look.model,
        held_by=held_shape(look.held_by),
        events=look.events,
        last_time=look.last_time,
        waiting=look.waiting,
        reason=reason_of(look),
    )


def _row(row: "ListedShape", name: str) -> tuple[str | Painted, ...]:
    style, _ = STANDINGS[row.standing]
    return (
        Painted(name, "name"),
        Painted(row.standing.replace("_", " "), style),
        row.model or "-",
        "-" if row.held_by is None else f"pid {row.held_by.pid}",
        str(row.events),
        ago(row.last_time),
        str(row.waiting) if row.waiting else "-",
    )
