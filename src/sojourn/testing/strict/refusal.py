"""The refusals of the strict fakes: one value, and the list of every rule behind one.

A rule's value is stable: tests may compare `refusal.rule == "result_missing"`. What each API
refuses, and on whose evidence, is told in docs/rendering.md.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Where in a payload: keys and indexes from the top."""


class Rule(StrEnum):
    """Every reason for which a strict fake refuses a request."""

    # The body, for both APIs.
    NOT_JSON = "not_json"
    """The body is not JSON, or holds a value that JSON does not have, or is nested too deep."""
    SURROGATE = "surrogate"
    """A string holds a lone surrogate, so that the body is not valid Unicode."""
    BODY_TOO_LARGE = "body_too_large"
    """The body has more bytes than the provider takes (413)."""
    WRONG_TYPE = "wrong_type"
    """A value has the wrong JSON type."""
    MISSING_KEY = "missing_key"
    """A required key is absent."""
    UNKNOWN_KEY = "unknown_key"
    """A key is not part of the API."""
    BAD_VALUE = "bad_value"
    """A value has the right type and is not one of those allowed."""

    # Messages, for both APIs.
    NO_MESSAGES = "no_messages"
    """The list of messages is empty."""
    BAD_ROLE = "bad_role"
    """A message has a role that this API (or this host) does not know."""
    BAD_BLOCK = "bad_block"
    """A content block or part is of an unknown type, or of one that its role may not hold."""
    EMPTY_CONTENT = "empty_content"
    """A message has no content at all."""
    ID_PATTERN = "id_pattern"
    """A call id holds a character outside those allowed."""
    ID_LENGTH = "id_length"
    """A call id is empty or too long."""
    NAME_PATTERN = "name_pattern"
    """A name of a tool (or of an author) is empty, too long, or holds another character."""
    DUPLICATE_CALL = "duplicate_call"
    """Two calls have the same id."""
    RESULT_MISSING = "result_missing"
    """A call has no result where it must stand."""
    ORPHAN_RESULT = "orphan_result"
    """A result answers no call of the message before it."""
    DUPLICATE_RESULT = "duplicate_result"
    """A call has two results."""
    PREFILL = "prefill"
    """The list ends with an assistant message, and the model does not continue one."""
    TOOLS_MISSING = "tools_missing"
    """Something needs declared tools (calls in the messages, a choice), and none is declared."""
    IMAGE_EMPTY = "image_empty"
    """An image has no bytes."""
    IMAGE_BASE64 = "image_base64"
    """An image is not valid base64."""
    IMAGE_TYPE = "image_type"
    """An image's media type is not taken, or its bytes are not of that type."""

    # Anthropic Messages alone.
    TOO_MANY_MESSAGES = "too_many_messages"
    """More messages than one request may hold."""
    FIRST_ROLE = "first_role"
    """The first message is not the user's."""
    SYSTEM_PLACE = "system_place"
    """A system message stands first, or between a call and its result."""
    BLANK_TEXT = "blank_text"
    """A text block is empty or only white space."""
    INPUT_NOT_OBJECT = "input_not_object"
    """A tool_use has an input that is not an object."""
    RESULTS_FIRST = "results_first"
    """A tool_result stands after another block of its message."""
    TEXT_AFTER_CALL = "text_after_call"
    """Text follows the last tool_use of an assistant message."""
    SERVER_CALL_OPEN = "server_call_open"
    """A server_tool_use has no result in its own message, and the list goes on."""
    ERROR_RESULT_MEDIA = "error_result_media"
    """An error result holds something other than text."""
    ERROR_RESULT_EMPTY = "error_result_empty"
    """An error result says nothing."""
    TRAILING_SPACE = "trailing_space"
    """A final assistant text ends in white space (models that continue one)."""
    DUPLICATE_TOOL = "duplicate_tool"
    """Two declared tools have the same name."""
    IMAGE_SIZE = "image_size"
    """An image has too many bytes or pixels."""
    TOO_MANY_IMAGES = "too_many_images"
    """More images than one request may hold."""
    CACHE_LIMIT = "cache_limit"
    """More than four cache marks."""
    CACHE_PLACE = "cache_place"
    """A cache mark on a thinking block or on an empty text."""
    CACHE_ORDER = "cache_order"
    """A cache mark of one hour after one of five minutes."""
    THINKING_UNSIGNED = "thinking_unsigned"
    """A thinking block has no signature, or an empty one."""
    THINKING_SIGNATURE = "thinking_signature"
    """A signature that nobody issued, or that belongs to another text."""
    THINKING_FOREIGN = "thinking_foreign"
    """A thinking block that another model issued."""
    THINKING_MODIFIED = "thinking_modified"
    """Thinking blocks of one reply were reordered, or only some of them were left out."""
    THINKING_START = "thinking_start"
    """Budget thinking is on, and the assistant message of the open tool loop starts without it."""
    THINKING_OFF = "thinking_off"
    """Thinking is off, and the final assistant message holds some."""
    THINKING_LAST = "thinking_last"
    """An assistant message ends with a thinking block."""
    THINKING_BUDGET = "thinking_budget"
    """The thinking budget is under 1024 or not under max_tokens."""
    THINKING_OPTIONS = "thinking_options"
    """An option that cannot go with thinking: a forced tool, a temperature, top_k."""
    REDACTED_DATA = "redacted_data"
    """The data of a redacted thinking block is not as issued."""

    # OpenAI Chat Completions alone.
    DEVELOPER_ROLE = "developer_role"
    """A developer message to a host that knows only system messages."""
    CONTENT_MISSING = "content_missing"
    """An assistant message has neither content nor calls."""
    EMPTY_TOOL_CALLS = "empty_tool_calls"
    """`tool_calls` is an empty list: the key must be left out."""
    ARGUMENTS_NOT_STRING = "arguments_not_string"
    """The arguments of a call are not a string."""
    ARGUMENTS_NOT_JSON = "arguments_not_json"
    """The arguments of a call do not parse as JSON."""
    ARGUMENTS_NOT_OBJECT = "arguments_not_object"
    """The arguments of a call parse to something other than an object."""
    IMAGE_IN_TOOL_MESSAGE = "image_in_tool_message"
    """A tool message holds an image."""
    TOO_MANY_TOOLS = "too_many_tools"
    """More than 128 functions."""
    STREAM_OPTIONS = "stream_options"
    """Stream options without a stream."""
    REASONING_REFUSED = "reasoning_refused"
    """An assistant message gives back reasoning to a host that does not take it."""
    REASONING_MISSING = "reasoning_missing"
    """An assistant message lacks the reasoning that a thinking host demands."""
    TWO_FINAL_ASSISTANTS = "two_final_assistants"
    """The list ends with two assistant messages (llama.cpp)."""
    ALTERNATION = "alternation"
    """User and assistant messages do not take turns (strict chat templates)."""

    # HTTP, before any body is read.
    KEY_MISSING = "key_missing"
    """No key (401)."""
    KEY_WRONG = "key_wrong"
    """A key that the server was not told to accept (401)."""
    VERSION_MISSING = "version_missing"
    """No anthropic-version header."""
    CONTENT_TYPE = "content_type"
    """The body is not declared as JSON."""
    NO_ROUTE = "no_route"
    """No such path (404)."""
    BAD_METHOD = "bad_method"
    """The path takes POST alone (405)."""
    UNKNOWN_MODEL = "unknown_model"
    """The server was not told of this model (404)."""


BODY_RULES: Final = frozenset(
    {
        Rule.NOT_JSON,
        Rule.SURROGATE,
        Rule.BODY_TOO_LARGE,
        Rule.WRONG_TYPE,
        Rule.MISSING_KEY,
        Rule.UNKNOWN_KEY,
        Rule.BAD_VALUE,
        Rule.NO_MESSAGES,
        Rule.BAD_ROLE,
        Rule.BAD_BLOCK,
        Rule.EMPTY_CONTENT,
        Rule.ID_PATTERN,
        Rule.ID_LENGTH,
        Rule.NAME_PATTERN,
        Rule.DUPLICATE_CALL,
        Rule.RESULT_MISSING,
        Rule.ORPHAN_RESULT,
        Rule.DUPLICATE_RESULT,
        Rule.PREFILL,
        Rule.TOOLS_MISSING,
        Rule.IMAGE_EMPTY,
        Rule.IMAGE_BASE64,
        Rule.IMAGE_TYPE,
    }
)
"""Rules that both checkers know."""

OPENAI_CHAT_RULES: Final = BODY_RULES | frozenset(
    {
        Rule.DEVELOPER_ROLE,
        Rule.CONTENT_MISSING,
        Rule.EMPTY_TOOL_CALLS,
        Rule.ARGUMENTS_NOT_STRING,
        Rule.ARGUMENTS_NOT_JSON,
        Rule.ARGUMENTS_NOT_OBJECT,
        Rule.IMAGE_IN_TOOL_MESSAGE,
        Rule.TOO_MANY_TOOLS,
        Rule.STREAM_OPTIONS,
        Rule.REASONING_REFUSED,
        Rule.REASONING_MISSING,
        Rule.TWO_FINAL_ASSISTANTS,
        Rule.ALTERNATION,
    }
)
"""Rules of `sojourn.testing.strict.openai_chat.check`."""

HTTP_RULES: Final = frozenset(
    {
        Rule.KEY_MISSING,
        Rule.KEY_WRONG,
        Rule.VERSION_MISSING,
        Rule.CONTENT_TYPE,
        Rule.NO_ROUTE,
        Rule.BAD_METHOD,
        Rule.UNKNOWN_MODEL,
    }
)
"""Rules of the server alone."""

ANTHROPIC_RULES: Final = frozenset(Rule) - (OPENAI_CHAT_RULES - BODY_RULES) - HTTP_RULES
"""Rules of `sojourn.testing.strict.anthropic.check`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """What the real provider would have answered instead of a reply.

    `status` is the HTTP status, `type` the provider's error type, `message` worded as the
    provider words it where that is known, `code` the OpenAI error code if it has one.
    """

    status: int
    type: str
    message: str
    rule: Rule
    code: str | None = None


class Refused(Exception):
    """A check ends here; each API turns this into a `Refusal` in its own words.

    Never leaves this package: `check` returns the refusal.
    """

    def __init__(
        self,
        rule: Rule,
        message: str,
        *,
        path: Path = (),
        status: int = 400,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.path = path
        self.status = status
        self.code = code
