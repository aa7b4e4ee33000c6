"""The chart of a log: its strands, and what each did, turn by turn (docs/protocol.md#lineage)."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from sojourn.core.strands import Strands
from sojourn.format.capsule_kinds import Activated, Claimed, Forked
from sojourn.format.event import (
    Created,
    Event,
    Input,
    ModelIntent,
    ToolIntent,
    TurnEnded,
    TurnPaused,
    TurnTaken,
)
from sojourn.format.parts import Text, TextPart
from sojourn.ids import CapsuleId, EventId, Incarnation, MachineId, TurnId

Ending: TypeAlias = Literal[
    "open", "rest", "limit", "failed", "set_aside", "stopped", "decision", "model"
]
"""How a turn stands: open, ended for a reason, or paused for one."""

SHOWN: Final = frozenset(("snapshot", "restored", "sealed", "redacted", "repaired", "cut"))
"""Kinds that have a row of their own, beside beginnings and turns."""


@dataclass(slots=True, kw_only=True)
class Row:
    """One thing that a strand did, where it began; `kind` is an event's kind, or `turn`.

    `number` is that of the event in the log. `over` are the strands that a beginning goes on from,
    the one that counts first. `said` is the first message of a turn; calls are counted by their
    intents.
    """

    strand: int
    kind: str
    event: EventId
    number: int
    time: str
    epoch: int
    over: tuple[int, ...] = ()
    said: Text = ""
    ended: Ending = "open"
    last_time: str = ""
    model_calls: int = 0
    tool_calls: int = 0


@dataclass(slots=True, kw_only=True)
class Strand:
    """One strand of a log: who wrote how much of it, of which capsule, up to which head."""

    machine: MachineId
    incarnation: Incarnation
    capsule: CapsuleId | None
    begin: EventId
    head: EventId
    epoch: int
    second_side: bool
    events: int = 0


@dataclass(slots=True)
class Chart:
    """Takes the events of a log in their order; `rows` are in that order, too."""

    strands: list[Strand] = field(default_factory=list[Strand])
    rows: list[Row] = field(default_factory=list[Row])
    snapshot: EventId | None = None
    _number: int = 0
    _lines: Strands = field(default_factory=Strands)
    _turns: dict[tuple[int, TurnId], Row] = field(default_factory=dict[tuple[int, TurnId], Row])
    _open: dict[int, Row] = field(default_factory=dict[int, Row])
    _inputs: dict[EventId, Text] = field(default_factory=dict[EventId, Text])

    def apply(self, event: Event, number: int) -> None:
        """Take in the log's next event, which has this number."""
        self._number = number
        at = self._lines.follow(event)
        if at == len(self.strands):
            self._begin(at, event)
        strand = self.strands[at]
        strand.events += 1
        strand.head, strand.epoch = event.id, event.header.epoch
        body = event.body
        match body:
            case Input():
                self._inputs[event.id] = _first_text(body)
            case TurnTaken():
                self._taken(at, event, body.turn)
            case ModelIntent() | ToolIntent():
                self._called(at, body)
            case TurnPaused() | TurnEnded():
                row = self._turns.get((at, body.turn))
                if row is not None:
                    row.ended, row.last_time = body.reason, event.header.time
            case _:
                self._other(at, event)

    def _begin(self, at: int, event: Event) -> None:
        header = event.header
        over = self._lines.over(at)
        self.strands.append(
            Strand(
                machine=header.machine,
                incarnation=header.incarnation,
                capsule=self._lines.capsules[at],
                begin=event.id,
                head=event.id,
                epoch=header.epoch,
                second_side=header.prev is not None,
            )
        )
        named = isinstance(event.body, Created | Forked | Claimed | Activated)
        kind = header.kind if named else "second_side" if header.prev is not None else "chain"
        self.rows.append(self._row(at, event, kind, over=over))

    def _row(self, at: int, event: Event, kind: str, *, over: tuple[int, ...] = ()) -> Row:
        header = event.header
        return Row(
            strand=at,
            kind=kind,
            event=event.id,
            number=self._number,
            time=header.time,
            epoch=header.epoch,
            over=over,
            last_time=header.time,
        )

    def _taken(self, at: int, event: Event, turn: TurnId) -> None:
        row = self._turns.get((at, turn))
        if row is None:
            row = self._turns[at, turn] = self._row(at, event, "turn")
            row.said = self._inputs.get(EventId(turn), "")
            self.rows.append(row)
        row.ended = "open"
        self._open[at] = row

    def _called(self, at: int, body: ModelIntent | ToolIntent) -> None:
        row = self._open.get(at)
        if row is None:
            return
        if isinstance(body, ModelIntent):
            row.model_calls += 1
        else:
            row.tool_calls += 1

    def _other(self, at: int, event: Event) -> None:
        if event.header.kind in SHOWN:
            self.rows.append(self._row(at, event, event.header.kind))
        if event.header.kind == "snapshot":
            self.snapshot = event.id


def _first_text(body: Input) -> Text:
    return next((part.text for part in body.parts if isinstance(part, TextPart)), "")
