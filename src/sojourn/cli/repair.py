"""`sojourn repair`: set damaged bytes aside, so that the agent can go on."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import size
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.cli.shapes_trim import GapShape
    from sojourn.drive.damage import Gap
    from sojourn.drive.repair import RepairReport


@click.command(
    "repair",
    cls=Command,
    examples=["sojourn repair research --dry-run", "sojourn repair research"],
)
@capsule_argument()
@click.option("--dry-run", "dry_run", is_flag=True, help="Only say what would be done.")
@click.pass_obj
def command(settings: Settings, capsule: str | None, dry_run: bool) -> int:
    """Set aside what cannot be read in CAPSULE and record it, so that its agent can go on.

    Nothing is mended by guess and nothing is thrown away: damaged bytes become a blob, and an event
    says what is missing. What cannot be repaired honestly is refused, and nothing is changed then.
    """
    import asyncio

    from sojourn.agent.trim import repair
    from sojourn.cli.agreeing import Notes
    from sojourn.cli.shapes_trim import AsideShape, LostShape, RepairAnswer

    machine, place = find(capsule)
    voice = Voice(settings)
    report = asyncio.run(repair(machine, place, dry_run=dry_run, observer=Notes(voice)))
    if not settings.json:
        _print(voice, report)
        return 0
    place = machine.find(place.folder)
    voice.answer(
        RepairAnswer(
            capsule=shape_of(place),
            done=report.done,
            aside=tuple(
                AsideShape(code=one.code, line=one.line, bytes=one.length, gap=_shape(one.gap))
                for one in report.spans
            ),
            gaps=tuple(shape for gap in report.gaps if (shape := _shape(gap)) is not None),
            lost=tuple(
                LostShape(blob=one.blob, code=one.code, events=one.events) for one in report.lost
            ),
            manifest=report.manifest,
        )
    )
    return 0


def _shape(gap: "Gap | None") -> "GapShape | None":
    from sojourn.cli.shapes_trim import GapShape

    if gap is None:
        return None
    return GapShape(
        machine=gap.machine, incarnation=gap.incarnation, first=gap.first, last=gap.last
    )


def _print(voice: Voice, report: "RepairReport") -> None:
    from sojourn.format import layout

    for span in report.spans:
        where = Painted(f"{layout.TIMELINE} line {span.line}", "bold")
        missing = "" if span.gap is None else f"; {_places(span.gap)}"
        voice.data("set aside  ", where, f": {size(span.length)} [{span.code}]{missing}")
    for gap in report.gaps:
        voice.data("recorded   ", f"{_places(gap)}, of which no bytes are left")
    for blob in report.lost:
        named = ", ".join(event[:8] for event in blob.events)
        voice.data("lost       ", f"blob {blob.blob[:12]} [{blob.code}], named by event {named}")
    if report.manifest is not None:
        voice.data("made anew  ", f"{layout.MANIFEST} [{report.manifest}]")
    if report.nothing:
        voice.data(Painted("nothing to repair", "good"))
    elif not report.done:
        voice.talk("Nothing was changed: this is what a repair would do.")
    else:
        voice.data(Painted("repaired", "good"), "  it verifies, and the agent can go on")


def _places(gap: "Gap") -> str:
    if gap.first == gap.last:
        return f"seq {gap.first} of chain {gap.incarnation[:8]} is missing"
    return f"seq {gap.first} to {gap.last} of chain {gap.incarnation[:8]} are missing"
