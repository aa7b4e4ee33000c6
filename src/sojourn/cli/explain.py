"""`sojourn explain`: who holds a capsule, what is open, and why it would not run here."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import (
    STANDINGS,
    capsule_argument,
    find,
    held_shape,
    shape_of,
    standing_of,
)
from sojourn.cli.group import Command
from sojourn.cli.people import ago, counted
from sojourn.cli.settings import Settings
from sojourn.cli.turns import missing_for_run
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import SojournError

if TYPE_CHECKING:
    from sojourn.agent import Look, Machine
    from sojourn.cli.shapes_carry import ExplainAnswer, ReasonShape


@click.command(
    "explain",
    cls=Command,
    examples=[
        "sojourn explain research",
        "sojourn explain ./copy",
        "sojourn explain ./copy --json",
    ],
)
@capsule_argument()
@click.pass_obj
def command(settings: Settings, capsule: str | None) -> None:
    """Explain who holds CAPSULE and at which epoch, what is open, and why it would not run here.

    Every reason is named, the gravest first, each with what can be done. Where none of them keeps
    it from being held, its model and its workspace are looked at as `run` would, and nothing is
    sent. Nothing is changed.
    """
    machine, place = find(capsule)
    answer, voice = explained(machine, machine.look(place)), Voice(settings)
    if settings.json:
        voice.answer(answer)
    else:
        _print(voice, answer, machine.reference(place))


def explained(machine: "Machine", look: "Look") -> "ExplainAnswer":
    """All that bears on who may run the capsule."""
    from sojourn.cli.shapes_carry import ExplainAnswer, RecordShape
    from sojourn.cli.status import status_of

    manifest, record = look.folded.manifest, look.evidence.record
    status = status_of(look)
    own, reasons = _own(machine)
    reasons += _reasons(look) or (_not_ready(machine, look) if not reasons else [])
    return ExplainAnswer(
        capsule=shape_of(look.place),
        standing=standing_of(look),
        may_run=not reasons,
        machine=own,
        holder=None if manifest is None else manifest.holder,
        epoch=look.evidence.highest_epoch,
        record=None
        if record is None
        else RecordShape(
            state=record.state,
            epoch=record.epoch,
            floor=record.floor,
            folder=record.folder,
            unfinished_claim=record.claim is not None,
        ),
        held_by=held_shape(look.held_by),
        turn=status.turn,
        model_calls=status.model_calls,
        calls=status.calls,
        question=status.question,
        waiting=look.waiting,
        sides=status.sides,
        reasons=tuple(reasons),
    )


def _own(machine: "Machine") -> "tuple[str | None, list[ReasonShape]]":
    """This machine's id, or why it has none."""
    from sojourn.cli.shapes_carry import ReasonShape

    try:
        return machine.ports.key.machine(), []
    except SojournError as failure:
        reason = ReasonShape(code=failure.code, message=failure.message, hint=failure.hint)
        return None, [reason]


def _reasons(look: "Look") -> "list[ReasonShape]":
    from sojourn.cli.shapes_carry import ReasonShape
    from sojourn.core.tenure import reasons

    return [
        ReasonShape(code=one.code, message=one.message, hint=one.hint)
        for one in reasons(look.evidence)
    ]


def _not_ready(machine: "Machine", look: "Look") -> "list[ReasonShape]":
    """What `run` would miss once it held the capsule: its model, its workspace."""
    from sojourn.cli.shapes_carry import ReasonShape

    return [
        ReasonShape(code=one.code, message=one.message, hint=one.hint)
        for one in missing_for_run(machine, look)
    ]


def _print(voice: Voice, answer: "ExplainAnswer", named: str) -> None:
    from sojourn.cli.status import side_lines

    style, meaning = STANDINGS[answer.standing]
    standing = Painted(answer.standing.replace("_", " "), style)
    voice.data(Painted(answer.capsule.name, "name"), "  ", standing, Painted(f"  {meaning}", "dim"))
    for title, text in (
        ("holder", _holder(answer)),
        ("here", _here(answer)),
        ("process", _process(answer)),
        ("open", _open(answer)),
    ):
        voice.data(Painted(f"  {title:<9}", "dim"), text)
    for text in side_lines(answer.sides, named):
        voice.data(Painted(f"  {'snapshot':<9}", "warn"), text)
    if not answer.reasons:
        what = f"resume {named}" if answer.turn else f'run {named} "what to do"'
        voice.talk(Painted(f"nothing keeps it from running here:  sojourn {what}", "dim"))
    for count, reason in enumerate(answer.reasons, start=1):
        code = Painted(f"   [{reason.code}]", "dim")
        voice.data(Painted(f"  {f'why {count}':<9}", "warn"), reason.message, code)
        for line in reason.hint.splitlines():
            voice.data(" " * 11, Painted(line, "bold"))


def _holder(answer: "ExplainAnswer") -> str:
    if answer.holder is None:
        return "unknown: its manifest cannot be read"
    ours = answer.holder == answer.machine
    who = "this machine" if ours else f"another machine, {answer.holder[:12]}"
    return f"{who}, at epoch {answer.epoch}, as the capsule says"


def _here(answer: "ExplainAnswer") -> str:
    record = answer.record
    if record is None:
        return "this machine has no record that it holds it"
    words = f"this machine's record says {record.state.lower()}, at epoch {record.epoch}"
    if record.floor > record.epoch:
        words += f", and knows of epoch {record.floor}"
    if record.folder != answer.capsule.folder:
        words += f", in {record.folder}"
    return words + (", a claim is not finished" if record.unfinished_claim else "")


def _process(answer: "ExplainAnswer") -> str:
    held = answer.held_by
    if held is None:
        return "none holds it now"
    return f"{held.command} (pid {held.pid}) holds it since {ago(held.since)}"


def _open(answer: "ExplainAnswer") -> str:
    waiting = f"{counted(answer.waiting, 'message')} waiting" if answer.waiting else ""
    if answer.turn is None:
        return waiting or "nothing"
    words = [f"a turn, {counted(answer.model_calls, 'model call')} so far"]
    words += [f"{call.tool} {call.state}" for call in answer.calls if call.state != "done"]
    if answer.question is not None:
        words.append(f"a question about {answer.question.tool}")
    return ", ".join([*words, *([waiting] if waiting else [])])
