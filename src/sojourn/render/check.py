"""The last look at a request before it is sent: the rules whose breach would brick a conversation.

It looks with other eyes than the passes that made it so (docs/rendering.md#self-check).
"""

from sojourn.errors import CallError
from sojourn.render.draft import (
    Answers,
    Ask,
    Draft,
    FromModel,
    FromUser,
    Message,
    Piece,
    Private,
    Words,
)
from sojourn.render.pairs import continues
from sojourn.render.request import Target
from sojourn.render.source import is_whole
from sojourn.render.wire_ids import WireIds


class Seen:
    """The messages up to the last reply of a request that was found sound, and their calls."""

    def __init__(self) -> None:
        self.target: Target | None = None
        self.messages: tuple[Message, ...] = ()
        self.ids: WireIds | None = None


def self_check(draft: Draft, target: Target, seen: Seen | None = None) -> None:
    """Pass only what every provider of this kind takes; not looked at again is what was `seen`.

    Raises: CallError `request_unsound`: a fault of sojourn, nothing was sent.
    """
    if not draft.messages or not isinstance(draft.messages[0], FromUser):
        raise _unsound("the first message is not the user's")
    start, ids = _known(draft, target, seen or Seen())
    last = _last_reply(draft.messages)
    for at in range(start, len(draft.messages)):
        if at == last and seen is not None:
            seen.target, seen.messages, seen.ids = target, draft.messages[:at], ids.copy()
        _check_message(draft.messages, at, ids)
    before = draft.messages[-1]
    if isinstance(before, FromModel) and (_asks(before) or not continues(before)):
        raise _unsound("the list ends with a reply")
    if target.profile.calls_need_tools and not draft.offers and _any_calls(draft):
        raise _unsound("calls stand in the messages and no tool is declared")


def _known(draft: Draft, target: Target, seen: Seen) -> tuple[int, WireIds]:
    """From where on to look, and the ids of the calls before."""
    count = len(seen.messages)
    if seen.ids is None or seen.target != target or draft.messages[:count] != seen.messages:
        return 0, WireIds(target.profile)
    return count, seen.ids.copy()


def _last_reply(messages: tuple[Message, ...]) -> int:
    found = (at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], FromModel))
    return next(found, -1)


def _check_message(messages: tuple[Message, ...], at: int, ids: WireIds) -> None:
    message = messages[at]
    _check_place(message, messages[at - 1] if at else None)
    for ask in _asks(message):
        if ids.of(ask.key) is not None:
            raise _unsound("a call stands in it twice")
        if ids.take(ask.key, ask.wire_id) != ask.wire_id:
            raise _unsound("a call's id is not legal, or not its own")
    _check_pieces(message)


def _unsound(what: str) -> CallError:
    return CallError(
        f"the request would be refused: {what}",
        code="request_unsound",
        state="nothing was sent",
        hint="this is a fault in sojourn; `sojourn context` shows the request",
    )


def _asks(message: Message) -> list[Ask]:
    if not isinstance(message, FromModel):
        return []
    return [piece for piece in message.pieces if isinstance(piece, Ask)]


def _any_calls(draft: Draft) -> bool:
    return any(_asks(message) for message in draft.messages)


def _check_place(message: Message, before: Message | None) -> None:
    asked = [] if before is None else [(ask.key, ask.wire_id) for ask in _asks(before)]
    given = []
    if isinstance(message, Answers):
        given = [(answer.key, answer.wire_id) for answer in message.answers]
    if asked != given:
        raise _unsound("calls and results do not stand side by side, one for one")
    if not isinstance(message, FromModel) or not isinstance(before, FromModel):
        return
    if not (continues(before) and message.own):
        raise _unsound("two replies meet")


def _check_pieces(message: Message) -> None:
    if isinstance(message, Answers):
        groups = [answer.pieces for answer in message.answers]
    else:
        groups = [message.pieces]
    own = isinstance(message, FromModel) and message.own
    for pieces in groups:
        if not pieces:
            raise _unsound("a message is empty")
        for piece in pieces:
            _check_piece(piece, own=own)


def _check_piece(piece: Piece, *, own: bool) -> None:
    if isinstance(piece, Words) and not (piece.text.strip() and is_whole(piece.text)):
        raise _unsound("a text is blank or is not Unicode")
    if isinstance(piece, Private) and not own:
        raise _unsound("another model's reasoning is in it")
