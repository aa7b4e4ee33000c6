"""The view: what a prompt is made of, folded from events in the order of the log.

`Transcript.apply` takes constant time an event, so a turn of any length costs the same at each
step. Nothing here decides anything (docs/protocol.md#view).
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from sojourn.core.restored import told
from sojourn.errors import NotFoundError
from sojourn.format.capsule_kinds import Claimed, Forked, Restored
from sojourn.format.event import (
    CallStatus,
    Configured,
    Created,
    DocumentChange,
    Event,
    Failure,
    Input,
    Issuer,
    Memory,
    ModelIntent,
    ModelOutcome,
    Options,
    ReplayRule,
    Settled,
    Stop,
    ToolIntent,
    ToolOutcome,
    ToolSpec,
    TurnTaken,
)
from sojourn.format.parts import CallPart, ContentPart, ReplyPart, Text, TextPart
from sojourn.ids import CallKey, CapsuleId, EventId, RequestId, call_key

UNSYNCED: Final = (
    "The machine was started again since the last shell command. Files that the command wrote "
    "and did not sync may be missing or older than its output says; check before you rely on them."
)
SETTLED: Final = "The earlier call of {tool} whose outcome was unknown is now settled: {decision}."
HAND_EDIT: Final = "The working memory was edited by hand. It now reads:"


class Result(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of a tool call, as the model is told."""

    event: EventId
    status: CallStatus
    parts: tuple[ContentPart, ...]
    failure: Failure | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call that a reply asked for; `started` once it has an intent."""

    key: CallKey
    part: CallPart
    replay: ReplayRule = "report"
    verify_with: tuple[str, ...] = ()
    started: bool = False
    result: Result | None = None


class Said(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An input, where it was appended."""

    event: EventId
    author: str
    parts: tuple[ContentPart, ...]


class Replied(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A model's reply; `calls` in the order of its call parts, `completed` if it ended well."""

    event: EventId
    issuer: Issuer
    parts: tuple[ReplyPart, ...]
    calls: tuple[Call, ...]
    stop: Stop
    completed: bool


class Notice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the runtime tells the model; `attached` are words of people that belong to it."""

    event: EventId
    text: str
    attached: tuple[ContentPart, ...] = ()


Entry: TypeAlias = Said | Replied | Notice


class Prompt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that a request is rendered from."""

    system: Text
    tools: tuple[ToolSpec, ...]
    options: Options
    memory: str
    entries: Sequence[Entry]


class Transcript:
    """The fold of a capsule's events that prompts are made of.

    `requests` are the ids of inputs in the log, `documents` the typed documents' current values.
    """

    def __init__(self) -> None:
        self.capsule: CapsuleId | None = None
        self.entries: list[Entry] = []
        self.configured: tuple[EventId, Configured] | None = None
        self.documents: dict[str, DocumentChange] = {}
        self.requests: dict[RequestId, EventId] = {}
        self.first_memory: Text = ""
        self.memory: Text = ""
        self._where: dict[CallKey, tuple[int, int]] = {}
        self._unseen: set[CallKey] = set()
        self._unsynced_boot: str | None = None

    def apply(self, event: Event) -> None:
        """Take in the log's next event; unknown kinds and redacted bodies change nothing."""
        body = event.body
        # What comes with every step stands first: a long log is folded much quicker so.
        match body:
            case ToolOutcome():
                self._returned(event.id, body)
            case ToolIntent():
                self._update(body.call, started=True, replay=body.replay)
            case ModelOutcome():
                self._replied(event.id, body)
            case ModelIntent():
                self._unseen.clear()
            case Created():
                self.capsule = CapsuleId(event.id)
            case Forked():
                self.capsule = CapsuleId(event.id)
            case Claimed():
                self.capsule = body.capsule
            case Configured():
                self.configured = (event.id, body)
            case Input():
                self.requests[body.request] = event.id
                self.entries.append(Said(event=event.id, author=body.author, parts=body.parts))
            case TurnTaken():
                self._boot_changed(event.id, body)
            case Settled():
                self._settled(event.id, body)
            case Memory():
                self._remembered(event.id, body)
            case Restored():
                calls = [call.part for key in body.missing if (call := self._call(key))]
                text = told(len(body.missing), calls)
                self.entries.append(Notice(event=event.id, text=text))
            case _:
                pass

    def prompt(self, *, system: Text, memory: str) -> Prompt:
        """What to render now; `memory` is the text of `first_memory`.

        Raises: NotFoundError when nothing was configured yet.
        """
        if self.configured is None:
            raise NotFoundError("the log holds no configuration yet", code="not_configured")
        configured = self.configured[1]
        return Prompt(
            system=system,
            tools=configured.tools,
            options=configured.options,
            memory=memory,
            entries=self.entries,
        )

    def call(self, key: CallKey) -> Call:
        """The call with that key.

        Raises: NotFoundError when no reply asked for it.
        """
        call = self._call(key)
        if call is None:
            raise NotFoundError("no reply asked for this call", code="no_call")
        return call

    def _boot_changed(self, event: EventId, body: TurnTaken) -> None:
        if self._unsynced_boot is not None and self._unsynced_boot != body.boot:
            self.entries.append(Notice(event=event, text=UNSYNCED))
            self._unsynced_boot = None

    def _replied(self, event: EventId, body: ModelOutcome) -> None:
        completed = body.status == "done"
        calls: list[Call] = []
        if completed and self.capsule is not None:
            for part in body.parts:
                if isinstance(part, CallPart):
                    index = len(calls)
                    key = call_key(capsule=self.capsule, requested_by=event, index=index)
                    self._where[key] = (len(self.entries), index)
                    calls.append(Call(key=key, part=part, verify_with=self._verify_with(part.tool)))
        self.entries.append(
            Replied(
                event=event,
                issuer=body.issuer,
                parts=body.parts,
                calls=tuple(calls),
                stop=body.stop,
                completed=completed,
            )
        )

    def _verify_with(self, tool: str) -> tuple[str, ...]:
        if self.configured is None:
            return ()
        return next((t.verify_with for t in self.configured[1].tools if t.name == tool), ())

    def _call(self, key: CallKey) -> Call | None:
        where = self._where.get(key)
        if where is None:
            return None
        entry = self.entries[where[0]]
        return entry.calls[where[1]] if isinstance(entry, Replied) else None

    def _put(self, key: CallKey, call: Call) -> None:
        at, index = self._where[key]
        entry = self.entries[at]
        if isinstance(entry, Replied):
            calls = (*entry.calls[:index], call, *entry.calls[index + 1 :])
            self.entries[at] = replace(entry, calls=calls)

    def _update(self, key: CallKey, *, started: bool, replay: ReplayRule) -> None:
        call = self._call(key)
        if call is not None:
            self._put(key, replace(call, started=started, replay=replay))

    def _returned(self, event: EventId, body: ToolOutcome) -> None:
        for change in body.documents:
            self.documents[change.name] = change
        if body.boot is not None:
            self._unsynced_boot = body.boot
        call = self._call(body.call)
        if call is None or (call.result is not None and body.call not in self._unseen):
            return
        result = Result(event=event, status=body.status, parts=body.parts, failure=body.failure)
        self._put(body.call, replace(call, result=result))
        self._unseen.add(body.call)

    def _settled(self, event: EventId, body: Settled) -> None:
        """A result no request has shown yet is replaced; a shown one never changes."""
        if body.decision in ("retry", "skip"):
            return
        call = self._call(body.call)
        if call is None:
            return
        if body.call in self._unseen:
            status: CallStatus = "done" if body.decision == "done" else "failed"
            result = Result(event=event, status=status, parts=body.parts)
            self._put(body.call, replace(call, result=result))
            return
        text = SETTLED.format(tool=call.part.tool, decision=body.decision)
        self.entries.append(Notice(event=event, text=text, attached=body.parts))

    def _remembered(self, event: EventId, body: Memory) -> None:
        self.memory = body.text
        if body.origin == "created":
            self.first_memory = body.text
        elif body.origin == "hand":
            self.entries.append(
                Notice(event=event, text=HAND_EDIT, attached=(TextPart(text=body.text),))
            )
