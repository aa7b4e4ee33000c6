"""Carries out what the machine of moves decides for the source (docs/moving.md#source).

Each effect is done after the record is durable, and what comes of it is what happens next. The
caller has the capsule's lock.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar, assert_never

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration import step
from sojourn.core.migration_messages import (
    Abort,
    Activate,
    Answer,
    Message,
    Prepare,
    Prepared,
    Problem,
    Propose,
    Refused,
    Retired,
    Unknown,
    Wanted,
)
from sojourn.core.migration_values import (
    Answered,
    Cancel,
    Effect,
    Given,
    Gone,
    GoOn,
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
)
from sojourn.drive.ahead import Sender
from sojourn.drive.forwarding import forward
from sojourn.drive.machine import Ports
from sojourn.drive.offering import Offered
from sojourn.drive.opening import here_of
from sojourn.errors import MigrationError, PeerError, SojournError, StoppedError
from sojourn.ids import CapsuleId
from sojourn.ports_move import Peer

Phase: TypeAlias = Literal[
    "check", "send", "stop", "freeze", "propose", "delta", "prepare", "activate", "retire", "cancel"
]

_Value = TypeVar("_Value")


class Watcher(Protocol):
    """Is told how a move gets on; seconds and bytes are counted by whoever watches."""

    def phase(self, phase: Phase) -> None: ...

    def sent(self, size: int) -> None: ...


@dataclass(slots=True, kw_only=True)
class Crossing:
    """The source's side of moves of one capsule, towards the machine of `peer`.

    `sender` and `offered` are what is moved now, None where an earlier move is only settled.
    `stop` ends what may still be cancelled. `refused` is why a move was cancelled, `forwarded`
    counts messages that went on to the machine that has the capsule now; `forgotten` says that the
    target lost its memory of a move in doubt.
    """

    ports: Ports
    peer: Peer
    capsule: CapsuleId
    folder: str
    watcher: Watcher
    stop: asyncio.Event
    sender: Sender | None = None
    offered: Offered | None = None
    checklist: tuple[Problem, ...] = ()
    refused: Refused | None = None
    began: float | None = None
    frozen: float = 0.0
    forwarded: int = 0
    forgotten: bool = False

    async def decide(self, given: Given) -> None:
        """Take one thing that happened, and all that follows from it. Raises: StorageError."""
        await self._perform(self.write(given))

    def write(self, given: Given) -> Ready:
        """Decide, and make what was decided durable."""
        return write(self.ports, self.capsule, given)

    async def _perform(self, ready: Ready) -> None:
        for effect in ready.effects:
            if not await self._do(effect):
                return

    async def _do(self, effect: Effect) -> bool:
        """Do one effect; False when those after it must not be done."""
        match effect:
            case Tell():
                if effect.to == self.peer.machine:
                    await self._tell(effect.message)
            case Send():
                return await self._send(effect)
            case GoOn():
                self._stop_clock()
                self.ports.queue.put(self.capsule, self.folder)
            case Gone(tombstone=went):
                self._stop_clock()
                self.forwarded = await forward(self.ports, self.peer, self.capsule, went.move)
                forget_job(self.ports, self.capsule)
            case Open() | Reply() | Sweep() | Take() | Verify() | Want():
                raise RuntimeError("the source of a move was asked to act as its target")
            case _:
                assert_never(effect)
        return True

    async def _tell(self, message: Message) -> None:
        """Say it; the answer, or that there is none, is what happens next."""
        self._show(message)
        asking = self.peer.ask(message)
        given: Given
        try:
            cancellable = isinstance(message, Propose | Prepare)
            answer = await (self.unless_stopped(asking) if cancellable else asking)
        except PeerError as error:
            self._note(error)
            given = Lost(message=message)
        except StoppedError as error:
            self._note(error)
            given = Cancel()
        else:
            self._keep(message, answer)
            given = Answered(message=message, answer=answer, by=self.peer.machine)
        await self.decide(given)

    async def _send(self, effect: Send) -> bool:
        """Send what is lacking of the sealed capsule; when that fails the move is over."""
        if self.sender is None or self.offered is None:
            raise RuntimeError("a move without its offer")
        self.watcher.phase("delta")
        message = effect.message
        if not isinstance(message, Propose):
            raise RuntimeError("contents are sent for a proposal")
        failure: Given
        try:
            answer = await self.unless_stopped(
                self.sender.deliver(self.offered, message, effect.wanted)
            )
            if isinstance(answer, Wanted):
                return True
            self._keep(message, answer)
            failure = Answered(message=message, answer=answer, by=self.peer.machine)
        except StoppedError as error:
            self._note(error)
            failure = Cancel()
        except (PeerError, MigrationError) as error:
            self._note(error)
            failure = Lost(message=message)
        await self.decide(failure)
        return False

    def _keep(self, message: Message, answer: Answer) -> None:
        """Remember for people what was answered."""
        if isinstance(answer, Refused) and isinstance(message, Propose | Prepare):
            self.refused, self.checklist = answer, answer.checklist or self.checklist
        elif isinstance(answer, Prepared):
            self.checklist = answer.checklist or self.checklist
        elif isinstance(answer, Unknown):
            self.forgotten = True

    def _note(self, error: SojournError) -> None:
        self.refused = Refused(code=error.code, message=error.message, hint=error.hint)

    def _show(self, message: Message) -> None:
        match message:
            case Propose():
                self.watcher.phase("propose")
            case Prepare():
                self.watcher.phase("prepare")
            case Activate():
                self.watcher.phase("activate")
            case Retired():
                self.watcher.phase("retire")
            case Abort():
                self.watcher.phase("cancel")
            case _:
                pass

    async def unless_stopped(self, work: Coroutine[None, None, _Value]) -> _Value:
        """The result of the work, ended as soon as somebody wants it to stop.

        Raises: StoppedError; what the work raises.
        """
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not task.done():
                task.cancel()
        if self.stop.is_set():
            # Also when it was done just now: what comes next shall not be begun.
            with suppress(asyncio.CancelledError, SojournError):
                await task
            raise stopped()
        return await task

    def _stop_clock(self) -> None:
        if self.began is not None:
            self.frozen = self.ports.clock.monotonic() - self.began
            self.began = None

    def state(self) -> str:
        """The state that the record says."""
        record = self._record()
        return "NONE" if record is None else record.state

    def _record(self) -> LedgerRecord | None:
        return self.ports.ledger.load(self.capsule)


def write(ports: Ports, capsule: CapsuleId, given: Given) -> Ready:
    """Decide under the capsule's lock, and make what was decided durable.

    Raises: MigrationError, LimitError; StorageError.
    """
    record = ports.ledger.load(capsule)
    ready = step(record, given, here_of(ports, capsule))
    if ready.record is not None and ready.record != record:
        ports.ledger.save(ready.record)
    return ready


def stopped() -> StoppedError:
    """The error of a move that a person gave up before the point of no return."""
    return StoppedError(
        "the move was cancelled", code="move_cancelled", state="The agent goes on here."
    )


def forget_job(ports: Ports, capsule: CapsuleId) -> None:
    """No turn of a capsule that is held elsewhere waits here.

    A wake-up that cannot be taken back finds nothing to do: the move is as done without it.
    """
    with suppress(SojournError):
        job = ports.queue.lease(capsule, "move", is_free=lambda _: True)
        if job is not None:
            ports.queue.ack(job)
