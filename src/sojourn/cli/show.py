"""`sojourn show`: one event in full."""

import json
from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import ago, clock_time
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from sojourn.agent import Look
    from sojourn.agent.look import Numbered

SHORTEST = 4
"""The fewest digits of an id that name an event."""


@click.command(
    "show",
    cls=Command,
    examples=["sojourn show 12", "sojourn show research 12", "sojourn show research 9f31c0"],
)
@click.argument(
    "words",
    metavar="[CAPSULE] EVENT",
    nargs=-1,
    required=True,
    shell_complete=complete_capsule,
    help="The capsule, and the number of an event or the beginning of its id.",
)
@click.pass_obj
def command(settings: Settings, words: tuple[str, ...]) -> None:
    """Show one event of CAPSULE: its header and its body.

    EVENT is its number, as `sojourn log` prints it, or the beginning of its id.
    """
    *where, name = words
    if len(where) > 1:
        raise click.UsageError("name one event")
    machine, place = find(where[0] if where else None)
    found = chosen(machine.look(place), name, capsule=machine.reference(place))
    voice = Voice(settings)
    if settings.json:
        from sojourn.cli.events import shape_of_event
        from sojourn.cli.shapes import ShowAnswer

        shape = shape_of_event(found.event, found.number)
        voice.answer(ShowAnswer(capsule=shape_of(place), event=shape))
        return
    _print(voice, found)


def chosen(look: "Look", name: str, *, capsule: str) -> "Numbered":
    """The one event that a number or the beginning of an id names; hints name `capsule`.

    Raises: NotFoundError `event_missing`; UsageError `event_ambiguous`.
    """
    by_number = name.isdecimal() and len(name) < 20
    beginning = name.lower()
    is_id = len(name) >= SHORTEST and not set(beginning) - set("0123456789abcdef")
    found: list[Numbered] = []
    for one in look.numbered():
        if by_number and one.number == int(name):
            return one
        if is_id and one.event.id.startswith(beginning):
            found.append(one)
    if not found:
        raise NotFoundError(
            f"{capsule} has no event {name}",
            code="event_missing",
            hint=f"It has {look.events}, numbered from 1; `sojourn log {capsule} --oneline` lists "
            "them. "
            f"An id needs at least {SHORTEST} digits.",
        )
    if len(found) > 1:
        raise UsageError(
            f"{name} names {len(found)} events",
            code="event_ambiguous",
            hint="Name one by more of its id: " + ", ".join(one.event.id[:12] for one in found[:8]),
        )
    return found[0]


def _print(voice: Voice, found: "Numbered") -> None:
    from sojourn.cli.events import body_of

    number, event = found
    header = event.header
    voice.data(Painted(f"event {event.id}", "name"))
    rows = [
        ("kind", header.kind),
        ("number", f"{number}, in the log"),
        ("seq", f"{header.seq}, appended with {header.batch}, clock {header.clock}"),
        ("time", f"{clock_time(header.time)}, {ago(header.time)}"),
        ("machine", f"{header.machine}, epoch {header.epoch}"),
        ("before", header.prev or "nothing: the chain's first"),
    ]
    for name, text in rows:
        voice.data(Painted(f"  {name:<8}", "dim"), text)
    body = body_of(event)
    if body is None:
        voice.data(Painted("  the body was redacted", "dim"))
        return
    voice.data("")
    for line in json.dumps(body, indent=2, ensure_ascii=False).splitlines():
        voice.data(line)
