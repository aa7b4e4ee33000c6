"""The loop of a turn: ask the machine, append what it says, perform what it then allows.

Every record is durable before the effect that follows it; an outcome and the next intent share one
write and one sync (docs/protocol.md#turns).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

from sojourn.core.turn import (
    CallModel,
    CallTool,
    Decide,
    Ended,
    Heard,
    Here,
    Next,
    Pause,
    Ready,
    Rest,
    StepInput,
    Take,
    step,
)
from sojourn.drive.hold import Hold
from sojourn.drive.perform import Performer
from sojourn.errors import FencedError
from sojourn.format.event import Input, ModelOutcome, ReplayRule, ToolOutcome, TurnEnded
from sojourn.format.parts import TextPart
from sojourn.ids import RunnerId, TurnId
from sojourn.ports import Inbox, InboxItem
from sojourn.ports_move import Release

MOST_HEARD: Final = 256
"""Messages of the inbox in one append; more are heard at the next step."""

LOOK: Final = 0.05
"""Seconds between two looks, while a call runs, whether somebody asks to let go."""

Outcome: TypeAlias = ModelOutcome | ToolOutcome


@dataclass(slots=True, kw_only=True)
class Runner:
    """One process's run of the open turn of a held capsule.

    `rules` are today's replay rules by tool. A runner is used once: its id stands in every intent.
    `before_end` is awaited before the turn's end is drafted. `release` says when another process
    asks for the capsule; `released` is true once that was heeded.
    """

    hold: Hold
    performer: Performer
    inbox: Inbox
    runner: RunnerId
    rules: Mapping[str, ReplayRule]
    max_model_calls: int
    before_end: Callable[[], Awaitable[None]] | None = None
    release: Release | None = None
    released: bool = False
    _pausing: bool = False
    _leaving: bool = False
    _cancelled: bool = False
    _task: asyncio.Task[object] | None = None
    _calling: bool = False
    _stops: int = 0
    _heard: list[InboxItem] = field(default_factory=list[InboxItem])
    _made_here: Here | None = None

    def pause(self) -> None:
        """Stop at the next safe point: the running call comes to its end first."""
        self._pausing = True

    def leave(self) -> None:
        """Stop at the next safe point and leave the turn open: whoever takes it goes on."""
        self._leaving = True

    def stop(self) -> None:
        """End the running call now; its outcome is unknown."""
        self._pausing = True
        if self._calling and self._task is not None:
            self._task.cancel()
            self._stops += 1

    def cut(self) -> None:
        """End the running call now, its outcome unknown, and leave the turn open."""
        self.leave()
        if self._calling and self._task is not None:
            self._task.cancel()
            self._stops += 1

    async def run(self, *, person: bool, decision: Decide | None = None) -> Rest:
        """Take the turn and run it until it rests; everything is durable on return.

        Raises: StorageError when a durable write failed (the hold is dropped), FencedError when
        another took the turn.
        """
        self._task = asyncio.current_task()
        self._hear()
        ready = self._draft(Take(person=person))
        if decision is not None and ready.effect is None:
            self._draft(decision)
        while ready.effect is None or not isinstance(ready.effect, Rest):
            between = self._is_between_calls()
            if between:
                await _let_others_in()
                self._heed()
            left = self._left()
            ready = Ready(effect=Rest(reason="left")) if left else await self._go_on(between)
            match ready.effect:
                case None:
                    continue
                case CallModel():
                    await self._commit()
                    await self._perform(self.performer.call_model(ready.effect, self._turn()))
                case CallTool():
                    await self._commit()
                    await self._perform(self.performer.call_tool(ready.effect, self._turn()))
                case Rest():
                    pass
                case _:
                    assert_never(ready.effect)
        await self._commit()
        if self._cancelled:
            raise asyncio.CancelledError
        return ready.effect

    async def _go_on(self, between: bool) -> Ready:
        wanted = self._wanted(between)
        ready = step(self.hold.state, wanted, self._here())
        ends = any(isinstance(record, TurnEnded) for record in ready.records)
        if ends and self.before_end is not None:
            await self.before_end()
            return self._draft(wanted)
        return self._take_in(ready)

    def _left(self) -> bool:
        """Whether this is the safe point at which the turn is left as it is."""
        self._grace()
        return self._leaving and self.hold.state.turn is not None

    def _grace(self) -> float | None:
        """How long a running call may go on when somebody asks for the capsule, else None."""
        grace = None if self.release is None else self.release.asked(self.hold.capsule)
        if grace is not None:
            self._leaving = self.released = True
        return grace

    async def _watch(self) -> None:
        """While a call runs: when somebody asks for the capsule, end the call after its grace."""
        clock = self.performer.clock
        until: float | None = None
        given: float | None = None
        while until is None or clock.monotonic() < until:
            left = LOOK if until is None else min(LOOK, max(until - clock.monotonic(), 0.0))
            grace = self._grace()
            if grace != given:
                # Asked, taken back, or asked again, perhaps by somebody with less patience.
                given, until = grace, None if grace is None else clock.monotonic() + grace
                continue
            await clock.wait(left)
        self.cut()

    def _is_between_calls(self) -> bool:
        """Whether a model call or the turn's end may follow."""
        state = self.hold.state
        return state.model is None and all(call.finished for call in state.calls)

    def _wanted(self, between: bool) -> StepInput:
        """`Next`, with the inbox read where a model call or the turn's end may follow."""
        if between:
            self._hear()
        state = self.hold.state
        resting = state.answered and not state.unseen
        if self._pausing and state.turn is not None and state.paused is None and not resting:
            return Pause()
        return Next()

    def _draft(self, given: StepInput) -> Ready:
        return self._take_in(step(self.hold.state, given, self._here()))

    def _take_in(self, ready: Ready) -> Ready:
        for record in ready.records:
            self.hold.draft(record)
        return ready

    def _here(self) -> Here:
        configured, here = self.hold.configured, self._made_here
        if here is None or here.configured != configured:
            here = self._made_here = Here(
                runner=self.runner,
                boot=self.performer.boot,
                configured=configured,
                issuer=self.performer.model.issuer,
                heads=self.hold.other_heads,
                rules=self.rules,
                max_model_calls=self.max_model_calls,
            )
        return here

    def _turn(self) -> TurnId:
        turn = self.hold.state.turn
        if turn is None:
            raise FencedError("no turn is open", code="no_turn")
        return turn

    def _hear(self) -> None:
        """Draft the inbox's messages; their files go once the drafts are durable."""
        for item in self.inbox.items(self.hold.capsule):
            if item in self._heard:
                continue
            if len(self._heard) >= MOST_HEARD:
                return
            self._heard.append(item)
            message = item.message
            if message.kind == "memory":
                self.hold.remember(message.text, origin="hand", before=message.before)
            elif message.request not in self.hold.transcript.requests:
                parts = (TextPart(text=message.text),)
                said = Input(request=message.request, author=message.author, parts=parts)
                self._draft(Heard(input=said))

    async def _commit(self) -> None:
        await self.hold.commit()
        for item in self._heard:
            self.inbox.remove(self.hold.capsule, item)
        self._heard.clear()

    async def _perform(self, call: Coroutine[None, None, Outcome]) -> None:
        """Perform a call so that `stop` can end it, and draft how it ended.

        When the whole run is cancelled the call ends first, the turn pauses, and then the
        cancellation goes on.
        """
        self._calling = True
        watching = asyncio.ensure_future(self._watch()) if self.release is not None else None
        try:
            self._draft(Ended(outcome=await call))
        finally:
            self._calling = False
            if watching is not None:
                watching.cancel()
            if self._stops:
                # One that came too late for this call must not end the next one: it is met here.
                await _let_others_in()
            self._heed()

    def _heed(self) -> None:
        """Take a stop back, now that its call ended; heed a cancellation, whoever asked for it."""
        if self._task is None:
            return
        while self._stops:
            self._task.uncancel()
            self._stops -= 1
        if self._task.cancelling():
            self._pausing = self._cancelled = True


async def _let_others_in() -> None:
    """Let the loop turn once: signals and other tasks get their time, though no call ever waits.

    A cancellation that comes meanwhile is only counted.
    """
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
