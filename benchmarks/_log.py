"""Makes a capsule with a long log: the events that a run of so many steps appends, not synced."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path

from _env import PEERS

from sojourn import Machine
from sojourn.agent import Place
from sojourn.format.event import (
    AnyBody,
    Event,
    Input,
    Issuer,
    ModelIntent,
    ModelOutcome,
    ToolIntent,
    ToolOutcome,
    TurnTaken,
)
from sojourn.format.parts import CallPart, TextPart
from sojourn.format.timeline_write import SALT_BYTES, Chain, salts, write_line
from sojourn.ids import CapsuleId, RequestId, RunnerId, TurnId, call_key

sys.path.insert(0, str(PEERS))

from workload import PROMPT, TOOL_NAME, reply_of, result_of

ISSUER = Issuer(provider="scripted", api="openai_chat", scope="default", model="local")
RUNNER = RunnerId("5" * 32)
TIME = "2026-01-01T00:00:00.000Z"
WRITE_BYTES = 8_000_000


def machine_in(folder: Path) -> Machine:
    """Return the machine whose state lies beside the capsule of this folder."""
    return Machine({"SOJOURN_HOME": str(folder / "state")})


def capsule_in(folder: Path) -> Place:
    """Return the capsule of this folder."""
    return machine_in(folder).find(str(folder / "capsule"))


def timeline(folder: Path) -> Path:
    """Return the log's path."""
    return folder / "capsule/memory/timeline_events.jsonl"


@dataclass(frozen=True, kw_only=True)
class Made:
    """A log that was made; `size` in bytes."""

    events: int
    size: int


def make(folder: Path, *, events: int | None = None, size: int | None = None) -> Made:
    """Make a capsule whose log has at least so many events, or so many bytes."""
    machine = machine_in(folder)
    place = asyncio.run(machine.create(str(folder / "capsule"), model="echo"))
    first = list(machine.look(place).events_of())
    path = timeline(folder)
    made, length = len(first), path.stat().st_size
    with path.open("ab", buffering=WRITE_BYTES) as file:
        for data, number in _Writing(place.capsule, first).appends():
            file.write(data)
            made, length = made + number, length + len(data)
            if made >= (events or 0) and length >= (size or 0):
                break
    return Made(events=made, size=length)


class _Writing:
    """Writes the appends of one turn, one after the other."""

    def __init__(self, capsule: CapsuleId, first: Sequence[Event]) -> None:
        header = first[-1].header
        self._capsule = capsule
        self._configured = first[-1].id
        self._salts = count()
        self._chain = Chain(
            machine=header.machine,
            incarnation=header.incarnation,
            epoch=header.epoch,
            seq=type(header.seq)(header.seq + 1),
            head=first[-1].id,
            clock=header.clock,
        )

    def appends(self) -> Iterator[tuple[bytes, int]]:
        """Yield the bytes and the number of events of each append, without end."""
        self._lines: list[bytes] = []
        said = Input(request=RequestId("first"), author="user", parts=(TextPart(text=PROMPT),))
        turn = TurnId(self._draft(said).id)
        last = self._draft(TurnTaken(turn=turn, runner=RUNNER, boot="boot"))
        for step in count():
            last = self._draft(self._model_intent(turn, last))
            yield self._append()
            reply = self._draft(self._model_outcome(turn, last, step))
            wanted = self._tool_intent(turn, reply)
            self._draft(wanted)
            yield self._append()
            parts = (TextPart(text=result_of(step)),)
            last = self._draft(ToolOutcome(turn=turn, call=wanted.call, status="done", parts=parts))

    def _model_intent(self, turn: TurnId, after: Event) -> ModelIntent:
        return ModelIntent(
            turn=turn,
            call=call_key(capsule=self._capsule, requested_by=after.id, index=0),
            runner=RUNNER,
            configured=self._configured,
            issuer=ISSUER,
        )

    def _model_outcome(self, turn: TurnId, intent: Event, step: int) -> ModelOutcome:
        reply = reply_of(step)
        call = intent.body.call if isinstance(intent.body, ModelIntent) else None
        if call is None:
            raise RuntimeError("the last event is no model intent")
        asked = CallPart(tool=TOOL_NAME, args=reply.arguments, native_id=f"c{step}")
        return ModelOutcome(
            turn=turn,
            call=call,
            status="done",
            issuer=ISSUER,
            answered_by="local",
            parts=(TextPart(text=reply.text), asked),
            stop="calls",
            native_stop="tool_calls",
        )

    def _tool_intent(self, turn: TurnId, reply: Event) -> ToolIntent:
        return ToolIntent(
            turn=turn,
            call=call_key(capsule=self._capsule, requested_by=reply.id, index=0),
            runner=RUNNER,
            requested_by=reply.id,
            index=0,
            tool=TOOL_NAME,
            replay="safe",
        )

    def _draft(self, body: AnyBody) -> Event:
        token = sha256(str(next(self._salts)).encode()).digest()[:SALT_BYTES]
        batch = type(self._chain.seq)(self._chain.seq - len(self._lines))
        (salt,) = salts(token)
        made = write_line(body, {}, chain=self._chain, batch=batch, time=TIME, salt=salt)
        self._chain = made.chain
        self._lines.append(made.data)
        return made.event

    def _append(self) -> tuple[bytes, int]:
        data, number = b"".join(self._lines), len(self._lines)
        self._lines = []
        return data, number
