"""The Messages API: the shape of a request (docs/rendering.md#anthropic)."""

from base64 import b64encode
from typing import Final, assert_never

from sojourn.render import says
from sojourn.render.draft import (
    Answer,
    Answers,
    Ask,
    Draft,
    FromModel,
    FromUser,
    Media,
    Piece,
    Private,
    Served,
    Words,
)
from sojourn.render.media import PDF
from sojourn.render.private import BLOCK_KIND, THINKING_KINDS
from sojourn.render.request import Target
from sojourn.render.source import mend, read, read_object

MARKED_MESSAGES: Final = 2
"""User messages with a cache mark, from the last one back; one more is on the system prompt."""

Block = dict[str, object]


def shape(draft: Draft, target: Target) -> dict[str, object]:
    """The request's body, what changes least first."""
    options, profile = draft.options, target.profile
    payload: dict[str, object] = {
        "model": target.issuer.model,
        "max_tokens": options.max_tokens,
        "stream": True,
    }
    if options.temperature is not None:
        payload["temperature"] = options.temperature
    if options.stop:
        payload["stop_sequences"] = list(options.stop)
    if options.thinking is not None and profile.thinking == "adaptive":
        payload["thinking"] = {"type": "adaptive"}
    elif options.thinking is not None:
        payload["thinking"] = {"type": "enabled", "budget_tokens": options.thinking}
    tools = [_tool(offer.name, offer.description, offer.schema) for offer in draft.offers]
    if tools:
        payload["tools"] = tools
    if draft.stubs:
        payload["tool_choice"] = {"type": "none"}
    system = _system(draft)
    if system:
        payload["system"] = system
    messages = _messages(draft)
    if profile.cache_marks:
        _mark(system or tools)
        users = [content for role, content in messages if role == "user"]
        for content in users[-MARKED_MESSAGES:]:
            _mark(content)
    payload["messages"] = [{"role": role, "content": content} for role, content in messages]
    return payload


def _tool(name: str, description: str, schema: dict[str, object]) -> Block:
    if not description.strip():
        return {"name": name, "input_schema": schema}
    return {"name": name, "description": description, "input_schema": schema}


def _system(draft: Draft) -> list[Block]:
    texts = [draft.system]
    if draft.notes.strip():
        texts.append(f"{says.NOTES_HEAD}\n\n{draft.notes}")
    return [_text(text) for text in texts if text.strip()]


def _mark(blocks: list[Block]) -> None:
    """Ask the provider to keep everything up to the last block; thinking blocks take no mark."""
    if blocks and blocks[-1].get("type") not in ("thinking", "redacted_thinking"):
        blocks[-1]["cache_control"] = {"type": "ephemeral"}


def _messages(draft: Draft) -> list[tuple[str, list[Block]]]:
    messages: list[tuple[str, list[Block]]] = []
    for message in draft.messages:
        match message:
            case FromUser():
                role, blocks = "user", _blocks(message.pieces)
            case Answers():
                role = "user"
                blocks = [_result(answer) for answer in message.answers] + _blocks(message.after)
            case FromModel():
                role, blocks = "assistant", _blocks(message.pieces)
            case _:
                assert_never(message)
        if messages and messages[-1][0] == role:
            messages[-1][1].extend(blocks)
        else:
            messages.append((role, blocks))
    return messages


def _blocks(pieces: tuple[Piece, ...]) -> list[Block]:
    found = (_block(piece) for piece in pieces)
    return [block for block in found if block is not None]


def _block(piece: Piece) -> Block | None:
    match piece:
        case Words():
            return _text(piece.text, piece.citations)
        case Private():
            known = piece.kind in THINKING_KINDS or piece.kind == BLOCK_KIND
            return read_object(piece.data) if known else None
        case Ask():
            block: Block = {"type": "tool_use", "id": piece.wire_id, "name": piece.tool}
            value = piece.value or read_object(piece.arguments)
            block["input"] = piece.arguments if value is None else value
            if piece.caller is not None:
                block["caller"] = read(piece.caller)
            return block
        case Served():
            return piece.value or read_object(piece.native)
        case Media():
            return _media(piece)
        case _:
            assert_never(piece)


def _text(text: str, citations: str | None = None) -> Block:
    block: Block = {"type": "text", "text": text}
    if citations is not None:
        block["citations"] = read(citations)
    return block


def _result(answer: Answer) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": answer.wire_id}
    block["content"] = _blocks(answer.pieces)
    if answer.failed:
        block["is_error"] = True
    return block


def _media(media: Media) -> Block:
    kind = "document" if media.media_type == PDF else "image"
    if media.file_id is not None:
        return {"type": kind, "source": {"type": "file", "file_id": media.file_id}}
    if media.data is None:
        return {"type": kind, "source": {"type": "url", "url": mend(media.url or "")}}
    data = b64encode(media.data).decode("ascii")
    source = {"type": "base64", "media_type": media.media_type, "data": data}
    return {"type": kind, "source": source}
