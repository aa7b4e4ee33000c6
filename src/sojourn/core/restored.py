"""What a workspace lacks that was put back to an earlier moment (docs/format.md#snapshots)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sojourn.core.notices import MOVED, MOVED_LACKS, MOVED_TO, NOT_ALONG, UNKNOWN_CALLS
from sojourn.format.capsule_kinds import Activated, Restored, Snapshotted
from sojourn.format.event import Event, ToolIntent
from sojourn.format.parts import CallPart, Text
from sojourn.ids import CallKey, EventId

MOST_NAMED: Final = 20
"""Calls that the model is told of by name; of more it is told their number."""

LONGEST: Final = 120
"""Characters of a call's arguments that the model is told."""

PUT_BACK: Final = "The files of the workspace were put back to an earlier state."
NONE_LACKS: Final = "No call of yours is affected."
LACKS: Final = (
    "What these earlier calls did to files in it may be gone; what they did elsewhere has still "
    "happened. Look before you rely on a file:"
)


class Lacking:
    """Folds a log into the calls that a workspace of any of its snapshots lacks.

    A call counts from its intent on, unless its tool says that running it again is harmless.
    """

    def __init__(self) -> None:
        self._calls: dict[CallKey, None] = {}
        self._now: tuple[CallKey, ...] = ()
        self._at: dict[EventId, tuple[int, tuple[CallKey, ...]]] = {}

    def add(self, event: Event) -> None:
        """Take in the log's next event."""
        body = event.body
        if isinstance(body, ToolIntent):
            if body.replay != "safe":
                self._calls[body.call] = None
        elif isinstance(body, Snapshotted):
            self._at[event.id] = (len(self._calls), self._now)
        elif isinstance(body, Restored):
            self._now = self.at(body.snapshot)

    def at(self, snapshot: EventId | None) -> tuple[CallKey, ...]:
        """The calls that a workspace lacks once this snapshot is back; None is an empty one."""
        calls = tuple(self._calls)
        if snapshot is None:
            return calls
        count, lacked = self._at.get(snapshot, (0, ()))
        missing = {*lacked, *calls[count:]}
        return tuple(call for call in calls if call in missing)


def missing_calls(events: Iterable[Event], snapshot: EventId | None) -> tuple[CallKey, ...]:
    """The calls of a log whose effects a workspace lacks once `snapshot` is put back."""
    lacking = Lacking()
    for event in events:
        lacking.add(event)
    return lacking.at(snapshot)


def told(body: Restored | Activated, part_of: Callable[[CallKey], CallPart | None]) -> str:
    """What the model is told of a workspace that was put back, or of a move.

    `part_of` gives a call as the model asked for it, None for one that it does not know.
    """
    if isinstance(body, Activated):
        return _told_of_move(body, part_of)
    if not body.missing:
        return f"{PUT_BACK} {NONE_LACKS}"
    return "\n".join((f"{PUT_BACK} {LACKS}", *_listed(body.missing, part_of)))


def _told_of_move(body: Activated, part_of: Callable[[CallKey], CallPart | None]) -> str:
    lines = [MOVED_TO.format(label=body.label) if body.label else MOVED]
    if body.left_out_count:
        more = body.left_out_count - len(body.left_out[:MOST_NAMED])
        names = ", ".join(body.left_out[:MOST_NAMED]) + (f" and {more} more" if more else "")
        lines.append(NOT_ALONG.format(names=names))
    if body.missing:
        lines += [MOVED_LACKS, *_listed(body.missing, part_of)]
    if body.unknown:
        lines += [UNKNOWN_CALLS, *_listed(body.unknown, part_of)]
    return "\n".join(lines)


def _listed(keys: Sequence[CallKey], part_of: Callable[[CallKey], CallPart | None]) -> list[str]:
    """The calls, the last ones by name, those before them by their number."""
    missing = len(keys)
    calls = [part for key in keys if (part := part_of(key)) is not None]
    shown = calls[-MOST_NAMED:]
    lines = [f"- {part.tool} {_short(part.args)}".rstrip() for part in shown]
    if missing > len(shown):
        more = missing - len(shown)
        lines.insert(0, f"- {more} earlier call{'' if more == 1 else 's'}")
    return lines


def _short(args: Text) -> str:
    text = args if isinstance(args, str) else args.preview + " …"
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
