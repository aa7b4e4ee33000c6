"""`sojourn redact`: take an event's text away for good."""

import click

from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted
from sojourn.cli.settings import Settings
from sojourn.cli.show import chosen
from sojourn.cli.voice import Painted, Voice


@click.command(
    "redact",
    cls=Command,
    examples=[
        "sojourn redact research 12 --reason 'a password'",
        "sojourn redact research 9f31c0 --reason 'a password' --yes",
    ],
)
@click.argument(
    "capsule", metavar="CAPSULE", shell_complete=complete_capsule, help="A path or a name."
)
@click.argument("event", metavar="EVENT", help="The number of an event or the start of its id.")
@click.option("--reason", metavar="TEXT", required=True, help="Why; it is kept in the log.")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.pass_obj
def command(settings: Settings, capsule: str, event: str, reason: str, yes: bool) -> int:
    """Take the body of EVENT out of CAPSULE for good, and the blobs that only it named.

    The event keeps its place and its id, and the chain still verifies. The model is told that the
    content is gone. Copies, backups and archives made before still hold it. The exit code is 7 when
    nobody agreed.
    """
    import asyncio

    from sojourn.agent.trim import redact
    from sojourn.cli.agreeing import Notes, agree, not_agreed
    from sojourn.cli.shapes_trim import RedactAnswer

    machine, place = find(capsule)
    known_as = machine.reference(place)
    number, found = chosen(machine.look(place), event, capsule=known_as)
    voice = Voice(settings)
    risks = [
        f"The body of event {number} ({found.header.kind}) is gone for good then.",
        "Copies, backups and archives that were made before still hold it.",
    ]
    again = f"sojourn redact {known_as} {event} --reason TEXT"
    if not agree(voice, "redact", risks, yes=yes, again=again):
        return not_agreed(voice)
    done = asyncio.run(redact(machine, place, found.id, reason=reason, observer=Notes(voice)))
    if settings.json:
        voice.answer(
            RedactAnswer(
                capsule=shape_of(place),
                event=done.event,
                kind=done.kind,
                redacted=done.record,
                blobs=done.blobs,
            )
        )
        return 0
    what = f"  event {number}, {done.kind}; {counted(done.blobs, 'blob')} removed"
    voice.data(Painted("redacted", "good"), what)
    return 0
