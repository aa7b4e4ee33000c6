"""`sojourn state`: how a capsule stood at one of its events."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import ago
from sojourn.cli.settings import Settings
from sojourn.cli.show import chosen
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Look
    from sojourn.agent.moment import Moment


@click.command(
    "state",
    cls=Command,
    examples=["sojourn state research", "sojourn state research --at 120 --json | jq .documents"],
)
@capsule_argument()
@click.option("--at", "at", metavar="EVENT", help="As it was after that event.")
@click.pass_obj
def command(settings: Settings, capsule: str | None, at: str | None) -> int:
    """Show the documents, notes, configuration, open turn and calls of CAPSULE.

    EVENT is a number as `sojourn log` prints it, or the beginning of an id. Without it: as it is.
    """
    from sojourn.agent.moment import moment
    from sojourn.cli.shapes_trim import DocumentShape, OpenCallShape, StateAnswer

    machine, place = find(capsule)
    look = machine.look(place)
    event = None if at is None else chosen(look, at, capsule=machine.reference(place)).event
    found = moment(look, event)
    voice = Voice(settings)
    if not settings.json:
        _print(voice, look, found)
        return 0
    configured = found.configured
    voice.answer(
        StateAnswer(
            capsule=shape_of(place),
            event=found.event.id,
            number=found.number,
            time=found.event.header.time,
            model=None if configured is None else configured[1].model or None,
            configured=None if configured is None else configured[0],
            turn=found.state.turn,
            paused=found.state.paused,
            calls=tuple(
                OpenCallShape(call=call.key, tool=call.tool, state=call.state)
                for call in found.state.calls
            ),
            documents=tuple(
                DocumentShape(
                    name=one.name,
                    schema=one.schema,
                    version=one.version,
                    value=look.text(one.value),
                )
                for _, one in sorted(found.documents.items())
            ),
            notes=found.notes,
            snapshot=found.snapshot,
        )
    )
    return 0


def _print(voice: Voice, look: "Look", found: "Moment") -> None:
    header = found.event.header
    when = Painted(f", {ago(header.time)}", "dim")
    voice.data(Painted(f"event {found.number}", "name"), f"  {header.kind}", when)
    model = "" if found.configured is None else found.configured[1].model
    voice.data("model      ", model or "none")
    turn = "none open" if found.state.turn is None else f"open since {found.state.turn[:8]}"
    voice.data("turn       ", turn, f", paused: {found.state.paused}" if found.state.paused else "")
    for call in found.state.calls:
        voice.data("call       ", f"{call.tool} {call.key[:8]}: {call.state}")
    voice.data("snapshot   ", "none" if found.snapshot is None else found.snapshot[:8])
    for _, one in sorted(found.documents.items()):
        name = Painted(f"{one.name}", "bold")
        voice.data("document   ", name, f" version {one.version}: {look.text(one.value)}")
    for line in found.notes.splitlines():
        voice.data(Painted("notes      ", "dim"), line)
