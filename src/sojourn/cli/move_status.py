"""`sojourn move status`, `resume` and `abort`: moves that did not come to their end."""

import asyncio
import re
from typing import TYPE_CHECKING, Final, Literal

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import DecisionError, MigrationError, SojournError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.agent import Machine, Place
    from sojourn.cli.shapes_move import MovingShape
    from sojourn.core.ledger_record import LedgerRecord
    from sojourn.ids import CapsuleId

CAPSULE: Final = re.compile(r"[0-9a-f]{64}")
MOVE: Final = re.compile(r"(?P<move>[0-9a-f]{32})@(?P<epoch>[1-9][0-9]{0,14})")

WORDS = {
    "asks": "to be asked whether it has the capsule",
    "tells": "to be told that the move was cancelled",
    "forwards": "to get messages that waited here",
}


@click.command(
    "move status", cls=Command, examples=["sojourn move status", "sojourn move status research"]
)
@capsule_argument()
@click.pass_obj
def status(settings: Settings, capsule: str | None) -> int:
    """Show the moves that are under way, or undecided, here; with CAPSULE only its own.

    Nothing is asked and nothing is changed. The exit code is 7 when one is in doubt.
    """
    machine, places = _chosen(capsule)
    return _say(Voice(settings), [_shape(machine, place) for place in places], named=capsule)


@click.command(
    "move resume",
    cls=Command,
    examples=[
        "sojourn move resume",
        "sojourn move resume research",
        "sojourn move resume research --decide here",
    ],
)
@capsule_argument()
@click.option(
    "--decide",
    type=click.Choice(["here", "there"]),
    help="Say yourself where it runs, when the other machine will never answer.",
)
@click.option("--yes", is_flag=True, help="Agree to the risk of --decide without being asked.")
@click.pass_obj
def resume(settings: Settings, capsule: str | None, decide: str | None, yes: bool) -> int:
    """Ask the other machines again, and say and send them what is still open.

    With --decide a person's word settles a doubt: `here` goes on on this machine at a far higher
    epoch, which is recorded as a forced claim; `there` gives the capsule up here. If that word is
    wrong, two machines run the agent, or none.
    """
    from sojourn.agent.settling import settle_capsule

    machine, places = _chosen(capsule)
    voice = Voice(settings)
    if decide is not None:
        _decide(voice, machine, places, capsule, decide, yes=yes)
    shapes: list[MovingShape] = []
    hints: list[str] = []
    for place in places:
        settled = asyncio.run(settle_capsule(machine, place.capsule))
        hints += [one.hint for one in settled.failures if one.code == "target_forgot"]
        shapes.append(_shape(machine, place, settled.failures))
    return _say(voice, shapes, named=capsule, hints=hints)


@click.command(
    "move abort",
    cls=Command,
    examples=[
        "sojourn move abort research",
        "sojourn move abort 5f2c...9d --disown 0c1e...77@4",
    ],
)
@capsule_argument()
@click.option(
    "--disown",
    metavar="MOVE@EPOCH",
    help="Say that this move was not activated here, where the memory of it was lost.",
)
@click.option("--yes", is_flag=True, help="Agree to the risk of --disown without being asked.")
@click.pass_obj
def abort(settings: Settings, capsule: str | None, disown: str | None, yes: bool) -> int:
    """Cancel the move of CAPSULE, as long as it is not past the point of no return.

    A move whose command still runs is ended as by Ctrl-C there. What is arriving here is dropped;
    CAPSULE may then be the id that `move status` says. --disown is for a machine whose record of a
    promised move is gone: the other one stays undecided until a person says here that it was not
    activated. If that word is wrong, two machines run the agent.
    """
    from sojourn.agent.settling import settle_capsule

    machine, place = _named(capsule)
    voice = Voice(settings)
    if disown is not None:
        _disown(voice, machine, place, disown, yes=yes)
        return _say(voice, [_shape(machine, place)], named=capsule)
    record = asyncio.run(_abort(machine, place))
    if record is not None and record.state == "IN_DOUBT":
        raise MigrationError(
            "the move is past the point of no return",
            code="in_doubt",
            state="Nobody runs the agent here until the other machine says whether it has it.",
            hint=f"Ask it again:  sojourn move resume {machine.reference(place)}",
            exit_code=DecisionError.exit_code,
        )
    settled = asyncio.run(settle_capsule(machine, place.capsule))
    return _say(voice, [_shape(machine, place, settled.failures)], named=capsule)


async def _abort(machine: "Machine", place: "Place") -> "LedgerRecord | None":
    import os
    import signal

    from sojourn.drive.settling import abort
    from sojourn.errors import HeldElsewhereError

    until = machine.ports.clock.monotonic() + 15
    told = None
    while True:
        try:
            return abort(machine.ports, place.capsule)
        except HeldElsewhereError:
            mover = _mover(machine, place)
            if mover is None and told is not None:
                # It waited for a process that still runs the agent; nothing was frozen yet.
                return machine.ports.ledger.load(place.capsule)
            if mover is None or machine.ports.clock.monotonic() > until:
                raise
            if mover != told:
                told = mover
                os.kill(mover, signal.SIGINT)
            await machine.ports.clock.wait(0.1)


def _mover(machine: "Machine", place: "Place") -> int | None:
    """The process that moves the capsule, or waits until another one lets go of it."""
    held = machine.ports.lock.holder(place.capsule)
    if held is not None and held.command.endswith((" move", " drain")):
        return held.pid
    return machine.ports.release.asker(place.capsule)


def _disown(voice: Voice, machine: "Machine", place: "Place", word: str, *, yes: bool) -> None:
    from sojourn.agent.moves import highest_epoch
    from sojourn.cli.agreeing import agree
    from sojourn.drive.settling import disown
    from sojourn.ids import Epoch, MoveId

    match = MOVE.fullmatch(word)
    if match is None:
        raise click.UsageError("--disown needs MOVE@EPOCH, as the other machine says it")
    risk = (
        "If this machine took over after all, it and the other one act from now on: calls happen "
        "twice, and their logs part for good. What came here by this move is removed."
    )
    again = f"sojourn move abort {place.capsule} --disown {word}"
    if not agree(voice, "disown", [risk], yes=yes, again=again):
        raise DecisionError("nobody agreed", code="not_confirmed", state="Nothing was changed.")
    disown(
        machine.ports,
        place.capsule,
        move=MoveId(match["move"]),
        epoch=Epoch(int(match["epoch"])),
        found=highest_epoch(machine, place.capsule),
    )
    voice.talk("that move is void here; the other machine goes on when it asks again")


def _chosen(capsule: str | None) -> "tuple[Machine, list[Place]]":
    """The named capsule, or every one of which a move is known here."""
    from sojourn.agent import Machine
    from sojourn.agent.places import record_of

    if capsule is not None:
        machine, place = _named(capsule)
        return machine, [place]
    machine = Machine()
    places = {place.capsule: place for place in machine.places()}
    chosen: list[Place] = []
    for one in machine.ports.ledger.capsules():
        record = record_of(machine.ports, one)
        if record is not None and record.travels is not None and (one in places or record.slot):
            chosen.append(places.get(one) or _arriving(machine, one))
    return machine, sorted(chosen, key=lambda place: (place.name, place.capsule))


def _named(where: str | None) -> "tuple[Machine, Place]":
    """The capsule as everywhere, or by its id, which may be all that is known of it here.

    Raises: NotFoundError, UsageError.
    """
    from sojourn.agent import Machine
    from sojourn.errors import NotFoundError
    from sojourn.ids import CapsuleId

    try:
        return find(where)
    except NotFoundError:
        if where is None or CAPSULE.fullmatch(where) is None:
            raise
    machine = Machine()
    return machine, _arriving(machine, CapsuleId(where))


def _arriving(machine: "Machine", capsule: "CapsuleId") -> "Place":
    """A capsule that has no folder here yet, under the name that it would have."""
    import os

    from sojourn.agent import Place
    from sojourn.agent.places import record_of

    record = record_of(machine.ports, capsule)
    slot = None if record is None else record.slot
    if slot is not None:
        folder, workspace = slot.folder, slot.workspace
    else:
        folder, workspace = ("", "") if record is None else (record.folder, record.workspace)
    return Place(
        name=os.path.basename(folder) or capsule[:8],
        folder=folder,
        capsule=capsule,
        workspace=workspace or None,
    )


def _decide(
    voice: Voice,
    machine: "Machine",
    places: "Sequence[Place]",
    named: str | None,
    decide: str,
    *,
    yes: bool,
) -> None:
    from sojourn.cli.agreeing import agree
    from sojourn.drive.settling import decide as settle_by_word

    if named is None or len(places) != 1:
        raise click.UsageError("--decide needs the capsule's name")
    here = decide == "here"
    risk = (
        "If the other machine took over, both act from now on: calls happen twice, and their logs "
        "part for good. Agree only when that machine is gone, or has surely not taken over."
        if here
        else "If the other machine did not take over, nobody runs the agent until it is claimed."
    )
    again = f"sojourn move resume {named} --decide {decide}"
    if not agree(voice, decide, [risk], yes=yes, again=again):
        raise DecisionError("nobody agreed", code="not_confirmed", state="Nothing was changed.")
    how: Literal["resume", "retire"] = "resume" if here else "retire"
    settle_by_word(machine.ports, places[0].capsule, how=how, by="user")


def _shape(
    machine: "Machine", place: "Place", failures: "Sequence[SojournError]" = ()
) -> "MovingShape":
    from sojourn.agent.places import record_of
    from sojourn.cli.shapes import FaultShape
    from sojourn.cli.shapes_move import MovingShape, PendingShape
    from sojourn.drive.settling import pending

    record = record_of(machine.ports, place.capsule)
    moves = None if record is None else record.travels
    move, epoch, who, address = "", 0, "", ""
    if record is not None and record.outgoing is not None:
        out = record.outgoing
        move, epoch, who, address = out.move, out.epoch, out.target, out.address
    elif record is not None and record.slot is not None:
        move, epoch, who = record.slot.move, record.slot.epoch, record.slot.source
    elif record is not None and record.state == "RETIRED" and moves is not None and moves.went:
        went = moves.went
        move, epoch, who, address = went.move, went.epoch, went.target, went.address
    return MovingShape(
        capsule=shape_of(place),
        state="NONE" if record is None else record.state,
        move=move,
        epoch=epoch,
        machine=who,
        address=address,
        arriving=record is not None and record.slot is not None,
        pending=tuple(
            PendingShape(what=one.what, machine=one.to, address=one.address)
            for one in (() if record is None else pending(machine.ports, record))
        ),
        failures=tuple(FaultShape(code=one.code, message=one.message) for one in failures),
    )


def _say(
    voice: Voice,
    shapes: "list[MovingShape]",
    *,
    named: str | None,
    hints: "Sequence[str]" = (),
) -> int:
    from sojourn.cli.shapes_move import MoveStatusAnswer

    doubt = any(shape.state == "IN_DOUBT" for shape in shapes)
    code = DecisionError.exit_code if doubt else 0
    shown = [one for one in shapes if named is not None or _is_open(one)]
    if voice.settings.json:
        voice.answer(MoveStatusAnswer(capsules=tuple(shown)))
        return code
    for one in shown:
        voice.data(Painted(one.capsule.name, "name"), f"  {_words(one)}")
        for left in one.pending:
            to = left.address or left.machine[:8]
            voice.data("  ", Painted(f"{to} is still {WORDS[left.what]}", "warn"))
        for failure in one.failures:
            voice.data("  ", Painted(failure.message, "bad"), f"   [{failure.code}]")
        if one.state == "IN_DOUBT" and one.failures:
            voice.talk(
                "if that machine is gone for good, a person's word ends it:  "
                f"sojourn move resume {one.capsule.name} --decide here|there"
            )
    for hint in hints:
        voice.talk(hint)
    if not shown:
        voice.talk("no move is under way or undecided here")
    return code


def _is_open(one: "MovingShape") -> bool:
    """Whether anything of its moves is not over."""
    return bool(one.pending) or one.arriving or one.state in ("FROZEN", "IN_DOUBT")


def _words(one: "MovingShape") -> str:
    to = one.address or one.machine[:8]
    match one.state:
        case "FROZEN":
            return f"is being moved to {to}; nothing is decided yet"
        case "IN_DOUBT":
            return f"is undecided: {to} has not said whether it has it"
        case "RETIRED":
            return f"was moved to {to}"
        case _:
            if one.arriving:
                return f"is arriving from {to}"
            held = one.state == "HOLDER"
            return f"is {'' if held else 'not '}held here; no move is under way"
