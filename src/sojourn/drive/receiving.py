"""The machine that a capsule is moved to: answers messages and keeps what is sent.

core/migration.py decides; here its effects are done, each after the record is durable
(docs/moving.md#target). Nothing of what arrives runs before the capsule is held here.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar, assert_never

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration import step
from sojourn.core.migration_messages import (
    Abort,
    Answer,
    Check,
    Forward,
    Message,
    Noted,
    Problem,
    Propose,
    Refused,
)
from sojourn.core.migration_target import refusal_of_contents
from sojourn.core.migration_values import (
    Asked,
    Booted,
    Checked,
    Effect,
    Expired,
    Given,
    Gone,
    GoOn,
    Here,
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
from sojourn.drive.arrival import Arrival, Judge, older_copy
from sojourn.drive.machine import Ports
from sojourn.errors import (
    FormatError,
    HeldElsewhereError,
    MigrationError,
    StorageError,
    UsageError,
)
from sojourn.ids import CapsuleId, Epoch, MachineId, MoveId
from sojourn.ports import Message as InboxMessage
from sojourn.ports_move import Piece

_Value = TypeVar("_Value")

BUSY: Final = "busy"

MOST_ARRIVALS: Final = 16
"""Capsules that may be arriving at once."""

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

IDLE_SECONDS: Final = 3600.0
CACHED_SECONDS: Final = 24 * 3600.0

GONE: Final = Problem(
    what="contents", ok=False, code="not_here", message="what came is not here any more"
)


@dataclass(slots=True, kw_only=True)
class MoveReceiver:
    """The `Receiver` port. `boot` is the nonce of this start of the daemon.

    `found` says the highest epoch that folders of a capsule name here. `doubtful` is told of a
    capsule about whose own move somebody should be asked.
    """

    ports: Ports
    boot: str
    judge: Judge
    found: Callable[[CapsuleId], Epoch]
    doubtful: Callable[[CapsuleId], None] = lambda _: None
    _arrivals: dict[tuple[CapsuleId, MoveId], Arrival] = field(
        default_factory=dict[tuple[CapsuleId, MoveId], Arrival]
    )
    _busy: dict[CapsuleId, asyncio.Lock] = field(default_factory=dict[CapsuleId, asyncio.Lock])

    async def answer(self, message: Message, *, sender: MachineId, address: str) -> Answer:
        """See `ports_move.Receiver`."""
        await self.expire()
        async with self._alone(message.capsule):
            landing = self.ports.landing.at(message.capsule, message.move)
            given = Asked(
                message=message,
                sender=sender,
                address=address,
                landing=landing,
                folder=self._folder_for(message),
                workspace=self.ports.landing.free_workspace(message.capsule),
            )
            try:
                answer = await self._decide(message.capsule, given, sender=sender)
            except HeldElsewhereError as error:
                return Refused(code=BUSY, message=error.message, hint="Ask again.")
            if isinstance(message, Abort) and isinstance(answer, Noted):
                self._drop_unproposed(message, sender)
            return answer

    async def take(
        self, capsule: CapsuleId, move: MoveId, pieces: AsyncIterator[Piece], *, sender: MachineId
    ) -> None:
        """See `ports_move.Receiver`."""
        arrival = self._arrivals.get((capsule, move))
        if arrival is None or arrival.sender != sender:
            raise MigrationError("nothing of this move was asked for", code="not_asked_for")
        refused = refusal_of_contents(self._record(capsule), move, sender)
        if refused is not None:
            raise MigrationError(refused.message, code=refused.code)
        async for piece in pieces:
            # Between two pieces, which may be long, the move may end, or what came be verified.
            async with self._alone(capsule):
                if self._arrivals.get((capsule, move)) is not arrival:
                    raise MigrationError("this move is over", code="not_asked_for")
                arrival.take(piece)

    async def boot_up(self) -> None:
        """Forget what was arriving when the last start ended, and open what was activated.

        Raises: StorageError.
        """
        for capsule in self.ports.ledger.capsules():
            with suppress(HeldElsewhereError, FormatError):
                await self._decide(capsule, Booted(), always=True)
        for landing in self.ports.landing.landings():
            capsule, move = landing.split("/")[-2:]
            self._tidy(CapsuleId(capsule), MoveId(move), landing)
        self.ports.landing.tidy(CACHED_SECONDS)

    def _tidy(self, capsule: CapsuleId, move: MoveId, landing: str) -> None:
        """Remove a landing that no record names; where a record may be lost, leave it all."""
        record = self._record(capsule)
        moves = None if record is None else record.travels
        if record is None:
            if not self.ports.landing.is_placed(landing):
                self.ports.landing.drop(landing)
            return
        if moves is not None and any(one.move == move for one in moves.activations):
            if moves.arrived is None or moves.arrived.move != move:
                self.ports.landing.live(landing)
        elif record.slot is None or record.slot.move != move:
            self.ports.landing.drop(landing)

    async def _decide(
        self,
        capsule: CapsuleId,
        given: Given,
        *,
        sender: MachineId | None = None,
        always: bool = False,
    ) -> Answer:
        """Decide, write down, do. `always` writes the record again even if it stays the same."""
        here = Here(
            machine=self.ports.key.machine(),
            capsule=capsule,
            boot=self.boot,
            fresh=self.ports.randomness.token(16).hex(),
            found=self.found(capsule),
        )
        record = self._record(capsule)
        ready = step(record, given, here)
        if always or ready.record != record:
            with self.ports.lock.acquire(capsule):
                ready = self._written(capsule, given, here)
        return await self._perform(capsule, ready, sender or here.machine)

    def _written(self, capsule: CapsuleId, given: Given, here: Here) -> Ready:
        """The step once more under the lock, its record durable."""
        try:
            record = self.ports.ledger.recover(capsule)
        except FormatError:
            record = None
        ready = step(record, given, here)
        if ready.record is not None and ready.record != record:
            self.ports.ledger.save(ready.record)
        return ready

    async def _perform(self, capsule: CapsuleId, ready: Ready, sender: MachineId) -> Answer:
        answer: Answer = Noted()
        for effect in ready.effects:
            done = await self._do(capsule, effect, sender)
            answer = answer if done is None else done
        return answer

    async def _do(self, capsule: CapsuleId, effect: Effect, sender: MachineId) -> Answer | None:
        match effect:
            case Reply(answer=answer):
                return answer
            case Want(message=message):
                return await self._want(message, sender)
            case Verify(slot=slot):
                arrival = self._arrivals.get((capsule, slot.move))
                given = (
                    Checked(move=slot.move, problems=(GONE,))
                    if arrival is None
                    else await _in_thread(arrival.prepare(slot))
                )
                return await self._decide(capsule, given, sender=sender)
            case Sweep(slot=slot):
                self._arrivals.pop((capsule, slot.move), None)
                with suppress(StorageError):
                    # What is left is removed at the next start.
                    self.ports.landing.drop(slot.landing)
            case Take(message=message):
                try:
                    return self._keep(message)
                except (StorageError, UsageError) as error:
                    return Refused(code=error.code, message=error.message, hint=error.hint)
            case Open() | GoOn():
                record = self._record(capsule)
                if record is not None:
                    self.ports.queue.put(capsule, record.folder)
            case Tell() | Send() | Gone():
                self.doubtful(capsule)
            case _:
                assert_never(effect)
        return None

    async def _want(self, message: Message, sender: MachineId) -> Answer:
        """What is lacking here of an offer, and once nothing is, how far the machine is fit."""
        if not isinstance(message, Check | Propose):
            return Refused(code="not_an_offer", message="nothing was offered")
        try:
            arrival = self._arrival(message, sender)
            return await _in_thread(arrival.want(message.offer))
        except (FormatError, MigrationError, StorageError) as error:
            # Nothing was promised by it, so a failed write is a reason like any other.
            return Refused(code=error.code, message=error.message, hint=error.hint)

    def _arrival(self, message: Check | Propose, sender: MachineId) -> Arrival:
        """What is known of the move; an earlier one of the capsule from the same machine goes.

        Raises: MigrationError `busy`.
        """
        key = (message.capsule, message.move)
        known = self._arrivals.get(key)
        if known is not None and known.sender == sender:
            return known
        if known is not None:
            raise MigrationError("this move is of another machine", code="not_yours")
        self._drop_idle(message.capsule)
        if len(self._arrivals) >= MOST_ARRIVALS:
            raise MigrationError(
                "too many capsules arrive there at once", code="busy", hint="Try again later."
            )
        made = self._arrivals[key] = Arrival(
            ports=self.ports,
            capsule=message.capsule,
            move=message.move,
            sender=sender,
            landing=self.ports.landing.at(*key),
            judge=self.judge,
            older=older_copy(self.ports, message.capsule),
        )
        return made

    async def expire(self) -> None:
        """Forget what has not come on for an hour; a source that is still there begins anew.

        Raises: StorageError.
        """
        now = self.ports.clock.monotonic()
        for (capsule, move), arrival in list(self._arrivals.items()):
            if now - arrival.touched < IDLE_SECONDS or self._alone(capsule).locked():
                continue
            async with self._alone(capsule):
                with suppress(HeldElsewhereError):
                    await self._decide(capsule, Expired(move=move))
                self._arrivals.pop((capsule, move), None)
                record = self._record(capsule)
                if record is None or record.slot is None or record.slot.move != move:
                    self._tidy(capsule, move, arrival.landing)

    def _drop_unproposed(self, message: Abort, sender: MachineId) -> None:
        """What came by checks alone of a move that was given up goes, as what a slot names does."""
        key = (message.capsule, message.move)
        arrival = self._arrivals.get(key)
        if arrival is not None and arrival.sender == sender:
            del self._arrivals[key]
            with suppress(StorageError):
                self.ports.landing.drop(arrival.landing)

    def _drop_idle(self, capsule: CapsuleId) -> None:
        """Forget moves of the capsule that no record names: their source gave them up."""
        record = self._record(capsule)
        slot = None if record is None else record.slot
        for key, arrival in list(self._arrivals.items()):
            if key[0] == capsule and (slot is None or slot.move != key[1]):
                del self._arrivals[key]
                self.ports.landing.drop(arrival.landing)

    def _keep(self, message: Message) -> Answer:
        """Messages that waited at a machine that the capsule left."""
        if not isinstance(message, Forward):
            return Refused(code="not_a_message", message="nothing was forwarded")
        record = self._record(message.capsule)
        if record is not None and record.state == "HOLDER":
            self.ports.queue.put(message.capsule, record.folder)
        for item in message.items:
            self.ports.inbox.put(
                message.capsule,
                InboxMessage(
                    request=item.request,
                    author=item.author,
                    text=item.text,
                    kind=item.kind,
                    before=item.before,
                ),
            )
        return Noted()

    def _folder_for(self, message: Message) -> str:
        """Where a capsule that is proposed would lie, by its name as far as that can be one."""
        if not isinstance(message, Propose):
            return ""
        name = message.offer.name if NAME.fullmatch(message.offer.name) else "capsule"
        return self.ports.landing.free_folder(name)

    def _record(self, capsule: CapsuleId) -> LedgerRecord | None:
        try:
            return self.ports.ledger.load(capsule)
        except FormatError:
            return None

    def _alone(self, capsule: CapsuleId) -> asyncio.Lock:
        return self._busy.setdefault(capsule, asyncio.Lock())


async def _in_thread(work: Coroutine[None, None, _Value]) -> _Value:
    """Do the work beside the others that this process answers; it is over when this returns.

    Whoever asked may be gone by then. What it reads and writes is the capsule's alone, whose other
    messages wait, or is locked below.
    """
    task = asyncio.ensure_future(asyncio.to_thread(asyncio.run, work))
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.exception()
        raise asyncio.CancelledError
    return task.result()
