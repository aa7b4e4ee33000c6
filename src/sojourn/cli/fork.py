"""`sojourn fork`: make a capsule of its own that goes on from an event of another."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.drive.fork import ForkedCapsule


@click.command(
    "fork",
    cls=Command,
    examples=[
        "sojourn fork research",
        "sojourn fork research --at 42 -n other-way",
        "sojourn fork ./copy --at 9f31c0 ./second --workspace ~/code/second",
    ],
)
@click.argument(
    "capsule",
    metavar="CAPSULE",
    shell_complete=complete_capsule,
    help="The capsule, by path or name; it may be held elsewhere, copied, or running.",
)
@click.argument(
    "folder",
    metavar="[DIR]",
    required=False,
    type=click.Path(file_okay=False),
    help="The fork's folder (default: in the state folder, by its name).",
)
@click.option(
    "--at", "event", metavar="EVENT", help="After this event, by number or id (default: the last)."
)
@click.option("-n", "--name", metavar="NAME", help="Call it NAME (default: CAPSULE's name-fork).")
@click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="The folder it works in, filled from the snapshot; what lies there stays.",
)
@click.pass_obj
def command(
    settings: Settings,
    capsule: str,
    folder: str | None,
    event: str | None,
    name: str | None,
    workspace: str | None,
) -> None:
    """Make a new capsule that goes on from an event of CAPSULE, held and run here.

    CAPSULE is only read, and stays as it is. Calls that it had open never run in the fork: they
    end as unknown, and its open turn is set aside. Its workspace is filled from the last snapshot
    up to EVENT, and the agent is told which calls came after it. A file of that snapshot that
    differs from what lies in DIR stops the command before anything is made.
    """
    import asyncio

    from sojourn.agent.forking import fork
    from sojourn.cli.agreeing import Notes
    from sojourn.cli.show import chosen
    from sojourn.cli.snapshot_words import Work

    machine, place = find(capsule)
    at = None
    if event is not None:
        at = chosen(machine.look(place), event, capsule=machine.reference(place)).event.id
    voice = Voice(settings)
    with Work(voice, "copied") as work:
        made = asyncio.run(
            fork(
                machine,
                place,
                folder,
                at=at,
                name=name,
                workspace=workspace,
                observer=Notes(voice),
                progress=work.progress,
                stop=work.stop,
            )
        )
    _print(voice, made, place.name)


def _print(voice: Voice, made: "ForkedCapsule", parent: str) -> None:
    from sojourn.cli.shapes_carry import ForkAnswer

    machine, place = find(made.folder)
    if voice.settings.json:
        restored = made.restored
        voice.answer(
            ForkAnswer(
                capsule=shape_of(place),
                parent=made.parent,
                event=made.at,
                epoch=made.chain.epoch,
                set_aside=made.set_aside,
                snapshot=None if restored is None else restored.snapshot,
                missing=0 if restored is None else len(restored.missing),
            )
        )
        return
    voice.data(place.folder)
    voice.talk(
        Painted(place.name, "name"),
        f" goes on from event {made.at[:8]} of {parent}, ",
        f"in {place.workspace}",
    )
    if made.set_aside:
        calls = counted(made.set_aside, "open call")
        voice.talk(f"{calls} of {parent} ended as unknown here; none of them runs in the fork")
    restored = made.restored
    if restored is not None and restored.snapshot is not None:
        voice.talk(f"its files are those of event {restored.snapshot[:8]}")
    if restored is not None and restored.missing:
        calls = counted(len(restored.missing), "call")
        voice.talk(f"its workspace may lack what {calls} did; the agent is told so")
    voice.talk(Painted(f'next:  sojourn run {machine.reference(place)} "what to do"', "dim"))
