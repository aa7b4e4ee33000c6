"""How a capsule stood at one of its events: documents, notes, configuration, turn and calls."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.agent.look import Look, Numbered
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

    `number` is that of the event in the log, `snapshot` the id of the current snapshot's event
    then, None when none was taken.
    """

    event: Event
    number: int
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
    last: Numbered | None = None
    for last in look.numbered():
        one = last.event
        state = evolve(state, one)
        transcript.apply(one)
        if isinstance(one.body, Memory):
            notes = add(notes, one.body, read_text=look.text)
        elif isinstance(one.body, Snapshotted):
            snapshot = one.id
        elif one.body is None and one.header.kind == "memory":
            notes = hide(notes)
        if event is not None and one.id == event.id:
            break
    if last is None or (event is not None and last.event.id != event.id):
        raise NotFoundError("the log holds no such event", code="event_missing")
    return Moment(
        event=last.event,
        number=last.number,
        state=state,
        documents=dict(transcript.documents),
        notes=look.text(notes.text),
        configured=transcript.configured,
        snapshot=snapshot,
    )
