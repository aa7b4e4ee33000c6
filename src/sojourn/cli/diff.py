"""`sojourn diff`: what two copies of a capsule have that the other lacks."""

from difflib import unified_diff
from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.cli.shapes_merge import DiffAnswer

STYLES = {"+": "good", "-": "bad", "@": "dim"}
"""The style of a line of a diff, by its first letter."""


@click.command(
    "diff",
    cls=Command,
    examples=[
        "sojourn diff research ./copy-of-research",
        "sojourn diff ./monday ./tuesday --json",
    ],
)
@click.argument(
    "capsule",
    metavar="CAPSULE",
    shell_complete=complete_capsule,
    help="A path or a name; it is only read.",
)
@click.argument(
    "other",
    metavar="OTHER",
    shell_complete=complete_capsule,
    help="Another capsule of the same origin: a copy, a backup, a fork.",
)
@click.pass_obj
def command(settings: Settings, capsule: str, other: str) -> None:
    """Show what CAPSULE (-) and OTHER (+) each have that the other lacks.

    Events by the chain that wrote them, the text of the working memory, and the paths of the
    current snapshots. Nothing is changed, and neither needs to be held here.
    """
    from sojourn.agent.merging import difference
    from sojourn.cli.parts import part_shapes, side_shapes
    from sojourn.cli.shapes_merge import DiffAnswer

    machine, place = find(capsule)
    _, there = find(other)
    found = difference(machine, place, there)
    notes = "".join(
        line if line.endswith("\n") else f"{line}\n\\ no line end\n"
        for line in unified_diff(
            found.notes[0].splitlines(keepends=True),
            found.notes[1].splitlines(keepends=True),
            f"{place.name}/working_memory.md",
            f"{there.name}/working_memory.md",
        )
    )
    paths = (found.changed, found.ours, found.theirs)
    comparison, voice = found.comparison, Voice(settings)
    answer = DiffAnswer(
        capsule=shape_of(place),
        other=shape_of(there),
        same=not (comparison.ours or comparison.theirs or notes or any(paths)),
        shared=comparison.shared,
        ours=part_shapes(comparison.ours),
        theirs=part_shapes(comparison.theirs),
        equivocations=side_shapes(comparison),
        notes=notes,
        files_changed=found.changed,
        files_ours=found.ours,
        files_theirs=found.theirs,
    )
    if settings.json:
        voice.answer(answer)
    else:
        _print(voice, answer)


def _print(voice: Voice, answer: "DiffAnswer") -> None:
    from sojourn.cli.parts import say_parts, say_sides

    if answer.same:
        voice.data(f"no difference: both have the same {counted(answer.shared, 'event')}")
        return
    say_parts(voice, "-", "bad", answer.ours)
    say_parts(voice, "+", "good", answer.theirs)
    say_sides(voice, answer.equivocations)
    for line in answer.notes.splitlines():
        voice.data(Painted(line, STYLES.get(line[:1], "plain")))
    for mark, style, paths in (
        ("-", "bad", answer.files_ours),
        ("+", "good", answer.files_theirs),
        ("~", "warn", answer.files_changed),
    ):
        for path in paths:
            voice.data(Painted(f"{mark} ", style), f"workspace {path}")
    voice.talk(Painted(f"both have {counted(answer.shared, 'event')}", "dim"))
