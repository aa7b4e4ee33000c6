"""`sojourn move`: move an agent, also one that runs, to another machine."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import complete_capsule, find
from sojourn.cli.group import Command
from sojourn.cli.remotes import complete_remote
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Machine, Place
    from sojourn.cli.move_words import Phases
    from sojourn.drive.moving import Moved

CANCELLING = "cancelling the move; the agent goes on here"
TOO_LATE = (
    "past the point of no return: waiting for the other machine's word; Ctrl-C again leaves that "
    "to `sojourn move resume`"
)
LEAVING = "leaving it undecided"


@click.command(
    "move",
    cls=Command,
    examples=[
        "sojourn move research user@host",
        "sojourn move research box --dry-run",
        "sojourn move research ssh://user@host:2222 --grace 60 --label 'the big box'",
        "sojourn move status",
    ],
)
@click.argument(
    "capsule", metavar="CAPSULE", shell_complete=complete_capsule, help="A path or a name."
)
@click.argument(
    "where",
    metavar="DEST",
    shell_complete=complete_remote,
    help="user@host, ssh://, https://, or a name of `sojourn remote list`.",
)
@click.option("--dry-run", is_flag=True, help="Only print how far the other machine is fit for it.")
@click.option(
    "--grace",
    metavar="S",
    type=click.FloatRange(min=0, max=86_400),
    default=10.0,
    show_default=True,
    help="Seconds that a running call may go on; then it is ended, and its outcome is unknown.",
)
@click.option("--label", metavar="TEXT", default="", help="Tell the model what DEST is called.")
@click.pass_obj
def command(
    settings: Settings, capsule: str, where: str, dry_run: bool, grace: float, label: str
) -> int:
    """Move the agent in CAPSULE to another machine, where it goes on with the same turn.

    All that can be is sent while the agent runs. Then it is stopped at its next safe point, what
    changed is sent, and the other machine checks everything before it takes over. Until then
    Ctrl-C, or any failure, cancels the move and the agent goes on here. At most one machine runs
    it, whatever fails. The exit code is 6 when DEST is not fit, 8 when it was not reached or
    refused, 7 when it is not known yet whether it took over.
    """
    from sojourn.cli.move_words import (
        Phases,
        answer_of,
        exit_of,
        failure_of,
        print_checks,
        print_end,
    )

    machine, place = find(capsule)
    voice = Voice(settings)
    phases = Phases(voice)
    moved, who = asyncio.run(
        move_to(voice, machine, place, where, phases, dry=dry_run, grace=grace, label=label)
    )
    if settings.json:
        voice.answer(answer_of(moved, place, who, phases))
        return exit_of(moved)
    if dry_run or moved.outcome == "unfit":
        print_checks(voice, moved)
    failure = failure_of(moved, machine.reference(place), who[1])
    if failure is not None:
        raise failure
    if not dry_run:
        print_end(voice, moved, place, who[1])
    return 0


async def move_to(
    voice: Voice,
    machine: "Machine",
    place: "Place",
    where: str,
    phases: "Phases",
    *,
    dry: bool = False,
    grace: float,
    label: str = "",
) -> "tuple[Moved, tuple[str, str]]":
    """Move it, and who the other machine is."""
    from sojourn.agent.links import open_peer
    from sojourn.agent.moves import move
    from sojourn.cli.agreeing import Notes

    stop = asyncio.Event()
    try:
        with cancellable(voice, phases, stop):
            async with open_peer(machine, where) as peer:
                moved = await move(
                    machine,
                    place,
                    peer,
                    grace=grace,
                    label=label,
                    dry=dry,
                    watcher=phases,
                    observer=Notes(voice),
                    stop=stop,
                )
                return moved, (peer.machine, peer.address)
    finally:
        phases.end()


@contextmanager
def cancellable(voice: Voice, phases: "Phases", stop: asyncio.Event) -> Generator[None]:
    """Within, Ctrl-C cancels what can still be cancelled, and says when nothing can."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    pressed = False

    def interrupted() -> None:
        nonlocal pressed
        if not phases.past_return:
            voice.talk(Painted(CANCELLING, "warn"))
            stop.set()
        elif pressed and task is not None:
            voice.talk(Painted(LEAVING, "warn"))
            task.cancel()
        else:
            pressed = True
            voice.talk(Painted(TOO_LATE, "warn"))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
