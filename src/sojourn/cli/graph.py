"""`sojourn graph`: who went on from whom, and the turns that each ran."""

from typing import TYPE_CHECKING, Final

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import ago, counted
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.cli.shapes import CapsuleShape
    from sojourn.cli.shapes_merge import GraphAnswer, RowShape, StrandShape
    from sojourn.core.chart import Chart, Row

WORDS: Final = {
    "created": "created",
    "forked": "forked",
    "claimed": "claimed",
    "activated": "arrived",
    "chain": "goes on",
    "second_side": "second side",
}
"""What a beginning is called."""

TEXT: Final = 60
"""Characters of a turn's first message that are shown."""


@click.command(
    "graph",
    cls=Command,
    examples=[
        "sojourn graph",
        "sojourn graph research --ascii",
        "sojourn graph research --reverse",
        "sojourn graph ./copy --json",
    ],
)
@capsule_argument()
@click.option("--reverse", is_flag=True, help="The oldest first.")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII alone.")
@click.pass_obj
def command(settings: Settings, capsule: str | None, reverse: bool, plain: bool) -> None:
    """Draw the chains of CAPSULE and the turns of each, the newest first as `git log --graph` does.

    A new lane begins where a machine went on while another went on, too: what stands side by side
    ran at the same time, each without knowing of the other. With --reverse the oldest comes first,
    as in `sojourn log`; so do the rows of --json.
    """
    from sojourn.agent.merging import chart

    machine, place = find(capsule)
    made, voice = chart(machine.look(place)), Voice(settings)
    answer = _answer(shape_of(place), made)
    if settings.json:
        voice.answer(answer)
    else:
        _print(voice, answer, plain=plain, newest_first=not reverse)


def _answer(capsule: "CapsuleShape", made: "Chart") -> "GraphAnswer":
    from sojourn.cli.shapes_merge import GraphAnswer, StrandShape

    begins = {row.strand: row.over for row in reversed(made.rows) if row.kind in WORDS}
    return GraphAnswer(
        capsule=capsule,
        strands=tuple(
            StrandShape(
                machine=strand.machine,
                incarnation=strand.incarnation,
                capsule=strand.capsule,
                begin=strand.begin,
                head=strand.head,
                epoch=strand.epoch,
                events=strand.events,
                second_side=strand.second_side,
                over=begins.get(number, ()),
            )
            for number, strand in enumerate(made.strands)
        ),
        rows=tuple(_row(row, made) for row in made.rows),
    )


def _row(row: "Row", made: "Chart") -> "RowShape":
    from sojourn.cli.shapes_merge import RowShape

    return RowShape(
        strand=row.strand,
        kind=row.kind,
        event=row.event,
        number=row.number,
        time=row.time,
        last_time=row.last_time,
        epoch=row.epoch,
        text=row.said if isinstance(row.said, str) else row.said.preview,
        ended=row.ended if row.kind == "turn" else None,
        model_calls=row.model_calls,
        tool_calls=row.tool_calls,
        current=row.event == made.snapshot,
    )


def _print(voice: Voice, answer: "GraphAnswer", *, plain: bool, newest_first: bool) -> None:
    from sojourn.cli.lanes import PLAIN, Step, draw, upside_down

    steps = [
        Step(
            strand=row.strand,
            begins=row.kind in WORDS,
            over=answer.strands[row.strand].over if row.kind in WORDS else (),
        )
        for row in answer.rows
    ]
    drawn = list(draw(steps))
    if newest_first:
        drawn = upside_down(drawn)
    width = max(len(line) for line, _ in drawn)
    digits = len(str(answer.rows[-1].number))
    for line, number in drawn:
        shown = line.translate(PLAIN) if plain else line
        if number is None:
            voice.data(Painted(shown, "dim"))
            continue
        row = answer.rows[number]
        voice.data(Painted(shown.ljust(width), "dim"), "  ", *_words(row, answer.strands, digits))


def _words(
    row: "RowShape", strands: "tuple[StrandShape, ...]", digits: int
) -> tuple[str | Painted, ...]:
    strand = strands[row.strand]
    when = Painted(f"  {ago(row.time)}", "dim")
    short = Painted(f"{row.number:>{digits}} {row.event[:8]}", "dim")
    if row.kind in WORDS:
        who = Painted(f"machine {strand.machine[:8]}", "name")
        more = f", {counted(strand.events, 'event')}, epoch {row.epoch}"
        return (short, f" {WORDS[row.kind]} by ", who, more, when)
    if row.kind == "turn":
        text = " ".join(row.text.split())
        text = text if len(text) <= TEXT else text[: TEXT - 1] + "…"
        calls = f"{counted(row.model_calls, 'model call')}, {counted(row.tool_calls, 'tool call')}"
        how = Painted(f"  {row.ended}", "dim" if row.ended == "rest" else "warn")
        return (short, Painted(f' "{text}"', "bold"), f"  {calls}", how, when)
    current = Painted("  current", "good") if row.current else ""
    return (short, f" {row.kind}", current, when)
