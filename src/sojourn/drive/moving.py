"""Moves a capsule to another machine, from the machine that holds it (docs/moving.md#source).

core/migration.py decides; here its effects are done, each after the record is durable. All that
need not wait is sent before the freeze, so that the time frozen does not depend on the size.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration import step
from sojourn.core.migration_messages import Answer, Offer, Problem, Refused, Wanted
from sojourn.core.migration_values import Again, Begin, Cancel
from sojourn.core.tenure import MayLook, admit
from sojourn.drive.ahead import Sender, refusal_in
from sojourn.drive.crossing import Crossing, Watcher, stopped
from sojourn.drive.export import seal_capsule
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.offering import Folder, LogReading, Offered, sealed_offer
from sojourn.drive.opening import examine, here_of, opened, refusal, thaw
from sojourn.drive.snapshots import Keeper
from sojourn.errors import HeldElsewhereError, MigrationError
from sojourn.ids import BlobId, CapsuleId, EventId, MoveId
from sojourn.ports import HeldBy
from sojourn.ports_move import Peer

Outcome: TypeAlias = Literal["moved", "cancelled", "in_doubt", "fit", "unfit"]

NOTHING: Final = Offer(
    root=BlobId("0" * 64), last=EventId("0" * 64), name="", files=0, size=0, final=True
)
"""Stands for an offer where it is only asked whether there may be one."""

LOOK: Final = 0.01
"""Seconds between two looks whether the process that ran the agent let go."""

PATIENCE: Final = 30.0
"""Seconds, beyond the grace of a call, for a process to let go."""

ASKS: Final = 3
ASK_AGAIN: Final = 1.0
"""How often a move in doubt is asked about, and after how many seconds, before it is left so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How a move ended; `refused` is why it was not begun or was cancelled.

    `sent` are bytes before the freeze and after it; `frozen` the seconds in which nobody could
    run; `forwarded` messages that waited here and are there now.
    """

    outcome: Outcome
    move: MoveId
    checklist: tuple[Problem, ...] = ()
    refused: Refused | None = None
    sent: tuple[int, int] = (0, 0)
    frozen: float = 0.0
    forwarded: int = 0


@dataclass(slots=True, kw_only=True)
class Mover:
    """One move of the capsule in `folder`; used once.

    `grace` is in seconds. `stop` is set to cancel it, which is possible before the point of no
    return. `workspace` is the folder that the agent works in.
    """

    ports: Ports
    peer: Peer
    capsule: CapsuleId
    folder: str
    workspace: str
    files: Folder
    grace: float
    label: str
    watcher: Watcher
    observer: Observer
    stop: asyncio.Event
    move: MoveId
    _ahead: int = 0

    async def run(self, *, dry: bool = False) -> Moved:
        """Move it; with `dry` only look whether it could be moved.

        Raises: PeerError, MigrationError, HeldElsewhereError, NotFoundError, FormatError or
        StoppedError when nothing was changed and the agent goes on here; StorageError.
        """
        sender = Sender(
            ports=self.ports,
            peer=self.peer,
            capsule=self.capsule,
            move=self.move,
            folder=self.files,
            log=LogReading(store=self.ports.store_at(self.folder)),
            workspace=self.ports.workspace_at(self.capsule, self.folder, self.workspace),
            label=self.label,
            sent=self.watcher.sent,
        )
        crossing = Crossing(
            ports=self.ports,
            peer=self.peer,
            capsule=self.capsule,
            folder=self.folder,
            watcher=self.watcher,
            stop=self.stop,
            sender=sender,
        )
        self._check_held()
        self.ports.release.begin_reading(self.capsule)
        try:
            return await self._run(crossing, sender, dry=dry)
        finally:
            self.ports.release.end_reading(self.capsule)

    async def _run(self, crossing: Crossing, sender: Sender, *, dry: bool) -> Moved:
        self.watcher.phase("check")
        if _is_against(crossing, await crossing.unless_stopped(sender.look())):
            return self._moved(crossing, "unfit")
        if dry:
            return self._moved(crossing, "fit")
        self.watcher.phase("send")
        if _is_against(crossing, await crossing.unless_stopped(sender.send_ahead())):
            return self._moved(crossing, "unfit")
        self._ahead = sender.total
        self.watcher.phase("stop")
        async with self._let_go() as left:
            crossing.began = self.ports.clock.monotonic()
            self.watcher.phase("freeze")
            crossing.offered = await self._freeze(left)
            return await self._carry_over(crossing, crossing.offered)

    def _check_held(self) -> None:
        """Guard: a capsule that is not held here, or is moving, is not begun with.

        Raises: MigrationError.
        """
        record = self._record()
        if record is not None and record.state == "FROZEN" and self._is_free():
            return
        offer = Begin(
            move=self.move, target=self.peer.machine, address=self.peer.address, offer=NOTHING
        )
        step(record, offer, here_of(self.ports, self.capsule))

    @asynccontextmanager
    async def _let_go(self) -> AsyncGenerator[HeldBy | None]:
        """Have the capsule's lock; whoever runs it is asked to let go, until all is over.

        Raises: MigrationError `not_let_go`; StoppedError.
        """
        clock, release = self.ports.clock, self.ports.release
        until = clock.monotonic() + self.grace + PATIENCE
        release.ask(self.capsule, grace=self.grace)
        try:
            with ExitStack() as stack:
                yield await self._locked(stack, until)
        finally:
            release.withdraw(self.capsule)

    async def _locked(self, stack: ExitStack, until: float) -> HeldBy | None:
        while True:
            try:
                return stack.enter_context(self.ports.lock.acquire(self.capsule))
            except HeldElsewhereError as error:
                self._check_patience(until, error)
            await self.ports.clock.wait(LOOK)

    def _check_patience(self, until: float, error: HeldElsewhereError) -> None:
        if self.stop.is_set():
            raise stopped()
        if self.ports.clock.monotonic() > until:
            raise MigrationError(
                f"the process that runs the agent does not let go of it: {error.message}",
                code="not_let_go",
                state="Nothing was changed; the agent goes on here.",
                hint="Stop that process, then move it again.",
            )

    async def _freeze(self, left: HeldBy | None) -> Offered:
        """Under the lock: the workspace is snapshotted and the capsule sealed.

        Raises: as `hold_capsule`; nothing is frozen then.
        """
        thaw(self.ports, self.capsule)
        store = self.ports.store_at(self.folder)
        folded, evidence = examine(self.ports, store, self.folder, left=left, recover=True)
        admission = admit(evidence)
        if isinstance(admission, MayLook):
            raise refusal(admission)
        if admission.moved:
            self.ports.ledger.save(admission.record)
        async with opened(self.ports, store, folded, admission.record, left, self.observer) as hold:
            workspace = self.ports.workspace_at(self.capsule, self.folder, hold.record.workspace)
            await Keeper(hold=hold, workspace=workspace, observer=self.observer).take()
            await hold.refresh()
            made = await seal_capsule(
                hold,
                self.files,
                purpose="move",
                without_workspace=False,
                check=lambda _: None,
            )
        return sealed_offer(made, self.files, label=self.label)

    async def _carry_over(self, crossing: Crossing, offered: Offered) -> Moved:
        """Frozen, proposed, prepared, activated, retired: as the machine of moves decides."""
        begin = Begin(
            move=self.move,
            target=self.peer.machine,
            address=self.peer.address,
            offer=offered.offer,
        )
        try:
            await crossing.decide(begin)
            for _ in range(ASKS):
                if crossing.state() != "IN_DOUBT":
                    break
                await self.ports.clock.wait(ASK_AGAIN)
                await crossing.decide(Again())
        finally:
            # Whatever went wrong: before the point of no return the agent goes on here.
            if crossing.state() == "FROZEN":
                crossing.write(Cancel())
        outcome: Outcome = "cancelled"
        match crossing.state():
            case "RETIRED":
                outcome = "moved"
            case "IN_DOUBT":
                outcome = "in_doubt"
            case _:
                pass
        return self._moved(crossing, outcome)

    def _is_free(self) -> bool:
        return self.ports.lock.holder(self.capsule) is None

    def _record(self) -> LedgerRecord | None:
        return self.ports.ledger.load(self.capsule)

    def _moved(self, crossing: Crossing, outcome: Outcome) -> Moved:
        total = 0 if crossing.sender is None else crossing.sender.total
        return Moved(
            outcome=outcome,
            move=self.move,
            checklist=crossing.checklist,
            refused=None if outcome == "moved" else crossing.refused,
            sent=(self._ahead, total - self._ahead),
            frozen=crossing.frozen,
            forwarded=crossing.forwarded,
        )


def _is_against(crossing: Crossing, answer: Answer) -> bool:
    """Whether an answer to an offer stands against the move; it is kept for people."""
    if isinstance(answer, Wanted | Refused):
        crossing.checklist = answer.checklist
    crossing.refused = refusal_in(answer)
    return crossing.refused is not None
