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
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Machine, Place
    from sojourn.cli.shapes import ListedShape


@click.command("ps", cls=Command, examples=["sojourn ps", "sojourn ps -a", "sojourn ps --json"])
@click.option("-a", "--all", "everything", is_flag=True, help="Those that rest, too.")
@click.pass_obj
def command(settings: Settings, everything: bool) -> None:
    """List the capsules of this machine that run, wait or need somebody; with -a all of them."""
    from sojourn.agent import Machine
    from sojourn.cli.shapes import PsAnswer

    machine = Machine()
    places = machine.places()
    listed = [_listed(machine, place) for place in places]
    shown = [row for row in listed if everything or row.standing != "resting"]
    voice, resting = Voice(settings), len(listed) - len(shown)
    if settings.json:
        voice.answer(PsAnswer(capsules=tuple(shown), resting=resting))
        return
    if shown:
        head = ("NAME", "STATE", "MODEL", "HELD BY", "EVENTS", "LAST EVENT", "WAITING")
        names = {place.folder: machine.reference(place, places) for place in places}
        table(voice.out, head, [_row(row, names[row.capsule.folder]) for row in shown])
    if resting:
        voice.talk(Painted(f"{counted(resting, 'capsule')} at rest: sojourn ps -a", "dim"))
    elif not listed:
        voice.talk("no capsules here yet; make one with  sojourn init -n NAME")


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
