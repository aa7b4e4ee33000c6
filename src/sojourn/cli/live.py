"""What a person, or a program, sees of a run while it goes on."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, assert_never

from sojourn.cli.clean import one_line
from sojourn.cli.events import DOES, Calls, plain, said, shape_of_event, why_failed
from sojourn.cli.people import took
from sojourn.cli.shapes import EventLine, NoteLine
from sojourn.cli.voice import Painted, Voice
from sojourn.format.capsule_kinds import (
    Activated,
    Claimed,
    Forked,
    Redacted,
    Repaired,
    Restored,
    Sealed,
    Snapshotted,
)
from sojourn.format.event import (
    AnyBody,
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
)
from sojourn.ids import CapsuleId, EventId
from sojourn.render import Delta

if TYPE_CHECKING:
    from sojourn.agent import Observer


DECIDED: Final = {
    "done": "settled: it happened",
    "failed": "settled: it failed",
    "retry": "is called once more",
    "skip": "stays unknown",
}
"""What a person decided about a call that may have happened."""


class Silent:
    """Says nothing but notes of the runtime, and those only with -v."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        _tolerate(voice)

    def event(self, event: Event) -> None:
        """Nothing."""

    def delta(self, delta: Delta) -> None:
        """Nothing."""

    def output(self, tool: str, data: bytes) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """One line with -v."""
        self._voice.detail(Painted(text, "dim"))


class Lines(Silent):
    """One JSON object a line: durable events, and notes.

    `number_of` says in which line of the log an event stands that was appended just now.
    """

    def __init__(
        self, voice: Voice, capsule: CapsuleId, *, number_of: Callable[[EventId], int]
    ) -> None:
        super().__init__(voice)
        self._capsule = capsule
        self._number_of = number_of
        self._number = 0
        self._last: EventId | None = None

    def event(self, event: Event) -> None:
        """The event is durable; what goes on from the one before stands in the next line."""
        if self._last is not None and event.header.prev == self._last:
            self._number += 1
        else:
            self._number = self._number_of(event.id)
        self._last = event.id
        shape = shape_of_event(event, self._number)
        self._voice.answer(EventLine(capsule=self._capsule, event=shape))

    def note(self, text: str) -> None:
        """What the runtime did."""
        self._voice.answer(NoteLine(capsule=self._capsule, text=text))


class Live:
    """For people: the reply as it streams, one line a call with its outcome and time.

    Text of the model goes to stdout, all else to stderr. `past` reads the log, for calls that were
    asked for before this run. A worker shows more: the name of the capsule (`heading`) before the
    first line of a turn, messages to the agent, and failures, which nobody else would tell. On a
    terminal a call that runs has a line that its outcome replaces.
    """

    def __init__(
        self,
        voice: Voice,
        capsule: CapsuleId,
        *,
        past: Callable[[], Iterable[Event]] = tuple,
        heading: str | None = None,
    ) -> None:
        self._voice = voice
        self._calls = Calls(capsule)
        self._past = past
        self._heading = heading
        self._worker = heading is not None
        self._name = heading or ""
        self._streamed = False
        self._passing = False
        self.tools = 0
        _tolerate(voice)

    def event(self, event: Event) -> None:
        """The event is durable."""
        self._calls.take(event)
        body = event.body
        if isinstance(body, ToolIntent | ToolOutcome | Settled) and not self._calls.knows(
            body.call
        ):
            for earlier in self._past():
                self._calls.take(earlier)
        if isinstance(body, AnyBody):
            self._happened(body)

    def delta(self, delta: Delta) -> None:
        """A piece of a reply as it comes."""
        match delta.kind:
            case "text":
                self._streamed = True
                self._reply(delta.text)
            case "reasoning":
                self._aside(delta.text)
            case "call":
                return
            case _:
                assert_never(delta.kind)

    def output(self, tool: str, data: bytes) -> None:  # noqa: ARG002 - as Observer has it
        """A piece of a tool's output, shown with -v."""
        self._aside(data.decode("utf-8", "replace"))

    def note(self, text: str) -> None:
        """What the runtime did."""
        self._say(Painted(text, "dim"))

    def end(self) -> None:
        """Nothing more will happen."""
        self._wipe()
        self._finish_reply()

    def _happened(self, body: AnyBody) -> None:
        match body:
            case ModelIntent():
                self._streamed = False
                self._pass(f"… {body.issuer.provider}/{body.issuer.model}")
            case ModelOutcome():
                self._replied(body)
            case ToolIntent():
                self._pass(f"… {self._calls.words(body.call)}")
            case ToolOutcome():
                self._returned(body)
            case Input():
                if self._worker:
                    self._say(Painted(f"{body.author}: ", "name"), one_line(said(body.parts)))
            case TurnPaused():
                self._paused(body)
            case Settled():
                self._say(f"  {self._calls.words(body.call)}: {DECIDED[body.decision]}")
            case (
                Created()
                | Configured()
                | TurnTaken()
                | TurnEnded()
                | Memory()
                | EnvironmentChanged()
                | Cut()
                | Forked()
                | Claimed()
                | Activated()
                | Snapshotted()
                | Restored()
                | Sealed()
                | Redacted()
                | Repaired()
            ):
                return
            case _:
                assert_never(body)

    def _replied(self, body: ModelOutcome) -> None:
        self._wipe()
        match body.status:
            case "done":
                text = said(body.parts)
                if text and not self._streamed:
                    self._reply(text)
                self._finish_reply()
            case "failed":
                self._finish_reply()
                failure = body.failure
                if self._worker and failure is not None:
                    words = f"  {plain(failure.message)} [{failure.code}]"
                    self._say(Painted("✗ model", "bad"), words)
            case "unknown":
                self._finish_reply()
                self._say(Painted(f"? model: the earlier call {DOES}; it is asked again", "alarm"))
            case _:
                assert_never(body.status)

    def _paused(self, body: TurnPaused) -> None:
        """What a worker leaves to a person; others tell that in their own last lines."""
        if self._worker and body.reason != "stopped":
            ways = " --retry | --skip | --result FILE" if body.reason == "decision" else ""
            self._say(f"  the turn waits for a person:  sojourn resume {self._name}{ways}")

    def _returned(self, body: ToolOutcome) -> None:
        self.tools += 1
        call = self._calls.words(body.call)
        time = Painted(f"  {took(body.milliseconds)}", "dim")
        match body.status:
            case "done":
                self._say(Painted("✓ ", "good"), call, time)
            case "failed":
                self._say(Painted("✗ ", "bad"), call, time, Painted(f"  {why_failed(body)}", "bad"))
            case "unknown":
                self._say(Painted("? ", "alarm"), call, Painted(f"  unknown: it {DOES}", "alarm"))
            case _:
                assert_never(body.status)

    def _reply(self, text: str) -> None:
        """A piece of what the model says."""
        self._announce()
        self._voice.before_data()
        self._voice.out.put(text)

    def _finish_reply(self) -> None:
        if not self._voice.out.fresh:
            self._voice.out.line()

    def _aside(self, text: str) -> None:
        """What only a person who said -v wants to see, as it comes."""
        if self._voice.settings.verbose and not self._voice.settings.quiet:
            self._announce()
            if self._voice.both:
                self._finish_reply()
            self._voice.err.put(Painted(text, "dim"))

    def _announce(self) -> None:
        """Before anything is shown: the name of the capsule, once."""
        self._wipe()
        if self._heading is not None:
            self._voice.talk(Painted(self._heading, "name"))
            self._heading = None

    def _say(self, *pieces: str | Painted) -> None:
        self._announce()
        self._voice.talk(*pieces)

    def _pass(self, text: str) -> None:
        """A line that the next thing replaces; only on a terminal."""
        voice = self._voice
        if voice.both and not voice.settings.quiet:
            from shutil import get_terminal_size

            self._wipe()
            self._finish_reply()
            voice.err.put(Painted(text[: get_terminal_size().columns - 1], "dim"))
            self._passing = True

    def _wipe(self) -> None:
        if self._passing:
            self._voice.err.erase()
            self._passing = False


def _tolerate(voice: Voice) -> None:
    """Nobody reading any more is no reason to end a run half-way."""
    voice.out.tolerant = voice.err.tolerant = True


class Counting:
    """Hands everything on to another observer and counts the turns that were taken."""

    def __init__(self, observer: "Observer") -> None:
        self._observer = observer
        self.turns = 0
        self.delta, self.output, self.note = observer.delta, observer.output, observer.note

    def event(self, event: Event) -> None:
        """The event is durable."""
        self.turns += isinstance(event.body, TurnTaken)
        self._observer.event(event)
