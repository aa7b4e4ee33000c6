"""`sojourn status`: how one capsule stands."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import (
    STANDINGS,
    capsule_argument,
    find,
    held_shape,
    reason_of,
    shape_of,
    standing_of,
)
from sojourn.cli.group import Command
from sojourn.cli.people import ago, clock_time, counted, size
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.agent import Look
    from sojourn.cli.shapes import QuestionShape, SideShape, StatusAnswer

CALL_STATES = {
    "asked": ("not begun", "dim"),
    "started": ("began, no outcome yet", "alarm"),
    "done": ("done", "dim"),
    "failed": ("failed", "dim"),
    "unknown": ("unknown: it may have happened", "alarm"),
    "again": ("will be called once more", "dim"),
}
"""How a call of the last reply stands, in words and style."""


@click.command(
    "status",
    cls=Command,
    examples=["sojourn status", "sojourn status research", "sojourn status research --json"],
)
@capsule_argument()
@click.pass_obj
def command(settings: Settings, capsule: str | None) -> None:
    """Show how CAPSULE stands: its model, who holds it, its open turn, what waits.

    It reads and checks the whole log, takes no lock and changes nothing.
    """
    machine, place = find(capsule)
    look = machine.look(place)
    answer, voice = status_of(look), Voice(settings)
    if settings.json:
        voice.answer(answer)
    else:
        _print(voice, answer, machine.reference(place))


def status_of(look: "Look") -> "StatusAnswer":
    """The capsule's standing as --json shows it."""
    from sojourn.agent.sides import snapshots_side_by_side
    from sojourn.cli.shapes import CallShape, FaultShape, SideShape, StatusAnswer
    from sojourn.core.tenure import MayRun

    state = look.state
    return StatusAnswer(
        capsule=shape_of(look.place),
        standing=standing_of(look),
        model=look.model,
        may_run=isinstance(look.admission, MayRun),
        reason=reason_of(look),
        held_by=held_shape(look.held_by),
        turn=state.turn,
        model_calls=state.model_calls,
        calls=tuple(
            CallShape(
                key=call.key,
                tool=call.tool,
                arguments=_arguments(look, call.key),
                state=call.state,
                attempt=call.attempt,
            )
            for call in (state.calls if state.turn is not None else ())
        ),
        question=_question(look),
        events=look.events,
        length=look.length,
        last_time=look.last_time,
        waiting=look.waiting,
        sides=tuple(
            SideShape(
                event=one.event, number=one.number, machine=one.machine, time=one.time, own=one.own
            )
            for one in snapshots_side_by_side(look)
        ),
        torn=look.torn,
        damages=tuple(
            FaultShape(
                code=damage.code,
                message=damage.message,
                file="memory/timeline_events.jsonl",
                line=damage.line or None,
            )
            for damage in look.damages
        ),
    )


def side_lines(sides: "Sequence[SideShape]", name: str) -> "Iterator[str]":
    """Snapshots that stand side by side, each with the command that puts it elsewhere."""
    for one in sides:
        whose = "this side" if one.own else f"machine {one.machine[:8]}"
        elsewhere = f"sojourn snapshot restore {name} {one.number} --to DIR"
        current = ", the current one" if one is sides[-1] else ""
        yield f"event {one.number} of {whose}, {ago(one.time)}{current}:  {elsewhere}"


def _question(look: "Look") -> "QuestionShape | None":
    from sojourn.cli.shapes import QuestionShape

    key = look.state.question
    if key is None:
        return None
    call = look.state.call(key)
    tool = "" if call is None else call.tool
    return QuestionShape(call=key, tool=tool, arguments=_arguments(look, key))


def _arguments(look: "Look", key: str) -> str:
    """The arguments' source text of a call of the last reply."""
    from sojourn.cli.events import plain
    from sojourn.core.view import Replied

    for entry in reversed(look.transcript.entries):
        if isinstance(entry, Replied):
            found = (plain(call.part.args) for call in entry.calls if call.key == key)
            return next(found, "")
    return ""


def _print(voice: Voice, answer: "StatusAnswer", name: str) -> None:
    from sojourn.cli.events import about

    style, meaning = STANDINGS[answer.standing]
    standing = Painted(answer.standing.replace("_", " "), style)
    voice.data(Painted(answer.capsule.name, "name"), "  ", standing, Painted(f"  {meaning}", "dim"))
    rows: list[tuple[str, str]] = [
        ("capsule", answer.capsule.folder),
        ("workspace", answer.capsule.workspace or "unknown here"),
        ("model", answer.model or "none yet"),
        (
            "log",
            f"{counted(answer.events, 'event')}, {size(answer.length)}, "
            f"last {ago(answer.last_time)}",
        ),
    ]
    if answer.held_by is not None:
        held = answer.held_by
        since = f"{clock_time(held.since)}, {ago(held.since)}"
        rows.append(("held by", f"{held.command} (pid {held.pid}) since {since}"))
    if answer.waiting:
        rows.append(("waiting", counted(answer.waiting, "message")))
    if answer.turn is not None:
        rows.append(("turn", f"open, {counted(answer.model_calls, 'model call')} so far"))
    if answer.reason is not None:
        rows.append(("why", f"{answer.reason.message} [{answer.reason.code}]"))
    if answer.torn:
        rows.append(("torn end", "the last append is incomplete; the next run cuts and keeps it"))
    for row, text in rows:
        voice.data(Painted(f"  {row:<10}", "dim"), text)
    for text in side_lines(answer.sides, name):
        voice.data(Painted(f"  {'snapshot':<10}", "warn"), text)
    for call in answer.calls:
        words = f"{call.tool} {about(call.arguments)}".rstrip()
        state, style = CALL_STATES[call.state]
        voice.data(Painted(f"  {'call':<10}", "dim"), words, "  ", Painted(state, style))
    for damage in answer.damages:
        where = f"line {damage.line}: " if damage.line else ""
        voice.data(Painted(f"  {'damage':<10}", "bad"), f"{where}{damage.message} [{damage.code}]")
    _next_step(voice, answer, name)


def _next_step(voice: Voice, answer: "StatusAnswer", name: str) -> None:
    match answer.standing:
        case "look_only":
            voice.talk(Painted(f"next:  sojourn explain {name}", "dim"))
        case "interrupted" | "paused" | "model_failed" | "waiting":
            voice.talk(Painted(f"next:  sojourn resume {name}", "dim"))
        case "decision":
            ways = "--retry | --skip | --result FILE"
            voice.talk(Painted(f"next:  sojourn resume {name} {ways}", "dim"))
        case "damaged":
            voice.talk(Painted(f"next:  sojourn verify {name}", "dim"))
        case _:
            return
