"""What only its issuer may read back: keep it whole for that issuer, drop it whole for others.

docs/rendering.md#private-reasoning.
"""

from typing import Final

from msgspec.structs import replace

from sojourn.ids import EventId
from sojourn.render import says
from sojourn.render.draft import (
    Answers,
    Ask,
    Draft,
    FromModel,
    FromUser,
    Message,
    Piece,
    Private,
    Served,
    Words,
    with_losses,
)
from sojourn.render.profile import Profile
from sojourn.render.request import Loss, Target
from sojourn.render.source import SourceError, read, read_object, whole_value

THINKING_KINDS: Final = frozenset({"anthropic.thinking", "anthropic.redacted"})
BLOCK_KIND: Final = "anthropic.block"
"""A block of an unknown type, kept verbatim for its issuer."""
DETAILS_KIND: Final = "openrouter.details"
FIELD: Final = "field:"
MIN_BUDGET: Final = 1024
"""The smallest thinking budget that Anthropic takes, in tokens."""


def field_kind(name: str) -> str:
    """The kind of private reasoning that came in the plain field of that name."""
    return DETAILS_KIND if name == "reasoning_details" else FIELD + name


def filter_private(draft: Draft, target: Target) -> Draft:
    """Reasoning, citations and server blocks of any other issuer go; the target's own stay."""
    messages: list[Message] = []
    losses: list[Loss] = []
    for message in draft.messages:
        if isinstance(message, FromModel):
            messages.append(_filtered_reply(message, target, losses))
        else:
            messages.append(message)
    return with_losses(draft, messages, losses)


def _filtered_reply(message: FromModel, target: Target, losses: list[Loss]) -> FromModel:
    pieces: list[Piece] = []
    for piece in message.pieces:
        kept = _filtered(piece, target, losses, own=message.own, event=message.event)
        if kept is not None:
            pieces.append(kept)
    if not message.own:
        pieces.sort(key=lambda piece: isinstance(piece, Ask))
    return replace(message, pieces=tuple(pieces))


def _filtered(
    piece: Piece, target: Target, losses: list[Loss], *, own: bool, event: EventId
) -> Piece | None:
    if isinstance(piece, Private):
        if own and _takes_back(piece, target.profile):
            return piece
        losses.append(Loss(code="reasoning_dropped", event=event, detail=piece.kind or "text"))
        return None
    if isinstance(piece, Served):
        block = read_object(piece.native) if own else None
        if block is not None and target.profile.dialect == "anthropic" and whole_value(block):
            return replace(piece, value=block)
        losses.append(Loss(code="server_call_summarised", event=event, detail=piece.summary[:80]))
        return served_words(piece)
    if own:
        return piece
    if isinstance(piece, Words) and piece.citations is not None:
        losses.append(Loss(code="citations_dropped", event=event, detail=""))
        return replace(piece, citations=None)
    if isinstance(piece, Ask) and piece.caller is not None:
        return replace(piece, caller=None)
    return piece


def served_words(piece: Served) -> Words:
    """What a call of the provider's own was, for those who cannot take its block."""
    if not piece.summary.strip():
        return Words("")
    return Words(says.SERVED.format(summary=piece.summary))


def _takes_back(piece: Private, profile: Profile) -> bool:
    """Whether the issuer of the piece will take it back as it stands."""
    kind = piece.kind
    if kind in THINKING_KINDS or kind == BLOCK_KIND:
        block = read_object(piece.data)
        if profile.dialect != "anthropic" or block is None or not whole_value(block):
            return False
        proof = block.get("signature" if kind == "anthropic.thinking" else "data")
        return kind == BLOCK_KIND or (isinstance(proof, str) and proof != "")
    field = profile.reasoning_field
    if field is None or kind != field_kind(field):
        return False
    try:
        return whole_value(read(piece.data))
    except SourceError:
        return False


def settle_thinking(draft: Draft, target: Target) -> Draft:
    """Where an API signs its thinking: none in a request that has it off, none out of place.

    Budget thinking needs an open tool loop that starts with thinking; where it does not, this one
    request goes without, and says so in its constraints.
    """
    mode = target.profile.thinking
    if mode not in ("budget", "adaptive"):
        return draft
    draft = _without_final_thinking(draft)
    if mode == "budget":
        draft = _with_budget(draft)
    if draft.options.thinking is None:
        return _strip(draft, from_index=0)
    if mode == "adaptive" or _starts_with_thinking(draft.messages):
        return draft
    loss = Loss(code="option_changed", event=None, detail="thinking")
    draft = replace(draft, thinking_allowed=False, losses=(*draft.losses, loss))
    draft = _without_thinking(draft)
    return _strip(draft, from_index=_last_reply(draft.messages))


def _with_budget(draft: Draft) -> Draft:
    """A budget is at least `MIN_BUDGET` and under the limit of the answer, or there is none."""
    asked = draft.options.thinking
    if asked is None:
        return draft
    budget = min(max(asked, MIN_BUDGET), draft.options.max_tokens - 1)
    if budget == asked:
        return draft
    loss = Loss(code="option_changed", event=None, detail=f"thinking {asked}")
    draft = replace(draft, losses=(*draft.losses, loss))
    if budget < MIN_BUDGET:
        return _without_thinking(draft)
    return replace(draft, options=replace(draft.options, thinking=budget))


def _without_thinking(draft: Draft) -> Draft:
    return replace(draft, options=replace(draft.options, thinking=None))


def _is_thinking(piece: Piece) -> bool:
    return isinstance(piece, Private) and piece.kind in THINKING_KINDS


def _without_final_thinking(draft: Draft) -> Draft:
    """A message cannot end with thinking, and thinking goes as a whole or not at all."""
    messages = draft.messages
    ending = [
        number
        for number, message in enumerate(messages)
        if isinstance(message, FromModel) and message.pieces and _is_thinking(message.pieces[-1])
    ]
    for number in ending:
        draft = _strip(draft, from_index=number, to_index=number + 1)
    return draft


def _strip(draft: Draft, *, from_index: int, to_index: int | None = None) -> Draft:
    """Take every thinking block out of some messages."""
    messages = list(draft.messages)
    losses: list[Loss] = []
    stop = len(messages) if to_index is None else to_index
    for number in range(from_index, stop):
        message = messages[number]
        if not isinstance(message, FromModel):
            continue
        kept = tuple(piece for piece in message.pieces if not _is_thinking(piece))
        if len(kept) < len(message.pieces):
            losses.append(Loss(code="reasoning_dropped", event=message.event, detail="thinking"))
            messages[number] = replace(message, pieces=kept)
    return with_losses(draft, messages, losses) if losses else draft


def _last_reply(messages: tuple[Message, ...]) -> int:
    found = (n for n in range(len(messages) - 1, -1, -1) if isinstance(messages[n], FromModel))
    return next(found, 0)


def _starts_with_thinking(messages: tuple[Message, ...]) -> bool:
    """Whether the last reply that asked for calls, and the first one of its loop, start so.

    Which of the two counts is not confirmed (docs/rendering.md#not-confirmed): both must.
    """
    last = _last_reply(messages)
    if not messages or not _asks(messages[last]):
        return True
    first = last
    for number in range(last, -1, -1):
        message = messages[number]
        if isinstance(message, FromUser) and not _follows_answers(messages, number):
            break
        if isinstance(message, FromModel):
            first = number
    return all(_leads(messages[number]) for number in (first, last))


def _asks(message: Message) -> bool:
    return isinstance(message, FromModel) and any(isinstance(p, Ask) for p in message.pieces)


def _follows_answers(messages: tuple[Message, ...], number: int) -> bool:
    """Whether that user message shares a message with results on the wire."""
    before = number - 1
    while before >= 0 and isinstance(messages[before], FromUser):
        before -= 1
    return before >= 0 and isinstance(messages[before], Answers)


def _leads(message: Message) -> bool:
    if not isinstance(message, FromModel):
        return False
    return bool(message.pieces) and _is_thinking(message.pieces[0])
