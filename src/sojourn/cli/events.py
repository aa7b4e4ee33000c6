"""Events in words, one line each, and as --json shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never, cast

import msgspec

from sojourn.cli.capsule_events import of_capsule
from sojourn.cli.clean import PREVIEW, one_line
from sojourn.cli.people import counted, took
from sojourn.cli.shapes import EventShape
from sojourn.cli.voice import Painted
from sojourn.format.capsule_kinds import CapsuleBody
from sojourn.format.event import (
    Configured,
    Created,
    Cut,
    EnvironmentChanged,
    Event,
    Input,
    Memory,
    ModelIntent,
    ModelOutcome,
    Settled,
    ToolIntent,
    ToolOutcome,
    TurnEnded,
    TurnPaused,
    TurnTaken,
    Unknown,
)
from sojourn.format.parts import (
    BlobRef,
    CallPart,
    ContentPart,
    MediaPart,
    RefusalPart,
    ReplyPart,
    Text,
    TextPart,
)
from sojourn.ids import CallKey, CapsuleId, EventId, call_key

TELLING = ("command", "path", "pattern", "question", "url", "query", "name", "text")
"""Arguments that say best what a call is about, the best first."""

DOES = "may have happened"
"""What is said of every unknown outcome: never that it did not happen."""


@dataclass(frozen=True, slots=True)
class Words:
    """An event in words: one line, and text of it that the line does not show (may be empty).

    `more` is text that only a person who said -v wants to see.
    """

    line: tuple[str | Painted, ...]
    text: str = ""
    more: str = ""


class Calls:
    """What the calls of a log asked for, by their keys; and what each configuration replaced."""

    def __init__(self, capsule: CapsuleId) -> None:
        self._capsule = capsule
        self._parts: dict[CallKey, CallPart] = {}
        self._replaced: dict[EventId, Configured | None] = {}
        self._configured: Configured | None = None

    def take(self, event: Event) -> None:
        """Remember the calls that a reply asks for, and a configuration."""
        body = event.body
        if isinstance(body, Configured) and event.id not in self._replaced:
            self._replaced[event.id] = self._configured
            self._configured = body
        if isinstance(body, ModelOutcome) and body.status == "done":
            asked = [part for part in body.parts if isinstance(part, CallPart)]
            for index, part in enumerate(asked):
                key = call_key(capsule=self._capsule, requested_by=event.id, index=index)
                self._parts[key] = part

    def replaced(self, event: EventId) -> Configured | None:
        """The configuration that was in force before this one, None for the first."""
        return self._replaced.get(event)

    def knows(self, key: CallKey) -> bool:
        """Whether the reply that asks for this call was taken in."""
        return key in self._parts

    def words(self, key: CallKey) -> str:
        """The call in words: the tool and what it is about."""
        part = self._parts.get(key)
        return "a call" if part is None else f"{part.tool} {about(part.args)}".rstrip()


def about(args: Text) -> str:
    """What a call is about: its most telling argument, or all of them, on one line."""
    source = plain(args)
    try:
        value = msgspec.json.decode(source, type=dict[str, object])
    except (msgspec.DecodeError, ValueError):
        return one_line(source)
    for name in (*TELLING, *(value if len(value) == 1 else ())):
        found = value.get(name)
        if isinstance(found, str) and found.strip():
            return one_line(found)
    if len(value) == 1:
        name, alone = next(iter(value.items()))
        if isinstance(alone, list):
            return f"{len(cast('list[object]', alone))} {one_line(name)}"
    return one_line(source) if value else ""


def plain(text: Text) -> str:
    """The text, or the beginning of one that lies in a blob."""
    return text.preview + " …" if isinstance(text, BlobRef) else text


def said(parts: Sequence[ContentPart | ReplyPart]) -> str:
    """The visible text of some parts; media as its type."""
    words: list[str] = []
    for part in parts:
        match part:
            case TextPart() | RefusalPart():
                words.append(plain(part.text))
            case MediaPart():
                words.append(f"[{part.media_type}]")
            case _:
                pass
    return "\n".join(word for word in words if word)


def words_of(event: Event, calls: Calls) -> Words:
    """The event in words."""
    calls.take(event)
    body = event.body
    match body:
        case None:
            return Words((Painted("redacted", "dim"),))
        case Unknown():
            return Words((Painted("a kind that this version does not know", "dim"),))
        case Input():
            text = said(body.parts)
            return Words((f"{one_line(body.author, 24)}: {one_line(text)}",), unshown(text))
        case ModelOutcome():
            return _replied(body)
        case ToolIntent():
            again = "" if body.attempt == 1 else f", attempt {body.attempt}"
            return Words((calls.words(body.call), Painted(f"  ({body.replay}{again})", "dim")))
        case ToolOutcome():
            return _returned(body, calls)
        case Settled():
            line = f"{calls.words(body.call)}: {body.decision}, by {one_line(body.by, 24)}"
            return Words((line,), said(body.parts))
        case Configured():
            return _configured(body, calls.replaced(event.id))
        case _:
            return _of_runtime(body)


def _configured(body: Configured, before: Configured | None) -> Words:
    """The first configuration in short, a later one by what it changed; the prompt with -v."""
    names = [tool.name for tool in body.tools]
    if before is None:
        line = f"{one_line(body.model) or 'no model yet'}, {counted(len(names), 'tool')}"
        return Words((line,), ", ".join(map(one_line, names)), plain(body.system))
    changed: list[str] = []
    if body.model != before.model:
        changed.append(f"model {one_line(before.model) or 'none'} → {one_line(body.model)}")
    old = {tool.name: tool for tool in before.tools}
    added = [one_line(name) for name in names if name not in old]
    gone = [one_line(name) for name in old if name not in names]
    other = [one_line(tool.name) for tool in body.tools if old.get(tool.name, tool) != tool]
    for what, which in (("more", added), ("fewer", gone), ("changed", other)):
        if which:
            changed.append(f"tools {what}: {', '.join(which)}")
    prompt = body.system != before.system
    changed += ["system prompt changed"] * prompt + ["options changed"] * (
        body.options != before.options
    )
    line = "; ".join(changed) or "the same again"
    return Words((line,), more=plain(body.system) if prompt else "")


def _of_runtime(
    body: Created
    | TurnTaken
    | ModelIntent
    | Memory
    | EnvironmentChanged
    | TurnPaused
    | TurnEnded
    | Cut
    | CapsuleBody,
) -> Words:
    """What the runtime itself wrote down."""
    match body:
        case Created():
            return Words((f"capsule {one_line(body.name)}",))
        case TurnTaken():
            return Words((f"by runner {body.runner[:8]}",))
        case ModelIntent():
            return Words((f"{body.issuer.provider}/{one_line(body.issuer.model)}",))
        case Memory():
            made = {"hand": "edited by hand", "tool": "edited by a tool", "created": "made"}
            return Words((made[body.origin],), plain(body.text))
        case EnvironmentChanged():
            return Words((", ".join(one_line(file.path) for file in body.files) or "no files",))
        case TurnPaused():
            why = {
                "stopped": "stopped by a person",
                "decision": "a person must decide",
                "model": "the model failed",
            }
            return Words((Painted(why[body.reason], "warn"),))
        case TurnEnded():
            failure = "" if body.failure is None else f": {one_line(plain(body.failure.message))}"
            return Words((f"{body.reason.replace('_', ' ')}{failure}",))
        case Cut():
            return Words((Painted(f"{counted(body.blob.size, 'byte')} kept as a blob", "warn"),))
        case _:
            return Words(of_capsule(body))


def _replied(body: ModelOutcome) -> Words:
    text = said(body.parts)
    calls = [part for part in body.parts if isinstance(part, CallPart)]
    if body.status == "unknown":
        return Words((Painted(f"unknown: it {DOES}", "alarm"),), text)
    if body.status == "failed":
        code = "failed" if body.failure is None else body.failure.code
        message = "" if body.failure is None else one_line(plain(body.failure.message))
        return Words((Painted(f"failed [{code}] ", "bad"), message), text)
    asks = ", ".join(f"{part.tool} {about(part.args)}".rstrip() for part in calls)
    line = " → ".join(words for words in (one_line(text), asks) if words) or "(no words)"
    return Words((line,), unshown(text))


def unshown(text: str) -> str:
    """The text, unless its one line shows all of it."""
    return text if "\n" in text.strip() or len(text) > PREVIEW else ""


def _returned(body: ToolOutcome, calls: Calls) -> Words:
    call, text = calls.words(body.call), said(body.parts)
    time = Painted(f"  {took(body.milliseconds)}", "dim")
    match body.status:
        case "done":
            return Words((Painted("ok ", "good"), call, time), text)
        case "failed":
            return Words((Painted("failed ", "bad"), call, time, f"  {why_failed(body)}"), text)
        case "unknown":
            return Words((Painted(f"unknown: it {DOES} ", "alarm"), call), text)
        case _:
            assert_never(body.status)


def why_failed(body: ToolOutcome) -> str:
    """Why a tool failed, in a few words: its message, the note that ends its output, its code."""
    failure = body.failure
    if failure is not None and plain(failure.message):
        return one_line(plain(failure.message))
    last = said(body.parts).rstrip().rpartition("\n")[2]
    if last.startswith("[") and last.endswith("]"):
        return one_line(last[1:-1])
    return one_line(last if failure is None else failure.code)


def shape_of_event(event: Event, number: int) -> EventShape:
    """The event as --json shows it: its number in the log, header and body."""
    header = event.header
    return EventShape(
        id=event.id,
        number=number,
        seq=header.seq,
        clock=header.clock,
        epoch=header.epoch,
        batch=header.batch,
        prev=header.prev,
        machine=header.machine,
        incarnation=header.incarnation,
        kind=header.kind,
        time=header.time,
        body=body_of(event),
    )


def body_of(event: Event) -> dict[str, object] | None:
    """The body's fields by name; None when it was redacted."""
    body = event.body
    if body is None:
        return None
    if isinstance(body, Unknown):
        return msgspec.json.decode(body.raw, type=dict[str, object])
    return msgspec.convert(msgspec.to_builtins(body), dict[str, object])
