"""`sojourn work`: take the turns that wait on this machine."""

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import capsule_argument
from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Machine, Observer, Place
    from sojourn.errors import SojournError


@click.command(
    "work",
    cls=Command,
    examples=["sojourn work", "sojourn work --watch", "sojourn work --watch research site"],
)
@capsule_argument(many=True)
@click.option("--watch", is_flag=True, help="Stay, and take turns as they come.")
@click.option("--while-stdin", is_flag=True, hidden=True)
@click.pass_obj
def command(settings: Settings, capsules: tuple[str, ...], watch: bool, while_stdin: bool) -> int:
    """Take turns whose worker died, and messages that wait, until nothing is left.

    With CAPSULEs only theirs. A turn that a person paused, or that waits for a decision, is left
    alone. Ctrl-C pauses the turn that runs at its next safe point.
    """
    from sojourn.agent import Machine

    machine = Machine()
    places = [machine.find(name) for name in capsules]
    return asyncio.run(_work(machine, places, settings, watch=watch, while_stdin=while_stdin))


async def _work(
    machine: "Machine",
    places: "list[Place]",
    settings: Settings,
    *,
    watch: bool,
    while_stdin: bool,
) -> int:
    from sojourn.cli.failure import of_error
    from sojourn.cli.interrupt import interruptible
    from sojourn.cli.live import Counting
    from sojourn.cli.shapes import WorkedLine
    from sojourn.cli.turns import observer_of

    voice, stop, failures = Voice(settings), asyncio.Event(), list[int]()
    watching: list[Counting] = []
    task = asyncio.current_task()

    def observer_for(place: "Place") -> "Observer":
        watching.append(Counting(observer_of(voice, machine, place, worker=True)))
        return watching[-1]

    def failed(place: "Place", error: "SojournError") -> None:
        words = of_error(error)
        failures.append(words.exit)
        voice.talk(
            Painted("✗ ", "bad"), f"{machine.reference(place)}: {words.spoken}   [{words.code}]"
        )

    def end() -> None:
        stop.set()
        if task is not None:
            task.cancel()

    if while_stdin:
        asyncio.get_running_loop().add_reader(0, _at_end, stop)
    watched = interruptible(voice, pause=stop.set, stop=end, leave=stop.set)
    with watched, suppress(asyncio.CancelledError):
        await machine.work(
            watch=watch, observer_for=observer_for, stop=stop, failed=failed, places=places
        )
    turns = sum(one.turns for one in watching)
    if settings.json:
        voice.answer(WorkedLine(turns=turns))
    else:
        said = "nothing to do" if turns == 0 and not failures else f"turns taken: {turns}"
        voice.talk(Painted(said, "dim"))
    if stop.is_set():
        return 130
    return failures[-1] if failures else 0


def _at_end(stop: asyncio.Event) -> None:
    """Leave the turns when stdin ends: whoever started this worker is gone."""
    if not os.read(0, 4096):
        stop.set()
        asyncio.get_running_loop().remove_reader(0)
