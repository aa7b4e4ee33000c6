"""Faults that the kill sweep must find, planted into the process that it kills."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from sojourn.core.turn import Ended
from sojourn.drive import opening
from sojourn.drive.runner import Runner
from sojourn.ports import InboxItem, Message
from sojourn.store.inbox import FolderInbox

FAULTS = ("call_before_intent", "early_acknowledgement", "cut_acknowledged_line", "forgotten_call")


def plant(name: str) -> None:
    """Plant one of `FAULTS` into this process."""
    {
        "call_before_intent": _call_before_intent,
        "early_acknowledgement": _early_acknowledgement,
        "cut_acknowledged_line": _cut_acknowledged_line,
        "forgotten_call": _forgotten_call,
    }[name]()


def _call_before_intent() -> None:
    """The call is made first; its intent becomes durable together with its outcome."""
    commit = Runner._commit

    async def later(_: Runner) -> None:
        await asyncio.sleep(0)

    async def perform(self: Runner, call: Coroutine[Any, Any, Any]) -> None:
        outcome = await call
        await commit(self)
        self._draft(Ended(outcome=outcome))

    Runner._commit = later
    Runner._perform = perform


def _early_acknowledgement() -> None:
    """`send` answers before the message is durable."""
    put, items = FolderInbox.put, FolderInbox.items
    waiting: list[tuple[Any, Message]] = []

    def soon(_: FolderInbox, capsule: Any, message: Message) -> InboxItem:
        waiting.append((capsule, message))
        return InboxItem(name="soon", message=message)

    def now(self: FolderInbox, capsule: Any) -> tuple[InboxItem, ...]:
        while waiting:
            put(self, *waiting.pop())
        return items(self, capsule)

    FolderInbox.put, FolderInbox.items = soon, now


def _cut_acknowledged_line() -> None:
    """Recovery takes the last whole line for a torn one."""
    settle = opening._settle

    async def cut(store: Any, folded: Any, record: Any, *, unclean: bool) -> Any:
        if unclean:
            data = b"".join(store.read_log())
            length = data.rstrip(b"\n").rfind(b"\n") + 1
            await store.settle_log(start=0, length=length)
        return await settle(store, folded, record, unclean=unclean)

    opening._settle = cut


def _forgotten_call() -> None:
    """A call that may have happened is taken for one that was never asked for."""
    from sojourn.core import turn

    def again(**_: Any) -> str:
        return "again"

    turn.after_crash = again
