"""`sojourn redact`: take an event's text, or the contents of a file, away for good."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted
from sojourn.cli.settings import Settings
from sojourn.cli.show import chosen
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Machine, Place
    from sojourn.drive.redact_files import Wanted

SHOWN = 5
"""Paths that are named before somebody agrees; of more the number is told."""

COPIES = "Copies, backups and archives that were made before still hold it."


@click.command(
    "redact",
    cls=Command,
    examples=[
        "sojourn redact research 12 --reason 'a password'",
        "sojourn redact research 9f31c0 --reason 'a password' --yes",
        "sojourn redact research --path config/.env --reason 'keys of the shop'",
    ],
)
@click.argument(
    "capsule", metavar="CAPSULE", shell_complete=complete_capsule, help="A path or a name."
)
@click.argument(
    "event",
    metavar="[EVENT]",
    required=False,
    help="The number of an event or the start of its id.",
)
@click.option("--path", metavar="PATH", help="Take a file's contents out of every snapshot.")
@click.option("--blob", metavar="SHA256", help="Take this content out of every snapshot.")
@click.option("--reason", metavar="TEXT", required=True, help="Why; it is kept in the log.")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.pass_obj
def command(
    settings: Settings,
    capsule: str,
    event: str | None,
    path: str | None,
    blob: str | None,
    reason: str,
    yes: bool,
) -> int:
    """Take the body of EVENT out of CAPSULE for good, and the blobs that only it named.

    The event keeps its place and its id, and the chain still verifies. The model is told that the
    content is gone. With --path all contents go that a file of the workspace ever had, out of every
    snapshot; its path, sizes and digests stay, and so does the file in the workspace. Putting a
    snapshot back then says which files are gone. Copies, backups and archives made before still
    hold it. The exit code is 7 when nobody agreed.
    """
    if sum(one is not None for one in (event, path, blob)) != 1:
        raise click.UsageError("name one of EVENT, --path and --blob")
    machine, place = find(capsule)
    voice = Voice(settings)
    if event is not None:
        return _body(voice, machine, place, event, reason, yes=yes)
    from sojourn.drive.redact_files import Wanted
    from sojourn.ids import BlobId

    wanted = Wanted(path=path, blob=None if blob is None else BlobId(blob))
    return _files(voice, machine, place, wanted, reason, yes=yes)


def _body(
    voice: Voice, machine: "Machine", place: "Place", event: str, reason: str, *, yes: bool
) -> int:
    import asyncio

    from sojourn.agent.trim import redact
    from sojourn.cli.agreeing import Notes, agree, not_agreed
    from sojourn.cli.shapes_trim import RedactAnswer

    known_as = machine.reference(place)
    number, found = chosen(machine.look(place), event, capsule=known_as)
    risks = [
        f"The body of event {number} ({found.header.kind}) is gone for good then.",
        COPIES,
    ]
    again = f"sojourn redact {known_as} {event} --reason TEXT"
    if not agree(voice, "redact", risks, yes=yes, again=again):
        return not_agreed(voice)
    done = asyncio.run(redact(machine, place, found.id, reason=reason, observer=Notes(voice)))
    if voice.settings.json:
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


def _files(
    voice: Voice, machine: "Machine", place: "Place", wanted: "Wanted", reason: str, *, yes: bool
) -> int:
    import asyncio

    from sojourn.agent.trim import redact_file
    from sojourn.cli.agreeing import Notes, agree, not_agreed
    from sojourn.cli.shapes_trim import RedactAnswer
    from sojourn.drive.redact_files import find_files

    look = machine.look(place)
    found = find_files(look.store, wanted, look.folded.ending.gone)
    shown = ", ".join(found.paths[:SHOWN])
    more = f" and {len(found.paths) - SHOWN} more" if len(found.paths) > SHOWN else ""
    snapshots = counted(found.snapshots, "snapshot")
    risks = [
        f"{counted(len(found.blobs), 'content')} that {snapshots} took in will be gone for good: "
        f"of {shown}{more}.",
        "The path, the size and the digest stay, and a short content can be guessed by its digest.",
        "The file in the workspace stays; later snapshots leave it out while it holds this.",
        COPIES,
    ]
    named = f"--path {wanted.path}" if wanted.blob is None else f"--blob {wanted.blob}"
    again = f"sojourn redact {machine.reference(place)} {named} --reason TEXT"
    if not agree(voice, "redact", risks, yes=yes, again=again):
        return not_agreed(voice)
    done = asyncio.run(redact_file(machine, place, wanted, reason=reason, observer=Notes(voice)))
    if voice.settings.json:
        voice.answer(
            RedactAnswer(
                capsule=shape_of(place),
                event=None,
                kind=None,
                redacted=done.record,
                blobs=done.removed,
                contents=done.found.blobs,
                paths=done.found.paths,
            )
        )
        return 0
    what = f"  {shown}{more} out of {snapshots}; {counted(done.removed, 'blob')} removed"
    voice.data(Painted("redacted", "good"), what)
    voice.talk("`sojourn scan` says where else it may stand")
    return 0
