"""What a model is told of each log: the real `Transcript`, folded along and judged at every event.

What a request showed is kept, and everything after is compared with it.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from model.cores import Core
from model.judge import Judge
from sojourn.format.event import Event, ModelIntent, Settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A transcript, and the entries that the last request was made of."""

    core: Core
    transcript: Any
    told: tuple[Any, ...] = ()

    @classmethod
    def empty(cls, core: Core) -> "Shown":
        return cls(core=core, transcript=core.view.Transcript())

    def after(self, event: Event, judge: Judge) -> tuple["Shown", tuple[str, ...]]:
        """The next one, and the names of the rules that it breaks; `judge` is after the event."""
        transcript = _copied(self.transcript)
        transcript.apply(event)
        faults: list[str] = []
        told = self.told
        if tuple(transcript.entries[: len(told)]) != told:
            faults.append("what_was_shown_never_changes")
        body = event.body
        if isinstance(body, ModelIntent):
            told = tuple(transcript.entries)
            faults += _told(self.core, transcript, judge)
        elif isinstance(body, Settled) and body.decision in ("done", "failed"):
            faults += _settled(self.core, transcript, body)
        return Shown(core=self.core, transcript=transcript, told=told), tuple(faults)


def _copied(fold: Any) -> Any:
    """A fold that goes its own way: its parts that change are copied, the values in them shared."""
    made = object.__new__(type(fold))
    for name, value in vars(fold).items():
        if isinstance(value, list | dict | set):
            setattr(made, name, value.copy())
        else:
            setattr(made, name, _copied(value) if hasattr(value, "__dict__") else value)
    return made


def _told(core: Core, transcript: Any, judge: Judge) -> list[str]:
    """Each input and each call once, each call with the result that the log says."""
    faults: list[str] = []
    said = [entry.event for entry in transcript.entries if isinstance(entry, core.view.Said)]
    if len(said) != len(judge.requests) or len(set(said)) != len(said):
        faults.append("each_input_is_shown_once")
    replies = [entry for entry in transcript.entries if isinstance(entry, core.view.Replied)]
    calls = [call for reply in replies for call in reply.calls]
    counted = Counter(call.key for call in calls)
    if counted.keys() != judge.calls.keys() or set(counted.values()) > {1}:
        faults.append("each_call_is_shown_once")
    for call in calls:
        status = None if call.result is None else call.result.status
        asked = judge.calls.get(call.key)
        if asked is not None and status != asked.status:
            faults.append("each_call_is_shown_as_it_ended")
    return faults


def _settled(core: Core, transcript: Any, body: Settled) -> list[str]:
    result = transcript.call(body.call).result
    notices = [e for e in transcript.entries if isinstance(e, core.view.Notice)]
    in_place = result is not None and (result.status, result.parts) == (body.decision, body.parts)
    if in_place or any(notice.attached == body.parts for notice in notices):
        return []
    return ["a_settled_result_is_shown"]
