"""Prompts of every kind, for properties: replies of many models, results, words, media."""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from hypothesis import strategies as st

from sojourn.core.view import Call, Entry, Notice, Prompt, Replied, Result, Said
from sojourn.format.event import Failure, Issuer, Options, ToolSpec
from sojourn.format.parts import (
    BlobRef,
    CallPart,
    MediaPart,
    Opaque,
    ReasoningPart,
    RefusalPart,
    ReplyPart,
    ServerCallPart,
    ServerResultPart,
    TextPart,
)
from sojourn.ids import BlobId, CapsuleId, EventId, call_key
from sojourn.render import Target
from sojourn.render.profile import PROFILES
from sojourn.testing.strict.signatures import sign

CAPSULE = CapsuleId("c" * 64)


@dataclass(frozen=True, kw_only=True)
class Host:
    """A target, and what the strict fake of it is called."""

    target: Target
    strict: Mapping[str, object]


def host(provider: str, model: str, profile: str, **strict: object) -> Host:
    found = PROFILES[profile]
    issuer = Issuer(provider=provider, api=found.dialect, scope="default", model=model)
    return Host(target=Target(issuer=issuer, profile=found), strict=strict)


HOSTS = (
    host("anthropic", "claude-sonnet-4-5", "anthropic"),
    host("anthropic", "claude-fable-5", "anthropic_adaptive"),
    host("openai", "gpt-4.1", "openai", host="openai"),
    host("openai", "gpt-5.5", "openai_reasoning", host="openai"),
    host("deepseek", "deepseek-v4", "deepseek", host="deepseek-thinking"),
    host("kimi", "kimi-k2-thinking", "kimi", host="kimi"),
    host("groq", "qwen3-32b", "groq", host="groq"),
    host("xai", "grok-4", "xai", host="xai"),
    host("llamacpp", "gemma-3", "llamacpp", host="llama.cpp-thinking"),
    host("vllm", "devstral", "mistral_like", host="mistral-like"),
    host("local", "old-template", "no_system", host="mistral-like"),
)
OTHER = Issuer(provider="openai", api="openai_responses", scope="work", model="gpt-5.5-codex")
ISSUERS = (*(one.target.issuer for one in HOSTS), OTHER)

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 4, 4) + b"\x08\x06\x00\x00\x00"
BYTES = (PNG, b"", b"GIF89a\x02\x00\x02\x00", b"not an image", b"%PDF-1.7")
BLOBS = {BlobId(sha256(data).hexdigest()): data for data in BYTES}

WORDS = (
    "Go on.",
    "",
    " ",
    "\n",
    "ends blank ",
    "Ü 漢字 😀",
    "half \ud83d",
    "[sojourn] x",
    "a\u2028b",
)
ARGUMENTS = (
    "{}",
    '{"path": "a"}',
    '{"a":1.0,"b":[true,null]}',
    '{"text":"\\ud83d\\ude00"}',
    '{"text":"\\ud800"}',
    '{"cut": "',
    "[1]",
    "",
    '{"n": NaN}',
    "null",
)
NATIVE = (None, "call_1", "toolu_1", "functions.read:0", "call_a|fc_b", "x" * 90, "", "call00", "é")
NAMES = ("read", "shell", "Read File", "", "n" * 80)
TOOL = ToolSpec(name="read", description="Reads.", schema='{"type":"object"}', replay="safe")

words = st.sampled_from(WORDS)


@st.composite
def media(draw: st.DrawFn) -> MediaPart:
    data = draw(st.sampled_from(BYTES))
    kind = draw(st.sampled_from(("image/png", "image/gif", "application/pdf", "audio/wav")))
    ref = BlobRef(sha256=BlobId(sha256(data).hexdigest()), size=len(data), media_type=kind)
    width = draw(st.sampled_from((None, 100, 9000)))
    return MediaPart(media_type=kind, blob=ref, width=width, name=draw(st.none() | words))


content = st.one_of(words.map(lambda text: TextPart(text=text)), media())
contents = st.lists(content, max_size=3).map(tuple)


@st.composite
def results(draw: st.DrawFn, name: str) -> Result | None:
    status = draw(st.sampled_from(("done", "failed", "unknown", None)))
    if status is None:
        return None
    failure = draw(st.none() | st.just(Failure(code="code", message="why")))
    return Result(event=event(name), status=status, parts=draw(contents), failure=failure)


def event(name: str) -> EventId:
    return EventId(sha256(name.encode()).hexdigest())


def secret(issuer: Issuer, number: int) -> str:
    """What only this issuer may read again: shows in any payload that gives it away."""
    mark = sha256(f"{issuer.provider} {issuer.model} {issuer.scope}".encode()).hexdigest()[:16]
    return f"hidden {mark} {number}"


def private(issuer: Issuer, kind: str, index: int, of: int) -> ReasoningPart:
    """Reasoning of one of the kinds that this issuer makes, or that storage spoiled."""
    text = secret(issuer, index)
    if kind == "unsigned":
        return ReasoningPart(text=text)
    if kind == "ciphertext":
        return ReasoningPart(opaque=Opaque(kind="openai.encrypted", data=json.dumps(text)))
    if kind == "field":
        field = "reasoning_content"
        return ReasoningPart(text=text, opaque=Opaque(kind=f"field:{field}", data=json.dumps(text)))
    signature = sign(model=issuer.model, text=text, index=index, of=of)
    block = {"type": "thinking", "thinking": text, "signature": signature}
    return ReasoningPart(
        text=text, opaque=Opaque(kind="anthropic.thinking", data=json.dumps(block))
    )


def served(number: int, *, is_result: bool) -> ServerCallPart | ServerResultPart:
    name = f"srvtoolu_{number}"
    if is_result:
        block: dict[str, object] = {"type": "web_search_tool_result", "tool_use_id": name}
        return ServerResultPart(native=json.dumps(block | {"content": []}), summary="found")
    block = {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}
    return ServerCallPart(native=json.dumps(block), summary="searched")


@st.composite
def reply_parts(draw: st.DrawFn, issuer: Issuer, number: int) -> tuple[ReplyPart, ...]:
    wanted = draw(st.lists(st.sampled_from("rrttccsmd"), max_size=5))
    own_kind = "signed" if issuer.api == "anthropic" else "field"
    kinds = st.sampled_from((own_kind, own_kind, "unsigned", "ciphertext"))
    thoughts = [draw(kinds) if one == "r" else "" for one in wanted]
    signed = [at for at, kind in enumerate(thoughts) if kind == "signed"]
    parts: list[ReplyPart] = []
    for at, one in enumerate(wanted):
        match one:
            case "r":
                index = signed.index(at) if at in signed else at
                parts.append(private(issuer, thoughts[at], index, len(signed)))
            case "t":
                parts.append(TextPart(text=draw(words)))
            case "c":
                parts.append(draw(calls()))
            case "s":
                for is_result in draw(st.sampled_from(((False, True), (False,), (True,)))):
                    parts.append(served(number, is_result=is_result))
            case "m":
                parts.append(draw(media()))
            case _:
                parts.append(RefusalPart(text=draw(words)))
    return tuple(parts)


@st.composite
def calls(draw: st.DrawFn) -> CallPart:
    return CallPart(
        tool=draw(st.sampled_from(NAMES)),
        args=draw(st.sampled_from(ARGUMENTS)),
        native_id=draw(st.sampled_from(NATIVE)),
    )


@st.composite
def replied(draw: st.DrawFn, number: int) -> Replied:
    issuer = draw(st.sampled_from(ISSUERS))
    parts = draw(reply_parts(issuer, number))
    completed = draw(st.sampled_from((True, True, True, False)))
    asked = [part for part in parts if isinstance(part, CallPart)] if completed else []
    made: list[Call] = []
    for index, part in enumerate(asked):
        key = call_key(capsule=CAPSULE, requested_by=event(f"{number}"), index=index)
        result = draw(results(f"{number} {index}"))
        started = result is not None or draw(st.booleans())
        made.append(Call(key=key, part=part, started=started, result=result, verify_with=("read",)))
    return Replied(
        event=event(f"{number}"),
        issuer=issuer,
        parts=parts,
        calls=tuple(made),
        stop=draw(st.sampled_from(("rest", "calls", "length", "paused"))),
        completed=completed,
    )


@st.composite
def entries(draw: st.DrawFn) -> tuple[Entry, ...]:
    made: list[Entry] = []
    for number, kind in enumerate(draw(st.lists(st.sampled_from("ssrrrn"), max_size=8))):
        name = event(f"{number}")
        if kind == "r":
            made.append(draw(replied(number)))
        elif kind == "s":
            made.append(Said(event=name, author="person", parts=draw(contents)))
        else:
            made.append(Notice(event=name, text=draw(words), attached=draw(contents)))
    return tuple(made)


@st.composite
def prompts(draw: st.DrawFn) -> Prompt:
    return Prompt(
        system=draw(words),
        tools=draw(st.sampled_from(((), (TOOL,)))),
        options=Options(
            max_tokens=draw(st.sampled_from((500, 8192))),
            temperature=draw(st.sampled_from((None, 0.5))),
            thinking=draw(st.sampled_from((None, 2048, 100))),
            stop=draw(st.sampled_from(((), ("END", " ")))),
        ),
        memory=draw(words),
        entries=draw(entries()),
    )
