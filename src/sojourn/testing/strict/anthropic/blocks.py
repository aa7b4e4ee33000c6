"""Content blocks of the Messages API: which ones exist, where they may stand, what they hold."""

import re
from collections.abc import Iterator
from typing import Final

from sojourn.testing.strict.anthropic.rules import AnthropicRules
from sojourn.testing.strict.images import check_image, pixels
from sojourn.testing.strict.refusal import Path, Refused, Rule
from sojourn.testing.strict.shape import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    OBJECT,
    STRING,
    STRING_OR_ARRAY,
    Shape,
    as_array,
    as_object,
    as_string,
    check_shape,
    is_array,
    is_object,
    one_of,
    or_null,
)

_MARKED: Final = {"cache_control": or_null(OBJECT)}
_SERVER_RESULT: Final = Shape(
    {"type": STRING, "tool_use_id": STRING, "content": ANYTHING}, {**_MARKED, "caller": OBJECT}
)

SERVER_RESULTS: Final = frozenset(
    {
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
    }
)
_SERVER_TOOLS: Final = (
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
)
THINKING: Final = frozenset({"thinking", "redacted_thinking"})

_SHAPES: Final = {
    "text": Shape({"type": STRING, "text": STRING}, {**_MARKED, "citations": or_null(ARRAY)}),
    "image": Shape(
        {"type": STRING, "source": OBJECT}, {**_MARKED, "transformations": or_null(OBJECT)}
    ),
    "document": Shape(
        {"type": STRING, "source": OBJECT},
        {
            **_MARKED,
            "citations": or_null(OBJECT),
            "context": or_null(STRING),
            "title": or_null(STRING),
        },
    ),
    "search_result": Shape(
        {"type": STRING, "content": ARRAY, "source": STRING, "title": STRING},
        {**_MARKED, "citations": OBJECT},
    ),
    "container_upload": Shape({"type": STRING, "file_id": STRING}, _MARKED),
    "tool_reference": Shape({"type": STRING, "tool_name": STRING}, _MARKED),
    "thinking": Shape({"type": STRING, "thinking": STRING, "signature": STRING}),
    "redacted_thinking": Shape({"type": STRING, "data": STRING}),
    "tool_use": Shape(
        {"type": STRING, "id": STRING, "name": STRING, "input": ANYTHING},
        {**_MARKED, "caller": OBJECT, "toolset_name": or_null(STRING)},
    ),
    "tool_result": Shape(
        {"type": STRING, "tool_use_id": STRING},
        {
            **_MARKED,
            "content": STRING_OR_ARRAY,
            "is_error": BOOLEAN,
            "toolset_name": or_null(STRING),
        },
    ),
    "server_tool_use": Shape(
        {"type": STRING, "id": STRING, "name": one_of(*_SERVER_TOOLS), "input": OBJECT},
        {**_MARKED, "caller": OBJECT},
    ),
} | dict.fromkeys(SERVER_RESULTS, _SERVER_RESULT)

IN_SYSTEM: Final = frozenset({"text"})
IN_USER: Final = frozenset(
    {"text", "image", "document", "search_result", "tool_result", "container_upload"}
)
IN_ASSISTANT: Final = frozenset({"text", "tool_use", "server_tool_use"}) | THINKING | SERVER_RESULTS
IN_RESULT: Final = frozenset({"text", "image", "document", "search_result", "tool_reference"})

_IMAGE_SOURCES: Final = {
    "base64": Shape({"type": STRING, "media_type": STRING, "data": STRING}),
    "url": Shape({"type": STRING, "url": STRING}),
    "file": Shape({"type": STRING, "file_id": STRING}),
}
_DOCUMENT_SOURCES: Final = {
    "base64": Shape({"type": STRING, "media_type": one_of("application/pdf"), "data": STRING}),
    "text": Shape({"type": STRING, "media_type": one_of("text/plain"), "data": STRING}),
    "content": Shape({"type": STRING, "content": STRING_OR_ARRAY}),
    "url": Shape({"type": STRING, "url": STRING}),
    "file": Shape({"type": STRING, "file_id": STRING}),
}

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_ID: Final = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")


def check_blocks(
    content: object, path: Path, allowed: frozenset[str], rules: AnthropicRules
) -> None:
    """Check a content given as a list of blocks.

    Raises: Refused.
    """
    for index, block in enumerate(as_array(content, path)):
        _check_block(block, (*path, index), allowed, rules)


def check_text(text: str, where: str, rules: AnthropicRules) -> None:
    """A text must say something.

    Raises: Refused with `blank_text`.
    """
    if not text:
        raise Refused(Rule.BLANK_TEXT, f"{where}: text content blocks must be non-empty")
    if rules.refuse_white_space and not text.strip():
        raise Refused(
            Rule.BLANK_TEXT, f"{where}: text content blocks must contain non-whitespace text"
        )


def check_name(name: object, path: Path, rules: AnthropicRules) -> str:
    """The name of a tool.

    Raises: Refused with `name_pattern`.
    """
    text = as_string(name, path)
    if not _NAME.fullmatch(text) or len(text) > rules.max_name:
        pattern = f"^[a-zA-Z0-9_-]{{1,{rules.max_name}}}$"
        raise Refused(Rule.NAME_PATTERN, f"String should match pattern '{pattern}'", path=path)
    return text


def blocks_of(content: object) -> list[dict[str, object]]:
    """The blocks of a checked content; a string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if is_object(block)] if is_array(content) else []


def images_of(messages: list[dict[str, object]]) -> Iterator[tuple[dict[str, object], Path]]:
    """Every image source of checked messages, those inside results too."""
    for number, message in enumerate(messages):
        for index, block in enumerate(blocks_of(message["content"])):
            inner = blocks_of(block.get("content")) if block["type"] == "tool_result" else [block]
            sources = [one.get("source") for one in inner if one["type"] == "image"]
            path: Path = ("messages", number, "content", index)
            yield from ((source, path) for source in sources if is_object(source))


def check_images(messages: list[dict[str, object]], rules: AnthropicRules) -> None:
    """Number, bytes and pixels of all images of a request.

    Raises: Refused with `too_many_images`, `image_size`, `image_empty`, `image_base64` or
    `image_type`.
    """
    found = list(images_of(messages))
    if len(found) > rules.max_images:
        raise Refused(
            Rule.TOO_MANY_IMAGES,
            f"messages: too many images: {len(found)} > {rules.max_images} maximum",
        )
    many = len(found) > rules.many_images
    limit = rules.max_pixels_of_many if many else rules.max_pixels
    for source, path in found:
        if source["type"] != "base64":
            continue
        place = (*path, "image", "source", "base64")
        data = as_string(source["data"], place)
        body = check_image(data, as_string(source["media_type"], place), place)
        if len(data) > rules.max_image_bytes:
            text = f"image exceeds 5 MB maximum: {len(data)} bytes > {rules.max_image_bytes} bytes"
            raise Refused(Rule.IMAGE_SIZE, text, path=place)
        if max(pixels(body) or (0, 0)) > limit:
            text = f"image dimensions exceed max allowed size: {limit} pixels"
            raise Refused(Rule.IMAGE_SIZE, text, path=place)


def _check_block(value: object, path: Path, allowed: frozenset[str], rules: AnthropicRules) -> None:
    block = as_object(value, path)
    if "type" not in block:
        raise Refused(Rule.MISSING_KEY, "", path=(*path, "type"))
    kind = as_string(block["type"], (*path, "type"))
    if kind not in allowed:
        raise Refused(Rule.BAD_BLOCK, _wrong_block(kind, allowed), path=path)
    inside = (*path, kind)
    if kind in THINKING:
        _check_before_thinking(block, inside)
    check_shape(block, inside, _SHAPES[kind])
    if kind == "text":
        _check_text_block(block, inside, rules)
    elif kind == "image":
        _check_source(block["source"], (*inside, "source"), _IMAGE_SOURCES)
    elif kind == "document":
        _check_source(block["source"], (*inside, "source"), _DOCUMENT_SOURCES)
    elif kind == "search_result":
        check_blocks(block["content"], (*inside, "content"), IN_SYSTEM, rules)
    elif kind == "tool_use":
        _check_id(block["id"], (*inside, "id"), rules)
        check_name(block["name"], (*inside, "name"), rules)
        if not is_object(block["input"]):
            text = "Input should be a valid dictionary"
            raise Refused(Rule.INPUT_NOT_OBJECT, text, path=(*inside, "input"))
    elif kind == "tool_result":
        _check_id(block["tool_use_id"], (*inside, "tool_use_id"), rules)
        _check_result(block, inside, rules)
    elif kind == "server_tool_use" and not _SERVER_ID.fullmatch(str(block["id"])):
        text = "String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"
        raise Refused(Rule.ID_PATTERN, text, path=(*inside, "id"))


def _wrong_block(kind: str, allowed: frozenset[str]) -> str:
    if kind in _SHAPES and "tool_result" not in allowed and kind == "tool_result":
        return "`tool_result` blocks can only be in `user` messages"
    if kind in _SHAPES and kind == "tool_use":
        return "`tool_use` blocks can only be in `assistant` messages"
    tags = ", ".join(f"'{one}'" for one in sorted(allowed))
    return f"Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"


def _check_before_thinking(block: dict[str, object], path: Path) -> None:
    """Two mistakes that would otherwise read as an unknown or a missing key."""
    if block.get("cache_control") is not None:
        text = "`cache_control` cannot be set for thinking blocks"
        raise Refused(Rule.CACHE_PLACE, text, path=(*path, "cache_control"))
    if block["type"] == "thinking" and not block.get("signature"):
        raise Refused(Rule.THINKING_UNSIGNED, "Field required", path=(*path, "signature"))


def _check_text_block(block: dict[str, object], path: Path, rules: AnthropicRules) -> None:
    text = str(block["text"])
    if not text and block.get("cache_control") is not None:
        words = "cache_control cannot be set for empty text blocks"
        raise Refused(Rule.CACHE_PLACE, words, path=path)
    check_text(text, str(path[0]), rules)


def _check_id(value: object, path: Path, rules: AnthropicRules) -> None:
    text = as_string(value, path)
    if not text or len(text) > rules.max_id:
        words = f"String should have between 1 and {rules.max_id} characters"
        raise Refused(Rule.ID_LENGTH, words, path=path)
    if not _NAME.fullmatch(text):
        words = "String should match pattern '^[a-zA-Z0-9_-]+$'"
        raise Refused(Rule.ID_PATTERN, words, path=path)


def _check_result(block: dict[str, object], path: Path, rules: AnthropicRules) -> None:
    content = block.get("content", "")
    if is_array(content):
        check_blocks(content, (*path, "content"), IN_RESULT, rules)
    if block.get("is_error") is not True:
        return
    parts = blocks_of(content)
    if any(part["type"] != "text" for part in parts):
        words = "all content must be type 'text' if 'is_error' is true"
        raise Refused(Rule.ERROR_RESULT_MEDIA, words, path=path)
    if not any(str(part["text"]).strip() for part in parts):
        words = "content cannot be empty if `is_error` is true"
        raise Refused(Rule.ERROR_RESULT_EMPTY, words, path=path)


def _check_source(value: object, path: Path, sources: dict[str, Shape]) -> None:
    source = as_object(value, path)
    kind = source.get("type")
    if not isinstance(kind, str) or kind not in sources:
        tags = ", ".join(f"'{one}'" for one in sources)
        words = f"Input tag '{kind}' does not match any of the expected tags: {tags}"
        raise Refused(Rule.BAD_VALUE, words, path=path)
    check_shape(source, (*path, kind), sources[kind])
