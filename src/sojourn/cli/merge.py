"""`sojourn merge`: take into one capsule what another copy of it has."""

import os
from typing import TYPE_CHECKING

import click

from sojourn.cli.archive_options import identity_option
from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Place
    from sojourn.agent.arrive import Arrival
    from sojourn.cli.shapes import CapsuleShape
    from sojourn.cli.shapes_merge import MergeAnswer
    from sojourn.drive.merge import Merged
    from sojourn.format.event import Event
    from sojourn.render import Delta

STOPPED = {
    "equivocation": "one machine wrote two different events at one place of its chain",
    "divergence": "two machines wrote at the same epoch, each without knowing of the other",
}
"""Why a merged capsule does not run, in words."""


@click.command(
    "merge",
    cls=Command,
    examples=[
        "sojourn merge research ./backup/research --dry-run",
        "sojourn merge research /media/stick/research",
        "sojourn merge research theirs.tar",
    ],
)
@click.argument(
    "capsule",
    metavar="CAPSULE",
    shell_complete=complete_capsule,
    help="The capsule that takes the other in; it is held here, at rest or paused.",
)
@click.argument(
    "other",
    metavar="OTHER",
    shell_complete=complete_capsule,
    help="A copy that went its own way: by path or name, or an archive. It stays as it is.",
)
@identity_option("the archive")
@click.option("--dry-run", is_flag=True, help="Say what would come, and change nothing.")
@click.pass_obj
def command(
    settings: Settings, capsule: str, other: str, identity: tuple[str, ...], dry_run: bool
) -> None:
    """Take into CAPSULE every event and blob that OTHER has and CAPSULE lacks.

    An archive is checked whole first, in a private folder that is gone afterwards.

    Nothing is lost and nothing is decided: turns that ran at the same time are shown one after the
    other, and the notes keep what each side wrote. Merging in any order gives the same log. The
    workspace is left alone.
    """
    import asyncio

    from sojourn.agent.merging import merge, merge_archive

    machine, place = find(capsule)
    voice = Voice(settings)
    talk = _Talk(voice)
    if os.path.isfile(other):
        making = merge_archive(
            machine, place, other, identities=identity, dry_run=dry_run, observer=talk
        )
        found, arrival = asyncio.run(making)
        there = _archived(other, arrival)
    else:
        place_there = find(other)[1]
        found = asyncio.run(
            merge(machine, place, place_there.folder, dry_run=dry_run, observer=talk)
        )
        there = shape_of(place_there)
    answer = _answer(place, there, found)
    if settings.json:
        voice.answer(answer)
    else:
        _print(voice, answer, machine.reference(place))


def _archived(file: str, arrival: "Arrival") -> "CapsuleShape":
    """The capsule in an archive, whose folder is the file."""
    from sojourn.cli.shapes import CapsuleShape

    found = arrival.found.manifest
    return CapsuleShape(id=found.capsule, name=found.name, folder=file, workspace=None)


class _Talk:
    """Tells people what is going on, on stderr."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice

    def event(self, event: "Event") -> None:
        """An edit by hand that is taken in first is told by its note."""

    def delta(self, delta: "Delta") -> None:
        """No model is asked."""

    def output(self, tool: str, data: bytes) -> None:
        """No tool runs."""

    def note(self, text: str) -> None:
        self._voice.talk(Painted(text, "dim"))


def _answer(place: "Place", there: "CapsuleShape", found: "Merged") -> "MergeAnswer":
    from sojourn.cli.parts import part_shapes, side_shapes
    from sojourn.cli.shapes_merge import MergeAnswer

    comparison = found.comparison
    if found.done:
        done = "merged"
    else:
        done = "planned" if comparison.theirs else "nothing"
    return MergeAnswer(
        capsule=shape_of(place),
        other=there,
        done=done,
        concurrent=comparison.concurrent,
        shared=comparison.shared,
        ours=part_shapes(comparison.ours),
        theirs=part_shapes(comparison.theirs),
        equivocations=side_shapes(comparison),
        blobs=found.blobs,
        redacted=found.redacted,
        notes=found.notes,
        stopped=found.stopped,
        current_snapshot=comparison.snapshot,
    )


def _print(voice: Voice, answer: "MergeAnswer", named: str) -> None:
    from sojourn.cli.parts import say_parts, say_sides

    name = answer.capsule.name
    if answer.done == "nothing":
        more = sum(part.events for part in answer.ours)
        ahead = f" ({name} has {counted(more, 'event')} more)" if more else ""
        voice.data(f"nothing to do: {name} has every event of {answer.other.folder}{ahead}")
        return
    say_parts(voice, "+", "good", answer.theirs)
    if answer.concurrent:
        voice.data(Painted("at the same time, and only here:", "dim"))
        say_parts(voice, " ", "dim", answer.ours)
    say_sides(voice, answer.equivocations)
    _say_snapshots(voice, answer, named)
    if answer.done == "planned":
        voice.talk("Nothing was changed; without --dry-run it comes into the log.")
        return
    _say_end(voice, answer, named)


def _say_snapshots(voice: Voice, answer: "MergeAnswer", name: str) -> None:
    named = {part.snapshot for part in (*answer.ours, *answer.theirs) if part.snapshot}
    for snapshot in sorted(named - {answer.current_snapshot}):
        voice.data(
            f"snapshot {snapshot[:8]} is kept; the later one, "
            f"{(answer.current_snapshot or '')[:8]}, is the current one"
        )
        if answer.done == "merged":
            voice.data(
                f"  put it elsewhere:  sojourn snapshot restore {name} {snapshot[:8]} --to DIR"
            )


def _say_end(voice: Voice, answer: "MergeAnswer", named: str) -> None:
    name = answer.capsule.name
    came = counted(sum(part.events for part in answer.theirs), "event")
    voice.talk(f"{name} has {came} and {counted(answer.blobs, 'blob')} more now")
    if answer.notes > 1:
        voice.talk(
            Painted("working_memory.md keeps ", "warn"),
            counted(answer.notes, "version"),
            " of the notes, one below the other",
        )
    if answer.stopped is not None:
        voice.talk(
            Painted("it does not run now: ", "bad"),
            STOPPED.get(answer.stopped, answer.stopped),
            f"   [{answer.stopped}]",
        )
        voice.talk(Painted(f"next:  sojourn claim {named}", "dim"))
        return
    voice.talk(Painted(f"next:  sojourn graph {named}", "dim"))
