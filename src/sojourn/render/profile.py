"""What differs among hosts of one API, as data (docs/rendering.md#profiles).

A fact that is not confirmed is the stricter one here, and docs/rendering.md#not-confirmed says so.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec

IMAGE_TYPES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about one host of one API; `dialect` names the API.

    Identifiers and names: `id_signs` are the characters allowed beside ASCII letters and digits,
    `id_exact` that every id has exactly `id_max` characters. Sizes are bytes, sides are pixels.
    """

    name: str
    dialect: str

    # Ids, names, counts.
    id_max: int = 40
    id_signs: str = "_-"
    id_exact: bool = False
    name_max: int = 64
    calls_need_tools: bool = True
    """Calls in the messages are refused unless tools are declared."""

    # Roles.
    system_role: Literal["system", "developer", "none"] = "system"
    """`none`: the system prompt goes in front of the first user message."""
    alternate: bool = False
    """User and assistant must take turns: neighbours of one role become one message."""
    bridge_after_tool: bool = False
    """A user message may not follow a tool message: a short assistant message stands between."""

    # Calls and results.
    arguments_as: Literal["string", "object"] = "string"
    needs_non_null_content: bool = False
    """An assistant message with calls alone has content `""`, not null."""
    result_media: Literal["always", "success", "never"] = "never"
    """In which results images may stand; the others follow the batch as user content."""
    refusal_parts: bool = False
    """A refusal is a part of its own; elsewhere it is text."""

    # Reasoning.
    thinking: Literal["none", "budget", "adaptive", "effort", "switch"] = "none"
    """How reasoning is asked for: `effort` is `reasoning_effort`, `switch` `thinking.type`."""
    reasoning_field: str | None = None
    """The field of an assistant message that takes its own reasoning back."""
    reasoning_on: Literal["never", "calls", "always"] = "never"
    """On which assistant messages the host demands the field."""
    reasoning_fill: str = ""
    """What stands in a demanded field when there is nothing of the host's own to give back."""

    # Options.
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    takes_temperature: bool = True
    takes_stop: bool = True
    supports_stream_usage: bool = True
    cache_marks: bool = False

    # Media.
    image_types: tuple[str, ...] = IMAGE_TYPES
    """Empty: the host takes no images."""
    documents: bool = False
    """PDF files can be sent."""
    max_images: int = 100
    max_image_bytes: int = 3_750_000
    max_side: int = 8000
    crowd: int = 20
    """With more images than this, each side is at most `crowd_side`."""
    crowd_side: int = 2000
    max_media_bytes: int = 16_000_000
    """All media of one request, before base64 makes them a third larger."""


ANTHROPIC: Final = Profile(
    name="anthropic",
    dialect="anthropic",
    id_max=64,
    result_media="success",
    thinking="budget",
    cache_marks=True,
    documents=True,
)

ANTHROPIC_ADAPTIVE: Final = msgspec.structs.replace(
    ANTHROPIC, name="anthropic_adaptive", thinking="adaptive", takes_temperature=False
)

OPENAI: Final = Profile(name="openai", dialect="openai_chat", refusal_parts=True)

OPENAI_REASONING: Final = msgspec.structs.replace(
    OPENAI,
    name="openai_reasoning",
    system_role="developer",
    thinking="effort",
    max_tokens_field="max_completion_tokens",
    takes_temperature=False,
    takes_stop=False,
)

_HOST: Final = Profile(name="compatible", dialect="openai_chat", calls_need_tools=False)


def _host(name: str, facts: Mapping[str, object]) -> Profile:
    return msgspec.convert(
        {**msgspec.structs.asdict(_HOST), **facts, "name": name}, Profile, strict=True
    )


PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            ANTHROPIC,
            ANTHROPIC_ADAPTIVE,
            OPENAI,
            OPENAI_REASONING,
            _HOST,
            _host("ollama", {}),
            _host("llamacpp", {}),
            _host("vllm", {}),
            _host(
                "deepseek",
                {
                    "reasoning_field": "reasoning_content",
                    "reasoning_on": "always",
                    "thinking": "switch",
                    "image_types": (),
                },
            ),
            _host("deepseek_r1", {"image_types": ()}),
            _host(
                "kimi",
                {
                    "reasoning_field": "reasoning_content",
                    "reasoning_on": "calls",
                    "reasoning_fill": ".",
                    "thinking": "switch",
                },
            ),
            _host("groq", {}),
            _host("xai", {}),
            _host("cerebras", {"reasoning_field": "reasoning", "image_types": ()}),
            _host("openrouter", {"reasoning_field": "reasoning_details"}),
            _host("minimax", {"calls_need_tools": True}),
            _host("object_arguments", {"arguments_as": "object", "needs_non_null_content": True}),
            _host(
                "mistral_like",
                {
                    "id_max": 9,
                    "id_signs": "",
                    "id_exact": True,
                    "alternate": True,
                    "bridge_after_tool": True,
                    "max_images": 8,
                },
            ),
            _host("no_system", {"system_role": "none", "alternate": True}),
            _host("scripted", {}),
        )
    }
)
"""Every profile by name."""

_REASONING_MODELS: Final = ("o1", "o3", "o4", "gpt-5", "gpt-6")
_BUDGET_MODELS: Final = ("claude-3", "claude-opus-4", "claude-sonnet-4", "claude-haiku-4")
_ADAPTIVE_MODELS: Final = tuple(
    f"{family}-{minor}" for family in _BUDGET_MODELS[1:] for minor in (6, 7, 8, 9)
)


def profile_for(provider: str, model: str) -> Profile:
    """The profile of a model; a provider that is not known is taken as a compatible host."""
    name = model.rpartition("/")[2].lower()
    if provider == "anthropic":
        budget = name.startswith(_BUDGET_MODELS) and not name.startswith(_ADAPTIVE_MODELS)
        adaptive = name.startswith("claude") and not budget
        return ANTHROPIC_ADAPTIVE if adaptive else ANTHROPIC
    if provider == "openai":
        return OPENAI_REASONING if name.startswith(_REASONING_MODELS) else OPENAI
    if provider == "deepseek" and name.startswith("deepseek-r1"):
        return PROFILES["deepseek_r1"]
    return PROFILES.get(provider, _HOST)
