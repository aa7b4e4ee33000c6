"""Calls and their results: each call has exactly one, right behind it; and how the list begins,
goes on and ends.

docs/rendering.md#pairs.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from sojourn.core.view import Call
from sojourn.format.event import EventId
from sojourn.ids import CallKey
from sojourn.render import says
from sojourn.render.draft import (
    Answer,
    Answers,
    Ask,
    Draft,
    FromModel,
    FromUser,
    Message,
    Piece,
    Served,
    Words,
    unknown_text,
    with_losses,
)
from sojourn.render.private import served_words
from sojourn.render.request import Loss, Target
from sojourn.render.source import read_object


def drop_unfinished(draft: Draft, target: Target) -> Draft:
    """A reply that was cut off is not shown, unless one of its calls began."""
    del target
    messages: list[Message] = []
    losses: list[Loss] = []
    for message in draft.messages:
        if isinstance(message, FromModel) and not message.completed and not _began(message):
            losses.append(Loss(code="unfinished_dropped", event=message.event, detail=""))
        else:
            messages.append(message)
    return with_losses(draft, messages, losses)


def _began(message: FromModel) -> bool:
    return any(call.started or call.result is not None for call in message.calls)


def repair_pairs(draft: Draft, target: Target) -> Draft:
    """Every call gets exactly one result, in the order of the calls; what is missing is told.

    A call that never began says so; one that began and has no outcome may have happened.
    """
    del target
    messages: list[Message] = []
    losses: list[Loss] = []
    asked: FromModel | None = None
    for message in draft.messages:
        if isinstance(message, FromModel):
            if asked is not None:
                _close(asked, None, messages, losses)
            asked = message if _asks_of(message) else None
            messages.append(message)
        elif isinstance(message, Answers):
            if asked is not None:
                _close(asked, message, messages, losses)
            asked = None
        else:
            messages.append(message)
    if asked is not None:
        _close(asked, None, messages, losses)
    return _repair_served(with_losses(draft, messages, losses))


def _asks_of(message: FromModel) -> list[Ask]:
    return [piece for piece in message.pieces if isinstance(piece, Ask)]


def _close(
    asked: FromModel, given: Answers | None, messages: list[Message], losses: list[Loss]
) -> None:
    known: dict[CallKey, Answer] = {}
    asks = _asks_of(asked)
    keys = {ask.key for ask in asks}
    for answer in given.answers if given else ():
        if answer.key not in keys or known.setdefault(answer.key, answer) is not answer:
            losses.append(Loss(code="result_dropped", event=asked.event, detail=answer.tool))
    calls = {call.key: call for call in asked.calls}
    answers: list[Answer] = []
    for ask in asks:
        answer = known.get(ask.key)
        if answer is None:
            answer = _missing(ask, calls.get(ask.key))
            losses.append(Loss(code="call_answered", event=asked.event, detail=ask.tool))
        answers.append(answer)
    messages.append(Answers(asked.event, tuple(answers)))


def _missing(ask: Ask, call: Call | None) -> Answer:
    if call is not None and call.started:
        text = unknown_text(call)
    elif read_object(ask.arguments) is None or (call is not None and call.part.broken):
        text = says.NOT_RUN_BROKEN
    else:
        text = says.NOT_RUN
    return Answer(ask.key, ask.wire_id, ask.tool, failed=True, pieces=(Words(text),))


def _repair_served(draft: Draft) -> Draft:
    """A provider's own call without a result goes, unless its paused reply ends the list."""
    messages = list(draft.messages)
    losses: list[Loss] = []
    run: list[int] = []
    for number, message in enumerate(messages):
        if isinstance(message, FromModel):
            run.append(number)
        if isinstance(message, FromModel) and continues(message):
            continue
        _pair_served(messages, run, losses)
        run = []
    return with_losses(draft, messages, losses) if losses else draft


def _pair_served(messages: list[Message], run: Sequence[int], losses: list[Loss]) -> None:
    found = [messages[number] for number in run]
    replies = [message for message in found if isinstance(message, FromModel)]
    served = [p for message in replies for p in message.pieces if isinstance(p, Served)]
    results = {_served_id(piece) for piece in served if piece.is_result}
    calls = {_served_id(piece) for piece in served if not piece.is_result}
    paired = results & calls
    if results == calls:
        return
    for number, message in zip(run, replies, strict=True):
        pieces = tuple(_or_summary(p, paired, message.event, losses) for p in message.pieces)
        messages[number] = replace(message, pieces=pieces)


def _served_id(piece: Served) -> str:
    name = (piece.value or {}).get("tool_use_id" if piece.is_result else "id")
    return name if isinstance(name, str) else ""


def _or_summary(piece: Piece, paired: set[str], event: EventId, losses: list[Loss]) -> Piece:
    if not isinstance(piece, Served) or _served_id(piece) in paired:
        return piece
    losses.append(Loss(code="server_call_summarised", event=event, detail=piece.summary[:80]))
    return served_words(piece)


def continues(message: FromModel) -> bool:
    """Whether the target itself goes on with this reply when it gets it back as it is."""
    paused = message.own and message.stop == "paused" and bool(message.pieces)
    return paused and isinstance(message.pieces[-1], Served)


def hold_messages(draft: Draft, target: Target) -> Draft:
    """What was said while a batch ran comes after its results, in the order of the log."""
    del target
    messages: list[Message] = []
    held: list[Message] = []
    open_calls = False
    for message in draft.messages:
        if isinstance(message, Answers):
            messages += [message, *held]
            held, open_calls = [], False
        elif isinstance(message, FromModel):
            messages += [*held, message]
            held, open_calls = [], bool(_asks_of(message))
        elif open_calls:
            held.append(message)
        else:
            messages.append(message)
    messages += held
    return replace(draft, messages=tuple(messages))


def mend_ends(draft: Draft, target: Target) -> Draft:
    """The list begins and ends with the user's side, and no two replies meet.

    A paused reply that the target itself goes on with may end the list, or meet the next one.
    """
    del target
    messages: list[Message] = []
    losses: list[Loss] = []
    before: Message | None = None
    for message in draft.messages:
        if isinstance(message, FromModel):
            if before is None:
                _bridge(messages, losses, says.BEGIN)
            elif isinstance(before, FromModel) and not (continues(before) and message.own):
                _bridge(messages, losses, says.GO_ON)
        messages.append(message)
        before = message
    if before is None:
        _bridge(messages, losses, says.EMPTY_MESSAGE)
    elif isinstance(before, FromModel) and not continues(before):
        _bridge(messages, losses, says.GO_ON)
    return with_losses(draft, messages, losses) if losses else draft


def _bridge(messages: list[Message], losses: list[Loss], text: str) -> None:
    losses.append(Loss(code="bridge_added", event=None, detail=text))
    messages.append(FromUser(None, (Words(text),)))
