"""The view: what a prompt is made of, folded from events in the order of the log.

`Transcript.apply` takes constant time an event, so a turn of any length costs the same at each
step. Nothing here decides anything (docs/protocol.md#view).
"""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from sojourn.core.blocks import Blocks
from sojourn.core.notices import GONE, HAND_EDIT, SETTLED, TWO_EDITS, UNSYNCED, Notice, gone
from sojourn.core.restored import told
from sojourn.core.strands import ChainKey, Strands
from sojourn.errors import NotFoundError
from sojourn.format.capsule_kinds import Activated, Restored
from sojourn.format.event import (
    CallStatus,
    Configured,
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
    TurnEnded,
    TurnTaken,
)
from sojourn.format.parts import CallPart, ContentPart, ReplyPart, Text, TextPart
from sojourn.ids import BlobId, CallKey, CapsuleId, EventId, RequestId, call_key


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


Entry: TypeAlias = Said | Replied | Notice


class Prompt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that a request is rendered from."""

    system: Text
    tools: tuple[ToolSpec, ...]
    options: Options
    memory: str
    entries: Sequence[Entry]


class _Strand(msgspec.Struct, frozen=True, kw_only=True):
    """What a strand goes by: its configuration, and the boot whose files may be unsynced.

    Up to the seq `whole` what it wrote is in blocks that are whole.
    """

    configured: tuple[EventId, Configured] | None = None
    unsynced_boot: str | None = None
    whole: int = -1


class Transcript:
    """The fold of a capsule's events that prompts are made of.

    `requests` are the ids of inputs in the log, `documents` the typed documents' current values:
    of concurrent changes the last in the order of the log. `own` is the chain that goes on here,
    whose configuration is in force and whose open turn stands last (docs/protocol.md#blocks).
    """

    def __init__(self) -> None:
        self.own: ChainKey | None = None
        self.strands = Strands()
        self.documents: dict[str, DocumentChange] = {}
        self.requests: dict[RequestId, EventId] = {}
        self.first_memory: Text = ""
        self.memory: Text = ""
        self._versions: tuple[BlobId, ...] = ()
        self._results: set[BlobId] = set()
        self._blocks: Blocks[Entry] = Blocks()
        self._at = -1
        self._of_strands: list[_Strand] = []
        self._where: dict[CallKey, tuple[int, int]] = {}
        self._started: dict[int, CallKey] = {}
        self._answered: dict[CallKey, tuple[int, int]] = {}
        self._unseen: set[CallKey] = set()

    @property
    def entries(self) -> Sequence[Entry]:
        """What was said, turn by turn; it goes on to grow while one strand is written."""
        self._blocks.own(self.strands.of_chain(self.own))
        return self._blocks.in_order()

    @property
    def capsule(self) -> CapsuleId | None:
        """What calls of the own chain are of."""
        at = self._own_strand()
        return None if at is None else self.strands.capsules[at]

    @property
    def configured(self) -> tuple[EventId, Configured] | None:
        """The configuration in force, and its event."""
        at = self._own_strand()
        return None if at is None else self._of_strands[at].configured

    def apply(self, event: Event) -> None:
        """Take in the log's next event; unknown kinds and redacted bodies change nothing."""
        at = self._at = self.strands.follow(event)
        if at == len(self._of_strands):
            self._go_on(at)
        self._blocks.touch(at)
        body = event.body
        # What comes with every step stands first: a long log is folded much quicker so.
        match body:
            case ToolOutcome():
                self._returned(event.id, body)
            case ToolIntent():
                self._update(body.call, started=True, replay=body.replay)
                self._started[self._at] = body.call
            case ModelOutcome():
                self._replied(event.id, body)
            case ModelIntent():
                self.strands.learn(at, body.heads)
                self._request_shown()
            case Configured():
                self._set(configured=(event.id, body))
            case Input():
                self.requests[body.request] = event.id
                self._blocks.add(Said(event=event.id, author=body.author, parts=body.parts))
            case TurnTaken():
                self.strands.learn(at, body.heads)
                self._boot_changed(event.id, body)
            case Settled():
                self._settled(event.id, body)
            case Memory():
                self._remembered(event.id, body)
            case Restored() | Activated():
                text = told(body, lambda key: call.part if (call := self._call(key)) else None)
                notice = Notice(event=event.id, text=text)
                # A fork of a fork, or a claim of one, says again what nothing has changed since.
                last, by = self._blocks.last()
                known = last is not None and self.strands.knows_all(at, by)
                if not (known and notice.says_again(last)):
                    self._blocks.add(notice)
            case TurnEnded():
                self._end_block(at)
            case None:
                self._bodiless(event)
            case _:
                pass

    def _go_on(self, at: int) -> None:
        """A new strand begins, and knows what the one knows that it goes on from."""
        over = self.strands.over(at)
        self._of_strands.append(replace(self._of_strands[over[0]], whole=-1) if over else _Strand())
        for strand in over:
            if self.strands.reach(at, strand) > self._of_strands[strand].whole:
                self._end_block(strand)

    def _end_block(self, strand: int) -> None:
        self._blocks.end(strand)
        seq = self.strands.tips[strand].header.seq
        self._of_strands[strand] = replace(self._of_strands[strand], whole=seq)

    def _bodiless(self, event: Event) -> None:
        """What the model is told of an event whose body is gone; a call keeps its answer."""
        match event.header.kind:
            case "input":
                self._blocks.add(Said(event=event.id, author="", parts=gone("message")))
            case "model_outcome":
                self._blocks.add(Notice(event=event.id, text=GONE.format(what="reply")))
            case "tool_outcome":
                self._answered_without_body(event)
            case "turn_ended":
                self._end_block(self._at)
            case _:
                pass

    def _answered_without_body(self, event: Event) -> None:
        """The call that this strand started last has its answer, whatever it said."""
        call = self._call(self._started.get(self._at, CallKey("")))
        if call is None or call.result is not None:
            return
        result = Result(event=event.id, status="done", parts=gone("result"))
        self._put(call.key, replace(call, result=result))
        self._answered[call.key] = (self._at, event.header.seq)
        self._unseen.add(call.key)

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

    def _own_strand(self) -> int | None:
        """The strand of the own chain; of none is known, that of the last event."""
        at = self.strands.of_chain(self.own)
        return at if at is not None else self._at if self._at >= 0 else None

    def _set(self, **changes: object) -> None:
        self._of_strands[self._at] = replace(self._of_strands[self._at], **changes)

    def _boot_changed(self, event: EventId, body: TurnTaken) -> None:
        boot = self._of_strands[self._at].unsynced_boot
        if boot is not None and boot != body.boot:
            self._blocks.add(Notice(event=event, text=UNSYNCED))
            self._set(unsynced_boot=None)

    def _request_shown(self) -> None:
        """A request shows what its own strand knows; what others wrote it may lack."""
        if len(self.strands.tips) == 1:
            self._unseen.clear()
        elif self._unseen:
            self._unseen = {key for key in self._unseen if not self._knows_answer(key)}

    def _replied(self, event: EventId, body: ModelOutcome) -> None:
        completed = body.status == "done"
        calls: list[Call] = []
        capsule = self.strands.capsules[self._at]
        if completed and capsule is not None:
            for part in body.parts:
                if isinstance(part, CallPart):
                    index = len(calls)
                    key = call_key(capsule=capsule, requested_by=event, index=index)
                    self._where[key] = (len(self._blocks), index)
                    calls.append(Call(key=key, part=part, verify_with=self._verify_with(part.tool)))
        self._blocks.add(
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
        configured = self._of_strands[self._at].configured
        tools = () if configured is None else configured[1].tools
        return next((t.verify_with for t in tools if t.name == tool), ())

    def _call(self, key: CallKey) -> Call | None:
        where = self._where.get(key)
        if where is None:
            return None
        entry = self._blocks.get(where[0])
        return entry.calls[where[1]] if isinstance(entry, Replied) else None

    def _put(self, key: CallKey, call: Call) -> None:
        at, index = self._where[key]
        entry = self._blocks.get(at)
        if isinstance(entry, Replied):
            calls = (*entry.calls[:index], call, *entry.calls[index + 1 :])
            self._blocks.put(at, replace(entry, calls=calls))

    def _update(self, key: CallKey, *, started: bool, replay: ReplayRule) -> None:
        call = self._call(key)
        if call is not None:
            self._put(key, replace(call, started=started, replay=replay))

    def _returned(self, event: EventId, body: ToolOutcome) -> None:
        for change in body.documents:
            self.documents[change.name] = change
        if body.boot is not None:
            self._set(unsynced_boot=body.boot)
        call = self._call(body.call)
        if call is None or not self._takes_place(call, body):
            return
        result = Result(event=event, status=body.status, parts=body.parts, failure=body.failure)
        self._put(call.key, replace(call, result=result))
        self._answered[body.call] = (self._at, self.strands.tips[self._at].header.seq)
        self._unseen.add(body.call)

    def _takes_place(self, call: Call, body: ToolOutcome) -> bool:
        """Whether an outcome is shown: the first, or one instead of what no request has shown.

        Of the outcomes of concurrent strands one that is known counts more than an unknown one, and
        else the first.
        """
        if call.result is None:
            return True
        if self._knows_answer(call.key):
            return call.key in self._unseen
        return call.result.status == "unknown" and body.status != "unknown"

    def _knows_answer(self, key: CallKey) -> bool:
        """Whether this strand knows the result that the call has."""
        by = self._answered.get(key)
        return by is not None and self.strands.knows(self._at, *by)

    def _settled(self, event: EventId, body: Settled) -> None:
        """A result no request has shown yet is replaced; a shown one never changes."""
        if body.decision in ("retry", "skip"):
            return
        call = self._call(body.call)
        if call is None:
            return
        if body.call in self._unseen and self._knows_answer(body.call):
            status: CallStatus = "done" if body.decision == "done" else "failed"
            result = Result(event=event, status=status, parts=body.parts)
            self._put(body.call, replace(call, result=result))
            return
        text = SETTLED.format(tool=call.part.tool, decision=body.decision)
        self._blocks.add(Notice(event=event, text=text, attached=body.parts))

    def _remembered(self, event: EventId, body: Memory) -> None:
        text, self.memory = self.memory, body.text
        apart = self._is_apart(body)
        self._results.add(body.result)
        if body.origin == "created":
            self.first_memory = body.text
        elif apart:
            both = (TextPart(text=text), TextPart(text=body.text))
            self._blocks.add(Notice(event=event, text=TWO_EDITS, attached=both))
        elif body.origin == "hand":
            new = (TextPart(text=body.text),)
            self._blocks.add(Notice(event=event, text=HAND_EDIT, attached=new))

    def _is_apart(self, body: Memory) -> bool:
        """Whether an edit is of an older text and stands beside the others (docs/format.md#memory).

        What is no text of an event is the text of all versions, so an edit of it is of all.
        """
        before, versions = body.before, self._versions
        if before in versions:
            kept = [body.result if version == before else version for version in versions]
            self._versions = tuple(dict.fromkeys(kept))
            return False
        apart = before in self._results and body.result not in versions
        self._versions = (*versions, body.result) if apart else (body.result,)
        return apart
