"""The Chat Completions API and the hosts that copy it (docs/rendering.md#openai-chat)."""

from base64 import b64encode
from typing import Final, assert_never

from msgspec.structs import replace

from sojourn.format.event import Options
from sojourn.render import says
from sojourn.render.draft import (
    Answer,
    Answers,
    Ask,
    Draft,
    FromModel,
    FromUser,
    Media,
    Message,
    Offer,
    Piece,
    Private,
    Words,
)
from sojourn.render.private import field_kind
from sojourn.render.profile import Profile
from sojourn.render.request import Target
from sojourn.render.source import mend, read

LOW_EFFORT: Final = 4096
MEDIUM_EFFORT: Final = 16384
"""A thinking budget up to this many tokens is asked for as that effort."""
BETWEEN: Final = "\n\n"
"""Stands between texts that become one."""

Wire = dict[str, object]


def shape(draft: Draft, target: Target) -> dict[str, object]:
    """The request's body, what changes least first."""
    profile = target.profile
    payload: dict[str, object] = {"model": target.issuer.model, "stream": True}
    if profile.supports_stream_usage:
        payload["stream_options"] = {"include_usage": True}
    payload |= _options(draft.options, profile)
    if draft.offers:
        payload["tools"] = [_tool(offer) for offer in draft.offers]
    if draft.stubs:
        payload["tool_choice"] = "none"
    payload["messages"] = _messages(draft, profile)
    return payload


def _options(options: Options, profile: Profile) -> Wire:
    found: Wire = {profile.max_tokens_field: options.max_tokens}
    if options.temperature is not None:
        found["temperature"] = options.temperature
    if options.stop:
        found["stop"] = list(options.stop)
    if profile.thinking == "effort" and options.thinking is not None:
        found["reasoning_effort"] = _effort(options.thinking)
    if profile.thinking == "switch":
        found["thinking"] = {"type": "disabled" if options.thinking is None else "enabled"}
    return found


def _effort(budget: int) -> str:
    if budget <= LOW_EFFORT:
        return "low"
    return "medium" if budget <= MEDIUM_EFFORT else "high"


def _tool(offer: Offer) -> Wire:
    function: Wire = {"name": offer.name}
    if offer.description.strip():
        function["description"] = offer.description
    function["parameters"] = offer.schema
    return {"type": "function", "function": function}


def _system(draft: Draft) -> str:
    texts = [draft.system]
    if draft.notes.strip():
        texts += [says.NOTES_HEAD, draft.notes]
    return BETWEEN.join(text for text in texts if text.strip())


def _messages(draft: Draft, profile: Profile) -> list[Wire]:
    system = _system(draft)
    found = list(draft.messages)
    messages: list[Wire] = []
    if system and profile.system_role != "none":
        messages.append({"role": profile.system_role, "content": system})
    elif system and found and isinstance(found[0], FromUser):
        found[0] = replace(found[0], pieces=(Words(system), *found[0].pieces))
    before: Message | None = None
    for message in _taking_turns(found) if profile.alternate else found:
        bridged = profile.alternate or profile.bridge_after_tool
        if bridged and isinstance(before, Answers) and isinstance(message, FromUser):
            messages.append({"role": "assistant", "content": says.TAKEN})
        messages += _wired(message, profile)
        before = message
    return messages


def _taking_turns(messages: list[Message]) -> list[Message]:
    """Neighbours on the user's side as one, media of results moved into what follows them."""
    joined: list[Message] = []
    for message in messages:
        last = joined[-1] if joined else None
        if isinstance(message, FromUser) and isinstance(last, FromUser):
            joined[-1] = replace(last, pieces=last.pieces + message.pieces)
        elif isinstance(message, Answers) and message.after:
            joined += [replace(message, after=()), FromUser(message.event, message.after)]
        else:
            joined.append(message)
    return joined


def _wired(message: Message, profile: Profile) -> list[Wire]:
    match message:
        case FromUser():
            return [{"role": "user", "content": _content(message.pieces)}]
        case Answers():
            results = [_result(answer) for answer in message.answers]
            if message.after:
                results.append({"role": "user", "content": _content(message.after)})
            return results
        case FromModel():
            return [_assistant(message, profile)]
        case _:
            assert_never(message)


def _content(pieces: tuple[Piece, ...]) -> str | list[Wire]:
    """One string where all is text: what every host takes; else one part for each piece."""
    texts = [piece.text for piece in pieces if isinstance(piece, Words)]
    if len(texts) == len(pieces):
        return BETWEEN.join(texts)
    parts = [_part(piece) for piece in pieces]
    return [part for part in parts if part is not None]


def _part(piece: Piece) -> Wire | None:
    if isinstance(piece, Words):
        return {"type": "text", "text": piece.text}
    if isinstance(piece, Media) and piece.file_id is not None:
        return {"type": "file", "file": {"file_id": piece.file_id}}
    if isinstance(piece, Media):
        return {"type": "image_url", "image_url": _image(piece)}
    return None


def _image(media: Media) -> Wire:
    url = mend(media.url or "")
    if media.data is not None:
        url = f"data:{media.media_type};base64,{b64encode(media.data).decode('ascii')}"
    if media.detail in ("auto", "low", "high"):
        return {"url": url, "detail": media.detail}
    return {"url": url}


def _result(answer: Answer) -> Wire:
    content = _content(answer.pieces)
    return {"role": "tool", "tool_call_id": answer.wire_id, "content": content}


def _assistant(message: FromModel, profile: Profile) -> Wire:
    calls = [_call(piece, profile) for piece in message.pieces if isinstance(piece, Ask)]
    content = _own_content(message.pieces, profile)
    if content is None and profile.needs_non_null_content:
        content = ""
    wire: Wire = {"role": "assistant", "content": content}
    reasoning = _reasoning(message, profile)
    demanded = profile.reasoning_on == "always" or (profile.reasoning_on == "calls" and calls)
    if profile.reasoning_field is not None and (reasoning is not None or demanded):
        filled = profile.reasoning_fill if reasoning is None else reasoning
        wire[profile.reasoning_field] = filled
    if calls:
        wire["tool_calls"] = calls
    return wire


def _own_content(pieces: tuple[Piece, ...], profile: Profile) -> str | list[Wire] | None:
    words = [piece for piece in pieces if isinstance(piece, Words)]
    if not words:
        return None
    if profile.refusal_parts and any(piece.refusal for piece in words):
        return [
            {"type": "refusal", "refusal": piece.text}
            if piece.refusal
            else {"type": "text", "text": piece.text}
            for piece in words
        ]
    return BETWEEN.join(piece.text for piece in words)


def _call(ask: Ask, profile: Profile) -> Wire:
    arguments: object = ask.arguments
    if profile.arguments_as == "object" and ask.value is not None:
        arguments = ask.value
    function: Wire = {"name": ask.tool, "arguments": arguments}
    return {"id": ask.wire_id, "type": "function", "function": function}


def _reasoning(message: FromModel, profile: Profile) -> object:
    """What the host gave in its own field, as it gave it; None when there is none."""
    if profile.reasoning_field is None:
        return None
    kind = field_kind(profile.reasoning_field)
    found = [piece for piece in message.pieces if isinstance(piece, Private) and piece.kind == kind]
    return read(found[0].data) if found else None
