"""What differs among hosts of the Chat Completions API, as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

ReasoningIn: TypeAlias = Literal["refused", "free", "every_assistant", "with_calls"]
"""What a host wants of `reasoning_content` on the assistant messages sent back to it."""
CallIds: TypeAlias = Literal["unique", "constant", "by_name"]
"""How a host names the calls of its replies."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostRules:
    """One host: what it refuses beyond the common rules, and how its replies look."""

    name: str
    open_keys: bool = False
    """Whether unknown keys are ignored instead of refused."""
    request_keys: frozenset[str] = frozenset()
    """Keys of a request that only this host knows."""
    message_keys: frozenset[str] = frozenset()
    """Keys of an assistant message that only this host knows, `reasoning_content` aside."""
    developer: bool = False
    """Whether `developer` messages are taken."""
    reasoning_in: ReasoningIn = "refused"
    reasoning_out: str | None = None
    """The key under which replies show their reasoning, if they do."""
    content_needed: bool = False
    """Whether an empty text counts as no content."""
    two_final_assistants: bool = True
    """Whether the list may end with two assistant messages."""
    prefill: bool = True
    """Whether the list may end with one assistant message."""
    alternation: bool = False
    """Whether user and assistant messages must take turns (calls and results do not count)."""
    bad_arguments_status: int = 400
    """The status for arguments in the messages that are no JSON object."""
    numeric_codes: bool = False
    """Whether an error's `code` is the HTTP status."""
    key_needed: bool = True
    call_ids: CallIds = "unique"
    max_id: int = 40
    """Characters of a call id. OpenAI's own error text says 64; clients and hosts that cut ids
    cut them at 40, so a longer one is safe on some hosts only."""
    max_name: int = 64
    max_tools: int = 128
    max_bytes: int = 32 * 1024 * 1024
    """Of one body. Hosts differ from 6 MiB up; none says its own number in advance."""


_THINKING: Final = frozenset({"thinking"})

_ALL: Final = (
    HostRules(name="openai", developer=True),
    HostRules(
        name="deepseek-thinking",
        request_keys=_THINKING,
        reasoning_in="every_assistant",
        reasoning_out="reasoning_content",
    ),
    HostRules(name="deepseek-r1", request_keys=_THINKING, reasoning_out="reasoning_content"),
    HostRules(
        name="kimi",
        request_keys=_THINKING,
        reasoning_in="with_calls",
        reasoning_out="reasoning_content",
        call_ids="by_name",
    ),
    HostRules(
        name="groq",
        request_keys=frozenset({"reasoning_format", "include_reasoning"}),
        message_keys=frozenset({"reasoning"}),
        reasoning_out="reasoning",
    ),
    HostRules(name="cerebras", message_keys=frozenset({"reasoning"}), reasoning_out="reasoning"),
    HostRules(
        name="xai",
        request_keys=frozenset({"search_parameters"}),
        reasoning_in="free",
        reasoning_out="reasoning_content",
        content_needed=True,
    ),
    HostRules(
        name="llama.cpp",
        open_keys=True,
        reasoning_in="free",
        reasoning_out="reasoning_content",
        two_final_assistants=False,
        bad_arguments_status=500,
        numeric_codes=True,
        key_needed=False,
        call_ids="constant",
    ),
    HostRules(
        name="llama.cpp-thinking",
        open_keys=True,
        reasoning_in="free",
        reasoning_out="reasoning_content",
        two_final_assistants=False,
        prefill=False,
        bad_arguments_status=500,
        numeric_codes=True,
        key_needed=False,
        call_ids="constant",
    ),
    HostRules(name="mistral-like", reasoning_in="free", prefill=False, alternation=True),
)

HOSTS: Final[Mapping[str, HostRules]] = {host.name: host for host in _ALL}
"""Every host known here by its name; `llama.cpp-thinking` is one whose template thinks."""
