"""`sojourn drain`: move every agent off this machine."""

import asyncio
from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import shape_of
from sojourn.cli.group import Command
from sojourn.cli.remotes import complete_remote
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import SojournError

if TYPE_CHECKING:
    from sojourn.agent import Machine, Place
    from sojourn.drive.moving import Moved


@click.command("drain", cls=Command, examples=["sojourn drain user@host", "sojourn drain box -q"])
@click.argument(
    "where",
    metavar="DEST",
    shell_complete=complete_remote,
    help="user@host, ssh://, https://, or a name of `sojourn remote list`.",
)
@click.option(
    "--grace",
    metavar="S",
    type=click.FloatRange(min=0, max=86_400),
    default=10.0,
    show_default=True,
    help="Seconds that a running call may go on; then it is ended, and its outcome is unknown.",
)
@click.pass_obj
def command(settings: Settings, where: str, grace: float) -> int:
    """Move every agent that this machine holds to DEST, one after the other.

    One that cannot be moved stays, and the others go on. The exit code is that of the last one that
    was not moved.
    """
    from sojourn.agent import Machine
    from sojourn.agent.places import record_of

    machine, voice = Machine(), Voice(settings)
    places = [
        place
        for place in machine.places()
        if (record := record_of(machine.ports, place.capsule)) is not None
        and record.state == "HOLDER"
    ]
    if not places and not settings.json:
        voice.talk("this machine holds no capsule")
    code = 0
    for count, place in enumerate(places, start=1):
        voice.talk(Painted(f"{count} of {len(places)}: {place.name}", "bold"))
        code = _one(voice, machine, place, where, grace) or code
    return code


def _one(voice: Voice, machine: "Machine", place: "Place", where: str, grace: float) -> int:
    """Move one; its exit code."""
    from sojourn.cli.failure import of_error
    from sojourn.cli.move import move_to
    from sojourn.cli.move_words import Phases, exit_of, failure_of, print_end

    phases = Phases(voice)
    moved: Moved | None = None
    try:
        moved, (_, address) = asyncio.run(
            move_to(voice, machine, place, where, phases, grace=grace)
        )
        failure = failure_of(moved, machine.reference(place), address)
        if failure is not None:
            raise failure
    except SojournError as error:
        words = of_error(error)
        voice.talk(Painted("✗ ", "bad"), f"{place.name}: {words.spoken}   [{words.code}]")
        _line(voice, place, moved, error)
        return words.exit
    _line(voice, place, moved, None)
    if not voice.settings.json:
        print_end(voice, moved, place, address)
    return exit_of(moved)


def _line(voice: Voice, place: "Place", moved: "Moved | None", error: SojournError | None) -> None:
    from sojourn.cli.shapes import FaultShape
    from sojourn.cli.shapes_move import DrainLine

    if not voice.settings.json:
        return
    outcome = "failed" if moved is None or moved.outcome == "fit" else moved.outcome
    voice.answer(
        DrainLine(
            capsule=shape_of(place),
            outcome=outcome,
            exit=0 if error is None else error.exit,
            reason=None if error is None else FaultShape(code=error.code, message=error.message),
            frozen_milliseconds=0 if moved is None else int(moved.frozen * 1000),
        )
    )
