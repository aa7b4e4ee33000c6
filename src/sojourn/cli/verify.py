"""`sojourn verify`: check every byte of a capsule."""

import os
from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted, size
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import FormatError
from sojourn.format import layout

if TYPE_CHECKING:
    from sojourn.cli.shapes import VerifyAnswer


@click.command(
    "verify",
    cls=Command,
    examples=["sojourn verify", "sojourn verify research", "sojourn verify ./copy --json"],
)
@capsule_argument()
@click.pass_obj
def command(settings: Settings, capsule: str | None) -> int:
    """Check every line, chain, blob and file of CAPSULE against what was written.

    Each thing that is wrong is one line with its name, file and line. Nothing is changed. The exit
    code is 4 when anything is wrong; a torn end and the like are notices.
    """
    from sojourn.cli.shapes import FaultShape, VerifyAnswer
    from sojourn.format.failures import stops_running

    machine, place = find(capsule)
    failures: list[FaultShape] = []
    notices: list[FaultShape] = []
    for found in machine.verify(place):
        shape = FaultShape(
            code=found.code, message=found.message, file=found.file, line=found.line or None
        )
        (failures if stops_running(found.code) else notices).append(shape)
    answer = VerifyAnswer(
        capsule=shape_of(place),
        sound=not failures,
        log_bytes=log_bytes(place.folder),
        blobs=blob_count(place.folder),
        failures=tuple(failures),
        notices=tuple(notices),
    )
    voice = Voice(settings)
    if settings.json:
        voice.answer(answer)
    else:
        _print(voice, answer)
    return FormatError.exit_code if failures else 0


def log_bytes(folder: str) -> int:
    """The length of the log, 0 when there is none."""
    try:
        return os.stat(os.path.join(folder, layout.TIMELINE)).st_size
    except OSError:
        return 0


def blob_count(folder: str) -> int:
    """How many blobs lie there."""
    try:
        names = os.listdir(os.path.join(folder, layout.BLOBS))
    except OSError:
        return 0
    return sum(layout.is_blob_name(name) for name in names)


def _print(voice: Voice, answer: "VerifyAnswer") -> None:
    for word, style, faults in (
        ("failure", "bad", answer.failures),
        ("notice", "warn", answer.notices),
    ):
        for fault in faults:
            place = f"{fault.file} line {fault.line}" if fault.line else fault.file or ""
            where = Painted(f"{place}: " if place else "", "bold")
            code = Painted(f"   [{fault.code}]", "dim")
            voice.data(Painted(f"{word}  ", style), where, fault.message, code)
    name = answer.capsule.name
    what = f"{size(answer.log_bytes)} of log, {counted(answer.blobs, 'blob')}"
    if answer.sound:
        voice.data(Painted("sound", "good"), f"  {name}: {what}")
        return
    wrong = counted(len(answer.failures), "thing")
    voice.data(Painted("not sound", "bad"), f"  {name}: {wrong} wrong, in {what}")
    voice.talk("Nothing was changed. It opens for reading and will not run.")
    voice.talk(f"What can be read:  sojourn log {name}    What to do:  sojourn doctor {name}")
