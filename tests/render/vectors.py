"""Reads the vectors of tests/vectors/render, renders them, and asks the oracles.

A vector is one scenario: what a log's view holds, for whom it is rendered, and what must come out.
tests/vectors/render/README.md says what each field means.
"""

import base64
import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from anthropic.types import message_create_params
from openai.types.chat import completion_create_params
from pydantic import BaseModel, TypeAdapter

from sojourn.core.view import Entry, Notice, Prompt, Replied, Said
from sojourn.format.event import Issuer, Options, ToolSpec
from sojourn.format.parts import Text
from sojourn.ids import BlobId
from sojourn.render import Dialect, Rendered, Target, dialect
from sojourn.render.draft import Pass
from sojourn.render.profile import PROFILES
from sojourn.testing.strict import anthropic, openai_chat
from sojourn.testing.strict.anthropic import AnthropicRules
from sojourn.testing.strict.refusal import Refusal

FOLDER = Path(__file__).resolve().parent.parent / "vectors" / "render"
ENTRIES: Mapping[str, type[Entry]] = {"said": Said, "replied": Replied, "notice": Notice}
HOST_KEYS = frozenset({"thinking", "reasoning_content", "reasoning", "reasoning_details"})
"""Keys that hosts added to the Chat Completions API, which its own SDK does not know."""
OLD_KEYS = frozenset({"temperature"})
"""Keys that only models take which the current SDK of the Messages API has no types for."""


@dataclass(frozen=True, kw_only=True)
class Vector:
    """One file, parsed."""

    path: Path
    raw: dict[str, Any]
    prompt: Prompt
    target: Target
    blobs: Mapping[BlobId, bytes]

    @property
    def dialect(self) -> Dialect:
        return dialect(self.target.profile.dialect)

    @property
    def refused_without(self) -> Mapping[str, str]:
        return self.raw.get("refused_without", {})

    def render(self) -> Rendered:
        return self.dialect.render(self.prompt, self.target, self.blobs)

    def render_without(self, left_out: Pass) -> Rendered:
        return self.dialect.render_without(left_out, self.prompt, self.target, self.blobs)

    def refusal(self, payload: dict[str, object]) -> Refusal | None:
        return strict_refusal(payload, self.target, self.raw.get("strict", {}))


def prompt_of(raw: Mapping[str, Any]) -> Prompt:
    """The prompt that a vector describes."""
    entries: list[Entry] = []
    for entry in raw["entries"]:
        (kind, fields), *rest = entry.items()
        if rest:
            raise ValueError(f"an entry with more than one kind: {sorted(entry)}")
        entries.append(msgspec.convert(fields, ENTRIES[kind]))
    return Prompt(
        system=msgspec.convert(raw.get("system", ""), Text),
        tools=msgspec.convert(raw.get("tools", []), tuple[ToolSpec, ...]),
        options=msgspec.convert(raw.get("options", {}), Options),
        memory=raw.get("memory", ""),
        entries=entries,
    )


def target_of(raw: Mapping[str, Any]) -> Target:
    """Whom a vector renders for."""
    return Target(issuer=msgspec.convert(raw["issuer"], Issuer), profile=PROFILES[raw["profile"]])


def load(path: Path) -> Vector:
    raw: dict[str, Any] = json.loads(path.read_text("utf-8"))
    blobs = raw.get("blobs", {})
    return Vector(
        path=path,
        raw=raw,
        prompt=prompt_of(raw["prompt"]),
        target=target_of(raw["target"]),
        blobs={BlobId(name): base64.b64decode(data) for name, data in blobs.items()},
    )


@cache
def requests() -> tuple[Vector, ...]:
    """Every vector that renders a request."""
    return tuple(load(path) for path in sorted((FOLDER / "requests").glob("*.json")))


def strict_refusal(
    payload: dict[str, object], target: Target, options: Mapping[str, Any]
) -> Refusal | None:
    """What the strict fake of the target's API says of a request."""
    if target.profile.dialect == "anthropic":
        return anthropic.check(payload, rules=AnthropicRules(**options))
    return openai_chat.check(payload, **({"host": "openai"} | dict(options)))


@cache
def adapter(name: str) -> TypeAdapter[Any]:
    """Kept for as long as the process lives: what it returns refers to it."""
    if name == "anthropic":
        return TypeAdapter(message_create_params.MessageCreateParamsStreaming)
    return TypeAdapter(completion_create_params.CompletionCreateParamsStreaming)


def forced(value: object) -> object:
    """A validated value with every lazy iterator walked, so that nested errors show."""
    if isinstance(value, BaseModel):
        return forced(value.model_dump(exclude_unset=True))
    if isinstance(value, Mapping):
        return {key: forced(one) for key, one in value.items()}
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, Iterable):
        return [forced(one) for one in value]
    return value


def check_with_sdk(payload: dict[str, object], dialect: str) -> None:
    """The official SDK's types take the payload, and know every key of it."""
    given = copy.deepcopy(payload)
    if dialect == "openai_chat":
        given = {key: value for key, value in given.items() if key not in HOST_KEYS}
        messages: Any = given["messages"]
        given["messages"] = [
            {key: value for key, value in message.items() if key not in HOST_KEYS}
            for message in messages
        ]
    else:
        given = {key: value for key, value in given.items() if key not in OLD_KEYS}
    assert forced(adapter(dialect).validate_python(given)) == given
