"""How a capsule stood at one of its events: documents, notes, configuration, turn and calls."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.agent.look import Look
from sojourn.core.turn_state import TurnState, evolve
from sojourn.core.view import Transcript
from sojourn.errors import NotFoundError
from sojourn.format.capsule_kinds import Snapshotted
from sojourn.format.event import Configured, DocumentChange, Event, Memory
from sojourn.format.working_memory import Fold, add, hide
from sojourn.ids import EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The folds after `event`, the log's last one when none was named.

    `snapshot` is the id of the current snapshot's event then, None when none was taken.
    """

    event: Event
    state: TurnState
    documents: Mapping[str, DocumentChange]
    notes: str
    configured: tuple[EventId, Configured] | None
    snapshot: EventId | None


def moment(look: Look, event: Event | None) -> Moment:
    """How the capsule stood when `event` had been appended, as it stands for None.

    Raises: NotFoundError `event_missing`; FormatError when a blob of the notes is missing.
    """
    state, transcript, notes, snapshot = TurnState(), Transcript(), Fold(), None
    last: Event | None = None
    for last in look.events_of():
        state = evolve(state, last)
        transcript.apply(last)
        if isinstance(last.body, Memory):
            notes = add(notes, last.body, read_text=look.text)
        elif isinstance(last.body, Snapshotted):
            snapshot = last.id
        elif last.body is None and last.header.kind == "memory":
            notes = hide(notes)
        if event is not None and last.id == event.id:
            break
    if last is None or (event is not None and last.id != event.id):
        raise NotFoundError("the log holds no such event", code="event_missing")
    return Moment(
        event=last,
        state=state,
        documents=dict(transcript.documents),
        notes=look.text(notes.text),
        configured=transcript.configured,
        snapshot=snapshot,
    )
