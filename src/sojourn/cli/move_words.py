"""What people see of a move: its phases as they come, the checklist, and how it ended."""

from time import monotonic
from typing import TYPE_CHECKING, Final

from sojourn.cli.people import counted, took
from sojourn.cli.people import size as octets
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import (
    DecisionError,
    MigrationError,
    SojournError,
    StoppedError,
)

if TYPE_CHECKING:
    from sojourn.agent import Place
    from sojourn.cli.shapes_move import CheckShape, MoveAnswer, PhaseShape
    from sojourn.drive.crossing import Phase
    from sojourn.drive.moving import Moved

WORDS: Final[dict[str, str]] = {
    "check": "asking what it needs",
    "send": "sending, while the agent runs",
    "stop": "waiting for a safe point",
    "freeze": "frozen: snapshot and seal",
    "propose": "proposing",
    "delta": "sending what changed",
    "prepare": "it checks and prepares",
    "activate": "point of no return: it takes over",
    "retire": "retired here",
    "cancel": "cancelled: telling it so",
}

EACH: Final = 0.2
"""Seconds between two passing lines."""

NOT_FIT: Final = 6


class Phases:
    """Shows the phases of a move as they pass, and keeps their times and bytes."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._shown = voice.both and not voice.settings.quiet and not voice.settings.json
        self._done: list[tuple[Phase, float, int]] = []
        self._now: Phase | None = None
        self._since = monotonic()
        self._bytes = 0
        self._last = 0.0
        self.past_return = False

    def phase(self, phase: "Phase") -> None:
        """The next phase begins."""
        self.end()
        self._now, self._since, self._bytes = phase, monotonic(), 0
        self.past_return = self.past_return or phase == "activate"
        self._passing()

    def sent(self, size: int) -> None:
        """So many more bytes went out."""
        self._bytes += size
        if monotonic() - self._last >= EACH:
            self._passing()

    def end(self) -> None:
        """The phase is over; its line stays."""
        if self._now is None:
            return
        seconds = monotonic() - self._since
        self._done.append((self._now, seconds, self._bytes))
        if not self._voice.settings.json:
            if self._shown:
                self._voice.err.erase()
            more = f", {octets(self._bytes)}" if self._bytes else ""
            self._voice.talk(Painted(f"{WORDS[self._now]}  {took(seconds * 1000)}{more}", "dim"))
        self._now = None

    def shapes(self) -> "tuple[PhaseShape, ...]":
        """All of it, for --json."""
        from sojourn.cli.shapes_move import PhaseShape

        return tuple(
            PhaseShape(phase=phase, milliseconds=int(seconds * 1000), bytes=count)
            for phase, seconds, count in self._done
        )

    def _passing(self) -> None:
        self._last = monotonic()
        if self._shown and self._now is not None:
            self._voice.err.erase()
            more = f" {octets(self._bytes)}" if self._bytes else ""
            self._voice.err.put(Painted(f"… {WORDS[self._now]}{more}", "dim"))


def exit_of(moved: "Moved") -> int:
    """The exit code of a move (docs/cli.md#exit-codes)."""
    match moved.outcome:
        case "moved" | "fit":
            return 0
        case "unfit":
            return NOT_FIT
        case "in_doubt":
            return DecisionError.exit_code
        case "cancelled":
            stopped = moved.refused is not None and moved.refused.code == "move_cancelled"
            return StoppedError.exit_code if stopped else MigrationError.exit_code


def answer_of(moved: "Moved", place: "Place", who: tuple[str, str], phases: Phases) -> "MoveAnswer":
    """The answer for programs; `who` is the other machine's id and address."""
    from sojourn.cli.capsules import shape_of
    from sojourn.cli.shapes import FaultShape
    from sojourn.cli.shapes_move import MoveAnswer

    reason = moved.refused
    return MoveAnswer(
        capsule=shape_of(place),
        outcome=moved.outcome,
        move=moved.move,
        machine=who[0],
        address=who[1],
        exit=exit_of(moved),
        reason=None if reason is None else FaultShape(code=reason.code, message=reason.message),
        checklist=checks_of(moved),
        phases=phases.shapes(),
        bytes_ahead=moved.sent[0],
        bytes_frozen=moved.sent[1],
        frozen_milliseconds=int(moved.frozen * 1000),
        forwarded=moved.forwarded,
    )


def checks_of(moved: "Moved") -> "tuple[CheckShape, ...]":
    """The checklist of the other machine."""
    from sojourn.cli.shapes_move import CheckShape

    return tuple(
        CheckShape(what=one.what, ok=one.ok, code=one.code, message=one.message, hint=one.hint)
        for one in moved.checklist
    )


def print_checks(voice: Voice, moved: "Moved") -> None:
    """One line for each item of the checklist."""
    for one in moved.checklist:
        mark = Painted("✓", "good") if one.ok else Painted("✗", "bad")
        code = f"   [{one.code}]" if one.code else ""
        voice.data("  ", mark, f" {one.what:<10}", f" {one.message}".rstrip(), Painted(code, "dim"))
        if one.hint and not one.ok:
            voice.data(" " * 14, Painted(one.hint, "bold"))


def print_end(voice: Voice, moved: "Moved", place: "Place", address: str) -> None:
    """How a move that came to an end did so."""
    before, after = moved.sent
    voice.data(
        Painted(place.name, "name"),
        Painted(" moved", "good"),
        f" to {address}: frozen for {took(moved.frozen * 1000)}, "
        f"{octets(before)} sent before and {octets(after)} then",
    )
    if moved.forwarded:
        voice.talk(f"{counted(moved.forwarded, 'message')} that waited here went along")


def failure_of(moved: "Moved", name: str, address: str) -> SojournError | None:
    """A move that did not come to its end, as an error; None for one that did."""
    reason = moved.refused
    words = "" if reason is None else reason.message
    code = "move_failed" if reason is None else reason.code
    hint = "" if reason is None else reason.hint
    match moved.outcome:
        case "moved" | "fit":
            return None
        case "unfit":
            return MigrationError(
                words or f"{address} is not fit for it",
                code=code,
                state="Nothing was changed; the agent goes on here.",
                hint=hint,
                exit_code=NOT_FIT,
            )
        case "cancelled":
            return MigrationError(
                words or "the move was cancelled",
                code=code,
                state="The move was cancelled. The agent may go on here; nothing is lost.",
                hint="\n".join(filter(None, (hint, f"Go on here:  sojourn resume {name}"))),
                exit_code=exit_of(moved),
            )
        case "in_doubt":
            return MigrationError(
                f"{address} has not said whether it has the capsule now",
                code="in_doubt",
                state="Nobody runs the agent here until that is known; nothing is lost.",
                hint="It settles itself when that machine answers, and this one's daemon runs:\n"
                f"sojourn move resume {name}",
                exit_code=DecisionError.exit_code,
            )
