"""Texts that every provider takes: valid Unicode, never blank, arguments that are JSON objects.

docs/rendering.md#texts.
"""

from msgspec.structs import replace

from sojourn.ids import EventId
from sojourn.render import says
from sojourn.render.draft import (
    Answer,
    Ask,
    Draft,
    FromModel,
    FromUser,
    Message,
    Offer,
    Piece,
    Private,
    Words,
    with_losses,
)
from sojourn.render.private import BLOCK_KIND
from sojourn.render.request import Loss, Target
from sojourn.render.source import (
    SourceError,
    is_whole,
    mend,
    mend_value,
    plain_object,
    read,
    read_object,
    whole_value,
    write,
)


def wrap_arguments(draft: Draft, target: Target) -> Draft:
    """Arguments that are no JSON object go as an object that holds their raw text."""
    del target
    messages: list[Message] = []
    losses: list[Loss] = []
    for message in draft.messages:
        if isinstance(message, FromModel):
            pieces = tuple(
                _with_value(piece, message.event, losses) if isinstance(piece, Ask) else piece
                for piece in message.pieces
            )
            messages.append(replace(message, pieces=pieces))
        else:
            messages.append(message)
    return with_losses(draft, messages, losses)


def _with_value(ask: Ask, event: EventId, losses: list[Loss]) -> Ask:
    plain = plain_object(ask.arguments)
    if plain is not None:
        return replace(ask, value=plain)
    value = read_object(ask.arguments)
    if value is None:
        losses.append(Loss(code="arguments_wrapped", event=event, detail=ask.tool))
        value = {says.INVALID_ARGUMENTS: mend(ask.arguments)}
        return replace(ask, value=value, arguments=write(value))
    if is_whole(ask.arguments) and whole_value(value):
        return replace(ask, value=value)
    losses.append(Loss(code="text_mended", event=event, detail=ask.tool))
    mended = {mend(key): mend_value(one) for key, one in value.items()}
    return replace(ask, value=mended, arguments=write(mended))


def clean_text(draft: Draft, target: Target) -> Draft:
    """Lone surrogates become U+FFFD, blank texts go, and what must say something does."""
    del target
    losses: list[Loss] = []
    messages = [_clean(message, losses) for message in draft.messages]
    cleaned = replace(
        draft,
        system=mend(draft.system),
        notes=mend(draft.notes),
        offers=tuple(_clean_offer(offer) for offer in draft.offers),
    )
    return with_losses(cleaned, messages, losses)


def _clean_offer(offer: Offer) -> Offer:
    schema = {mend(key): mend_value(value) for key, value in offer.schema.items()}
    return replace(offer, description=mend(offer.description), schema=schema)


def _clean(message: Message, losses: list[Loss]) -> Message:
    if isinstance(message, FromUser):
        pieces = _pieces(message.pieces, message.event, losses)
        return replace(message, pieces=pieces or (Words(says.EMPTY_MESSAGE),))
    if isinstance(message, FromModel):
        return replace(message, pieces=_pieces(message.pieces, message.event, losses))
    answers = tuple(_clean_answer(answer, message.event, losses) for answer in message.answers)
    after = _pieces(message.after, message.event, losses)
    return replace(message, answers=answers, after=after)


def _clean_answer(answer: Answer, event: EventId, losses: list[Loss]) -> Answer:
    pieces = _pieces(answer.pieces, event, losses)
    return replace(answer, pieces=pieces or (Words(says.NO_OUTPUT),))


def _pieces(
    pieces: tuple[Piece, ...], event: EventId | None, losses: list[Loss]
) -> tuple[Piece, ...]:
    cleaned: list[Piece] = []
    for piece in pieces:
        kept = _clean_piece(piece, event, losses)
        if kept is not None:
            cleaned.append(kept)
    return tuple(cleaned)


def _clean_piece(piece: Piece, event: EventId | None, losses: list[Loss]) -> Piece | None:
    if isinstance(piece, Ask):
        return piece if piece.caller is None else replace(piece, caller=_sound(piece.caller))
    if not isinstance(piece, Words):
        return piece
    text = mend(piece.text)
    if not text or text.isspace():
        if text:
            losses.append(Loss(code="blank_dropped", event=event, detail=""))
        return None
    if text is not piece.text:
        losses.append(Loss(code="text_mended", event=event, detail=""))
    elif piece.citations is None:
        return piece
    return replace(piece, text=text, citations=_sound(piece.citations))


def _sound(source: str | None) -> str | None:
    """The JSON text itself when it can be sent on."""
    if source is None:
        return None
    try:
        return source if whole_value(read(source)) else None
    except SourceError:
        return None


def omit_empty(draft: Draft, target: Target) -> Draft:
    """A reply that has nothing left but reasoning is left out: no provider takes it alone."""
    del target
    messages: list[Message] = []
    losses: list[Loss] = []
    for message in draft.messages:
        if isinstance(message, FromModel) and not any(map(_shows, message.pieces)):
            losses.append(Loss(code="turn_omitted", event=message.event, detail=""))
        else:
            messages.append(message)
    return with_losses(draft, messages, losses)


def _shows(piece: Piece) -> bool:
    return not isinstance(piece, Private) or piece.kind == BLOCK_KIND
