"""The objects that --json prints: one struct a command, shipped as JSON Schemas in cli/schemas/.

`run`, `resume`, `work` and `log` print one object a line, told apart by `type`. The schemas are
written from these structs by `python -m sojourn.cli.reference`.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from sojourn.core.standings import Standing

SCHEMA: Final = "sojourn.cli/1"
"""The name that every object carries; it changes when a field changes its meaning or goes."""


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of an answer."""


class Answer(Shape, frozen=True, kw_only=True):
    """What every object has."""

    schema: Literal["sojourn.cli/1"] = SCHEMA


class CapsuleShape(Shape, frozen=True, kw_only=True):
    """A capsule on this machine; `workspace` is null where this machine knows none."""

    id: str
    name: str
    folder: str
    workspace: str | None


class FaultShape(Shape, frozen=True, kw_only=True):
    """One thing that is wrong: a stable code, words, and a place where there is one."""

    code: str
    message: str
    file: str | None = None
    line: int | None = None


class HeldShape(Shape, frozen=True, kw_only=True):
    """The process that holds a capsule on this host; `since` in RFC 3339."""

    pid: int
    since: str
    command: str


class ErrorShape(Shape, frozen=True, kw_only=True):
    """A failure: what happened, what the state is now, what to do next, the exit code."""

    code: str
    message: str
    state: str
    hint: str
    exit: int
    file: str | None
    line: int | None


class ErrorAnswer(Answer, frozen=True, kw_only=True):
    """A command failed; in a stream it is the last line."""

    error: ErrorShape


class EventShape(Shape, frozen=True, kw_only=True):
    """One event of the log; `body` is null when it was redacted.

    `number` names it in this copy of the log, `seq` is its place in the chain that wrote it.
    """

    id: str
    number: int
    seq: int
    clock: int
    epoch: int
    batch: int
    prev: str | None
    machine: str
    incarnation: str
    kind: str
    time: str
    body: dict[str, object] | None


class InitAnswer(Answer, frozen=True, kw_only=True):
    """`init`: the capsule that was made."""

    capsule: CapsuleShape
    model: str | None


class SendAnswer(Answer, frozen=True, kw_only=True):
    """`send`: the message is durable under this request id, maybe already from an earlier time."""

    capsule: CapsuleShape
    request: str
    already: bool


class CallShape(Shape, frozen=True, kw_only=True):
    """A tool call of the last reply: `asked` has not begun, `started` has no outcome yet."""

    key: str
    tool: str
    arguments: str
    state: Literal["asked", "started", "done", "failed", "unknown", "again"]
    attempt: int


class QuestionShape(Shape, frozen=True, kw_only=True):
    """The call about which a person must decide."""

    call: str
    tool: str
    arguments: str


class SideShape(Shape, frozen=True, kw_only=True):
    """A snapshot that stands beside others; `own` when the chain took it that goes on here."""

    event: str
    number: int
    machine: str
    time: str
    own: bool


class StatusAnswer(Answer, frozen=True, kw_only=True):
    """`status`: one capsule; `length` of the log in bytes, `waiting` messages come later.

    `sides` are the snapshots that stand side by side after a merge, the current one last; empty
    where there are no two.
    """

    capsule: CapsuleShape
    standing: Standing
    model: str | None
    may_run: bool
    reason: FaultShape | None
    held_by: HeldShape | None
    turn: str | None
    model_calls: int
    calls: tuple[CallShape, ...]
    question: QuestionShape | None
    events: int
    length: int
    last_time: str | None
    waiting: int
    sides: tuple[SideShape, ...]
    torn: bool
    damages: tuple[FaultShape, ...]


class ListedShape(Shape, frozen=True, kw_only=True):
    """One row of `ps`."""

    capsule: CapsuleShape
    standing: Standing
    model: str | None
    held_by: HeldShape | None
    events: int
    last_time: str | None
    waiting: int
    reason: FaultShape | None


class PsAnswer(Answer, frozen=True, kw_only=True):
    """`ps`: the capsules of this machine; `resting` counts those that only -a lists."""

    capsules: tuple[ListedShape, ...]
    resting: int


class EventLine(Answer, frozen=True, kw_only=True, tag_field="type", tag="event"):
    """A durable event."""

    capsule: str
    event: EventShape


class NoteLine(Answer, frozen=True, kw_only=True, tag_field="type", tag="note"):
    """What the runtime did, in words for people."""

    capsule: str
    text: str


class UsageShape(Shape, frozen=True, kw_only=True):
    """Tokens, as the provider counted them."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int


class ReportLine(Answer, frozen=True, kw_only=True, tag_field="type", tag="report"):
    """How a run ended; the last line of `run` and `resume`. `hint` says what to do next."""

    capsule: CapsuleShape
    reason: Literal["rest", "limit", "paused", "left", "released", "decision", "model", "idle"]
    exit: int
    hint: str
    text: str
    turn: str | None
    model_calls: int
    usage: UsageShape
    failure: FaultShape | None
    question: QuestionShape | None


class WorkedLine(Answer, frozen=True, kw_only=True, tag_field="type", tag="worked"):
    """The last line of `work`: how many turns were taken."""

    turns: int


LogLine: TypeAlias = EventLine
RunLine: TypeAlias = EventLine | NoteLine | ReportLine
WorkLine: TypeAlias = EventLine | NoteLine | WorkedLine


class ShowAnswer(Answer, frozen=True, kw_only=True):
    """`show`: one event."""

    capsule: CapsuleShape
    event: EventShape


class FoundShape(Shape, frozen=True, kw_only=True):
    """A passage: of an event (`place` is its id), a section of the notes, or a document.

    `event` and `number` are those of the event that holds its text, for `show`.
    """

    kind: str
    place: str
    event: str
    number: int
    time: str
    score: float
    snippet: str


class SearchAnswer(Answer, frozen=True, kw_only=True):
    """`search`: what was found, the nearest first; `by_meaning` when not by words alone."""

    capsule: CapsuleShape
    by_meaning: bool
    found: tuple[FoundShape, ...]


class LossShape(Shape, frozen=True, kw_only=True):
    """What a rendering dropped or changed, and the event it is about."""

    code: str
    event: str | None
    detail: str


class ContextAnswer(Answer, frozen=True, kw_only=True):
    """`context`: the request's payload; `bytes` is its length as it would be sent.

    With `awaits_input` nothing is sent before the next input; where the messages would end with a
    reply, a word of the runtime stands in its place (the last loss).
    """

    capsule: CapsuleShape
    model: str
    dialect: str
    awaits_input: bool
    bytes: int
    payload: dict[str, object]
    losses: tuple[LossShape, ...]


class CheckShape(Shape, frozen=True, kw_only=True):
    """One check of `doctor`; `fix` is what to do, empty when nothing is."""

    name: str
    result: Literal["ok", "note", "warning", "failed"]
    message: str
    fix: str


class DoctorAnswer(Answer, frozen=True, kw_only=True):
    """`doctor`: `ready` when no check failed."""

    ready: bool
    checks: tuple[CheckShape, ...]


class ProofShape(Shape, frozen=True, kw_only=True):
    """One thing that `demo` shows, and whether it held."""

    claim: str
    seen: str
    held: bool


class DemoAnswer(Answer, frozen=True, kw_only=True):
    """`demo`: what was run, in which folder, and what it showed."""

    folder: str
    seconds: float
    commands: tuple[str, ...]
    proofs: tuple[ProofShape, ...]


class CompletionAnswer(Answer, frozen=True, kw_only=True):
    """`completion`: the script for one shell."""

    shell: str
    script: str


class VersionAnswer(Answer, frozen=True, kw_only=True):
    """`version`: of sojourn, of Python, and the versions of the capsule's format."""

    version: str
    python: str
    format_write: int
    format_read: int
