"""The agent's notes through time: every edit, as the log tells it (docs/format.md#memory)."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from sojourn.agent.look import Look
from sojourn.agent.machine import Machine
from sojourn.agent.places import Place
from sojourn.core.tenure import MayLook
from sojourn.drive.opening import refusal
from sojourn.errors import FormatError, HeldElsewhereError, LimitError, NotFoundError
from sojourn.format import layout
from sojourn.format.event import Event, Memory
from sojourn.format.working_memory import MAX_EDIT, Fold, add, digest_of, hide
from sojourn.ids import RequestId
from sojourn.ports import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The notes after one edit; `origin` says who made it: a person by hand, or the agent.

    `number` is that of the event in the log.
    """

    event: Event
    number: int
    origin: Literal["hand", "tool", "created"]
    text: str

    @property
    def sha256(self) -> str:
        """The digest of the notes."""
        return sha256(self.text.encode()).hexdigest()


def edits_of(look: Look) -> tuple[Edit, ...]:
    """Every edit of the notes in the order of the log.

    Raises: FormatError when a text's blob is missing.
    """
    found: list[Edit] = []
    fold = Fold()
    for number, event in look.numbered():
        if isinstance(event.body, Memory):
            fold = add(fold, event.body, read_text=look.text)
            text, origin = look.text(fold.text), event.body.origin
            found.append(Edit(event=event, number=number, origin=origin, text=text))
        elif _is_hidden(event):
            fold = hide(fold)
    return tuple(found)


def notes_at(look: Look, event: Event | None) -> str:
    """The notes as they were when `event` had been appended, as they are for None."""
    fold = Fold()
    for one in look.events_of():
        if isinstance(one.body, Memory):
            fold = add(fold, one.body, read_text=look.text)
        elif _is_hidden(one):
            fold = hide(fold)
        if event is not None and one.id == event.id:
            return look.text(fold.text)
    if event is not None:
        raise NotFoundError("the log holds no such event", code="event_missing")
    return look.text(fold.text)


def _is_hidden(event: Event) -> bool:
    return event.body is None and event.header.kind == "memory"


def notes_on_disk(look: Look) -> str:
    """What `working_memory.md` holds now, edits that are not in the log yet included.

    Raises: FormatError `not_utf8`.
    """
    data = look.store.read_file(layout.WORKING_MEMORY) or b""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            "working_memory.md is not UTF-8 text",
            code="not_utf8",
            state="Nothing was changed.",
            hint="Save the file as UTF-8.",
            file=layout.WORKING_MEMORY,
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """An edit was accepted; `recorded` when it is in the log already."""

    request: RequestId
    recorded: bool


async def edit_notes(machine: Machine, place: Place, *, before: str, after: str) -> Edited:
    """Accept an edit of the notes, made from the text `before`, and record it if nobody runs.

    Raises: LimitError `memory_too_long`; what holding a capsule raises, nothing accepted.
    """
    if len(after.encode(errors="surrogatepass")) > MAX_EDIT:
        raise LimitError(
            f"the notes would have more than {MAX_EDIT:,} bytes",
            code="memory_too_long",
            state="Nothing was changed.",
            hint="Shorten them.",
        )
    admission = machine.look(place).admission
    if isinstance(admission, MayLook):
        raise refusal(admission)
    request = RequestId(machine.ports.randomness.token(16).hex())
    edit = Message(
        request=request,
        author="user",
        text=after,
        kind="memory",
        before=digest_of(before),
    )
    machine.ports.inbox.put(place.capsule, edit)
    try:
        async with machine.hold(place):
            return Edited(request=request, recorded=True)
    except HeldElsewhereError as error:
        if error.code != "held_elsewhere":
            raise
        return Edited(request=request, recorded=False)
