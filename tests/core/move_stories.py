"""Reads a migration told in plain text, and says what the real machine makes of it.

    PYTHONPATH=tests .venv/bin/python -m core.move_stories [FILE]

writes the files of tests/scripts/migration anew; look at the difference before you keep it. Lines
that begin with `>` are what happens, lines that begin with `#` are for the reader, and all others
are what the machines write, tell and do. A message can be heard as often as one likes.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sojourn.core.ledger_record import LedgerRecord, PendingClaim, first_record
from sojourn.core.migration import step
from sojourn.core.migration_messages import Offer, Problem, Wanted
from sojourn.core.migration_values import (
    Again,
    Answered,
    Asked,
    Begin,
    Booted,
    Cancel,
    Checked,
    Decided,
    Disowned,
    Expired,
    Given,
    Gone,
    GoOn,
    Here,
    Lost,
    Open,
    Ready,
    Reply,
    Send,
    Sweep,
    Take,
    Tell,
    Verify,
    Want,
    Woke,
)
from sojourn.core.tenure import Evidence, claimed_record
from sojourn.errors import SojournError
from sojourn.ids import BlobId, CapsuleId, Epoch, EventId, Incarnation, MachineId, MoveId

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts" / "migration"
CAPSULE = CapsuleId("capsule")
NAMES = ("A", "B", "C")


@dataclass
class Story:
    """Three machines, what they wrote, and everything that was ever said."""

    records: dict[str, LedgerRecord | None] = field(default_factory=dict[str, LedgerRecord | None])
    boots: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 1))
    said: list[tuple[str, str, Any]] = field(default_factory=list[tuple[str, str, Any]])
    answers: list[tuple[str, str, Any, Any]] = field(
        default_factory=list[tuple[str, str, Any, Any]]
    )
    steps: int = 0

    def tell(self, command: str) -> list[str]:
        """What becomes of one line that begins with `>`."""
        who, *words = command.split()
        match words:
            case ["holds", "the", "capsule", "at", "epoch", number]:
                self.records[who] = first_record(
                    capsule=CAPSULE,
                    incarnation=Incarnation("first"),
                    folder="",
                    workspace="",
                    epoch=Epoch(int(number)),
                )
                return []
            case ["begins", move, "to", other]:
                offer = Offer(
                    root=BlobId(f"manifest of {move}"),
                    last=EventId(f"last event before {move}"),
                    name="",
                    files=0,
                    size=0,
                    final=True,
                )
                given = Begin(
                    move=MoveId(move), target=MachineId(other), address=other, offer=offer
                )
                return self._take(who, given)
            case ["hears", message, move, *_] if message in MESSAGES:
                return self._hears(who, message, move)
            case ["hears", answer, "to", message, move]:
                return self._answered(who, answer, message, move)
            case ["gets", "no", "answer", "to", message, move]:
                sent = self._said(message, move, by=who)
                return self._take(who, Lost(message=sent[2]))
            case ["checked", move, *red]:
                problems = (Problem(what=" ".join(red), ok=False),) if red else ()
                asked = self._said("prepare", move, to=who)
                return self._take(who, Checked(move=MoveId(move), problems=problems), asked)
            case ["dies", "and", "starts"]:
                return self._starts(who)
            case ["loses", "its", "record"]:
                self.records[who] = None
                return []
            case ["is", "adopted"]:
                return self._adopted(who)
            case _:
                return self._take(who, _word_of(words))

    def _hears(self, who: str, message: str, move: str) -> list[str]:
        asked = self._said(message, move, to=who)
        sender, sent = asked[0], asked[2]
        return self._take(who, Asked(message=sent, sender=MachineId(sender)), asked)

    def _answered(self, who: str, answer: str, message: str, move: str) -> list[str]:
        for sender, by, sent, told in reversed(self.answers):
            named = (sender, _name(told), _name(sent), sent.move)
            if named == (who, answer, message, move):
                return self._take(who, Answered(message=sent, answer=told, by=MachineId(by)))
        raise LookupError(f"nobody answered {answer} to {message} {move}")

    def _said(
        self, message: str, move: str, *, by: str | None = None, to: str | None = None
    ) -> tuple[str, str, Any]:
        for one in reversed(self.said):
            fits = (_name(one[2]), one[2].move) == (message, move)
            if fits and by in (None, one[0]) and to in (None, one[1]):
                return one
        raise LookupError(f"nobody said {message} {move}")

    def _starts(self, who: str) -> list[str]:
        self.boots[who] += 1
        return [*self._take(who, Booted()), *self._take(who, Woke())]

    def _adopted(self, who: str) -> list[str]:
        evidence = Evidence(
            capsule=CAPSULE,
            folder="",
            record=self.records.get(who),
            length=0,
            at_tip=None,
            highest_epoch=Epoch(2),
        )
        claim = PendingClaim(how="adopt", by="")
        record = claimed_record(evidence, claim, incarnation=Incarnation("adopted"), workspace="")
        self.records[who] = record
        return [f"{who} writes    {_record(record)}"]

    def _take(self, who: str, given: Given, asked: tuple[str, str, Any] | None = None) -> list[str]:
        before = self.records.get(who)
        try:
            ready = self._step(who, given)
        except SojournError as error:
            return [f"{who} refuses   {error.code}: {error.message}"]
        told: list[str] = []
        if ready.record is not before and ready.record is not None:
            self.records[who] = ready.record
            told.append(f"{who} writes    {_record(ready.record)}")
            told += self._death(who, ready)
        for effect in ready.effects:
            told.append(f"{who} {self._effect(who, effect, asked)}")
        return told or [f"{who} does nothing"]

    def _step(self, who: str, given: Given, record: LedgerRecord | None = None) -> Ready:
        self.steps += 1
        here = Here(
            machine=MachineId(who),
            capsule=CAPSULE,
            boot=f"start {self.boots[who]}",
            fresh=str(self.steps),
        )
        return step(record or self.records.get(who), given, here)

    def _death(self, who: str, ready: Ready) -> list[str]:
        """What a death right after this write, before anything is told, comes to."""
        booted = self._step(who, Booted(), ready.record)
        woken = self._step(who, Woke(), booted.record)
        if woken.record is None:
            return []
        state = "the same" if woken.record is ready.record else _record(woken.record)
        effects = [*booted.effects, *woken.effects]
        tells = [f"tells {_name(e.message)}" for e in effects if isinstance(e, Tell)]
        sweeps = ["removes what came" for e in effects if isinstance(e, Sweep)]
        return [f"  (dying here it starts as {'; '.join([state, *sweeps, *tells])})"]

    def _effect(self, who: str, effect: Any, asked: tuple[str, str, Any] | None) -> str:
        match effect:
            case Tell():
                self.said.append((who, effect.to, effect.message))
                return f"tells {effect.to}   {_name(effect.message)} {effect.message.move}"
            case Reply() | Want():
                answer = effect.answer if isinstance(effect, Reply) else NOTHING
                sender, _, sent = asked or (who, who, None)
                self.answers.append((sender, who, sent, answer))
                code = getattr(answer, "code", "")
                return f"answers   {_name(answer)}{f' ({code})' if code else ''}"
            case Send():
                return f"sends {effect.to}   what it lacks"
            case Verify():
                return f"verifies  everything that came by {effect.slot.move}"
            case Sweep():
                return f"removes   what came by {effect.slot.move}"
            case Open():
                return f"goes on   as the holder, by {effect.move}"
            case GoOn():
                return "goes on   as before"
            case Gone():
                return f"forwards  what waits here, and what comes, to {effect.tombstone.target}"
            case Take():
                return "keeps     the messages"
            case _:
                raise TypeError(effect)


NOTHING = Wanted(contents=(), log=0, prefix=BlobId("0"))
MESSAGES = frozenset(("propose", "prepare", "activate", "resolve", "abort", "retired", "who"))


def _word_of(words: list[str]) -> Given:
    match words:
        case ["cancels"]:
            return Cancel()
        case ["asks", "again"]:
            return Again()
        case ["drops", move]:
            return Expired(move=MoveId(move))
        case ["disowns", move, "of", "epoch", number]:
            return Disowned(move=MoveId(move), epoch=Epoch(int(number)))
        case ["is", "told", "by", "a", "person", "to", "go", "on"]:
            return Decided(how="resume", by="user")
        case ["is", "told", "by", "a", "person", "to", "retire"]:
            return Decided(how="retire", by="user")
        case _:
            raise LookupError(f"no such line: {' '.join(words)}")


def _name(value: Any) -> str:
    """How the message or the answer is named on the wire."""
    return str(value.__struct_config__.tag)


def _record(record: LedgerRecord) -> str:
    parts = [record.state, f"epoch {record.epoch}, floor {record.floor}"]
    moves = record.travels
    if moves is None:
        return ", ".join(parts)
    if moves.outgoing is not None:
        ticket = ", ticket" if moves.outgoing.ticket else ""
        parts.append(f"{moves.outgoing.move} to {moves.outgoing.target}{ticket}")
    if moves.slot is not None:
        parts.append(f"{moves.slot.move} arriving{', ticket' if moves.slot.ticket else ''}")
    parts += [f"came by {one.move}" for one in moves.activations]
    parts += [f"{one.target} is to be told that {one.move} is off" for one in moves.cancelled]
    if moves.went is not None:
        parts.append(f"gone to {moves.went.target}")
    parts += [f"disowned {one}" for one in moves.disowned]
    return ", ".join(parts)


def told(text: str) -> str:
    """The whole file, with what the machines do after each line that begins with `>`."""
    story, lines = Story(), list[str]()
    for line in text.splitlines():
        if line.startswith((">", "#")) or not line.strip():
            lines.append(line)
        if line.startswith(">"):
            lines += [f"    {one}" for one in story.tell(line.removeprefix(">").strip())]
    return "\n".join(lines) + "\n"


def main() -> None:
    chosen = [Path(name) for name in sys.argv[1:]] or sorted(SCRIPTS.glob("*.txt"))
    for path in chosen:
        path.write_text(told(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
