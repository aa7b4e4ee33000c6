"""An answer that breaks off, goes silent or is no answer has its own failure, at every byte."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from models.loopback import (
    CHAT,
    MESSAGES,
    QUICK,
    Clock,
    Handler,
    collect,
    http,
    model_at,
    once,
    saying,
    served,
    stream,
)
from sojourn.errors import CallError
from sojourn.models.answer import Answer
from sojourn.models.answer import Cut as AnswerCut
from sojourn.models.choose import AnyModel
from sojourn.models.limits import Limits
from sojourn.ports import ServerEvent
from sojourn.render import dialect
from sojourn.testing.strict import Cut, End, Garbage, Reply, StrictServer

OPENAI, ANTHROPIC = "openai-compatible/m", "anthropic/m"
TEXT = "Grüße 😀"


def chat_body() -> bytes:
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": TEXT[:3]}}]},
        {"choices": [{"index": 0, "delta": {"content": TEXT[3:]}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    ]
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


def messages_body() -> bytes:
    usage = {"output_tokens": 2}
    events = [
        {"type": "message_start", "message": {"id": "m1", "model": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    lines = [(event["type"], json.dumps(event, ensure_ascii=False)) for event in events]
    return "".join(f"event: {kind}\r\ndata: {line}\r\n\r\n" for kind, line in lines).encode()


BODIES = {OPENAI: chat_body(), ANTHROPIC: messages_body()}


async def tried(model: AnyModel, name: str) -> list[ServerEvent] | CallError:
    try:
        return await collect(model, MESSAGES if name == ANTHROPIC else CHAT)
    except CallError as error:
        return error


async def outcome(
    url: str, name: str, limits: Limits = QUICK, clock: Clock | None = None
) -> list[ServerEvent] | CallError:
    async with contextlib.aclosing(model_at(url, name, limits=limits, clock=clock)) as model:
        return await tried(model, name)


def against(
    handler: Handler, name: str = OPENAI, limits: Limits = QUICK, clock: Clock | None = None
) -> list[ServerEvent] | CallError:
    async def run() -> list[ServerEvent] | CallError:
        async with served(handler) as url:
            return await outcome(url, name, limits, clock)

    return asyncio.run(run())


def failure(
    handler: Handler, name: str = OPENAI, limits: Limits = QUICK, clock: Clock | None = None
) -> CallError:
    found = against(handler, name, limits, clock)
    assert isinstance(found, CallError)
    return found


def reply_text(name: str, events: list[ServerEvent]) -> str:
    """What the real reply reader makes of the events of a whole answer."""
    reader = dialect("anthropic" if name == ANTHROPIC else "openai_chat").reader()
    for event in events:
        reader.feed(event)
    reply = reader.finish()
    assert reply.completed
    return "".join(getattr(part, "text", "") for part in reply.parts)


def first_whole(name: str) -> int:
    """How many bytes of the body make a whole reply."""
    body = BODIES[name]
    mark = b'"finish_reason": "stop"}]}' if name == OPENAI else b'{"type": "message_stop"}'
    return body.index(mark) + len(mark)


def judge(name: str, size: int, found: list[ServerEvent] | CallError) -> None:
    if size < first_whole(name):
        assert isinstance(found, CallError), size
        assert (found.code, found.may_have_happened, found.retry) == ("stream_cut", True, True)
    else:
        assert isinstance(found, list), size
        assert reply_text(name, found) == TEXT


def cut_at(name: str, sizes: list[int], *, chunked: bool) -> None:
    """Serve the body cut at each of these sizes, and judge what the model makes of it."""
    body = BODIES[name]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    left = iter(sizes)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = next(left)
        answer = head + b"connection: close\r\n\r\n" + body[:size]
        if chunked:
            part = b"%x\r\n%s\r\n" % (size, body[:size]) if size else b""
            answer = head + b"transfer-encoding: chunked\r\n\r\n" + part
        await saying(answer)(reader, writer)

    async def run() -> None:
        async with served(serve) as url, contextlib.aclosing(model_at(url, name)) as model:
            for size in sizes:
                judge(name, size, await tried(model, name))

    asyncio.run(run())


@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
def test_an_answer_cut_at_any_byte_is_a_cut_or_a_whole_reply(name: str) -> None:
    body = BODIES[name]
    api = "anthropic" if name == ANTHROPIC else "openai_chat"

    async def pieces(size: int) -> AsyncGenerator[bytes]:
        yield body[: size // 2]
        yield body[size // 2 : size]

    async def run() -> None:
        for size in range(len(body) + 1):
            found: list[ServerEvent] | None = None
            with contextlib.suppress(AnswerCut):
                answer = Answer(api, event_bytes=10_000)
                found = [event async for event in answer.events(pieces(size))]
            assert (found is None) is (size < first_whole(name)), size
            if found is not None:
                assert reply_text(name, found) == TEXT

    asyncio.run(run())


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
def test_a_connection_cut_where_an_event_ends_is_a_cut_or_a_whole_reply(
    name: str, chunked: bool
) -> None:
    body, end = BODIES[name], first_whole(name)
    near = {0, 1, end - 1, end, end + 1, len(body) - 1, len(body)}
    near |= {found.start() for found in re.finditer(rb"\r?\n", body)}
    cut_at(name, sorted(near), chunked=chunked)


@pytest.mark.slow
@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
def test_a_connection_cut_at_any_byte_is_a_cut_or_a_whole_reply(name: str, chunked: bool) -> None:
    cut_at(name, list(range(len(BODIES[name]) + 1)), chunked=chunked)


@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
def test_a_cut_stream_is_not_asked_for_again_and_keeps_what_came(name: str) -> None:
    async def run() -> int:
        faults = {1: Cut(after_bytes=400), 2: End(after_events=2)}
        async with StrictServer(replies=lambda _: Reply(text=TEXT), faults=faults) as server:
            for _ in range(2):
                found = await outcome(server.url, name)
                assert isinstance(found, CallError) and found.code == "stream_cut"
            return len(server.requests)

    assert asyncio.run(run()) == 2


def test_no_word_after_a_whole_request_may_have_happened_and_is_not_asked_again() -> None:
    clock = Clock()
    error = failure(saying(b""), clock=clock)
    assert (error.code, error.may_have_happened, clock.waits) == ("stream_cut", True, [])


def test_a_connection_that_breaks_before_the_request_is_whole_is_tried_again() -> None:
    clock = Clock()
    count: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        count.append(1)
        if len(count) < 3:
            writer.transport.abort()
            return
        await saying(stream(BODIES[OPENAI]))(reader, writer)

    async def run() -> list[ServerEvent]:
        big = {**CHAT, "messages": [{"role": "user", "content": "x" * 20_000_000}]}
        async with served(serve) as url:
            limits = replace(QUICK, idle_seconds=60)
            return await once(model_at(url, clock=clock, limits=limits), big)

    assert reply_text(OPENAI, asyncio.run(run())) == TEXT
    assert (len(count), len(clock.waits)) == (3, 2)


def test_silence_is_timed_out_and_may_have_happened() -> None:
    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    clock = Clock()
    error = failure(serve, clock=clock)
    assert (error.code, error.may_have_happened, clock.waits) == ("timed_out", True, [])
    assert "nothing came for 0.2 s" in error.message


def test_silence_in_the_middle_of_an_answer_is_timed_out() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(stream(BODIES[OPENAI][:200]))
        await writer.drain()
        await asyncio.Event().wait()

    assert failure(serve).code == "timed_out"


@pytest.mark.parametrize("ending", [b"", b"data: [DONE]\n\n"])
def test_a_server_that_never_hangs_up_does_not_hold_a_finished_reply(ending: bytes) -> None:
    body = BODIES[OPENAI].removesuffix(b"data: [DONE]\n\n") + ending

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(stream(body))
        await writer.drain()
        await asyncio.Event().wait()

    found = against(serve, limits=replace(QUICK, idle_seconds=300))
    assert isinstance(found, list)
    assert reply_text(OPENAI, found) == TEXT


def test_an_end_mark_without_its_blank_line_is_an_end_mark() -> None:
    for name, body in BODIES.items():
        found = against(saying(stream(body.rstrip())), name)
        assert isinstance(found, list)
        assert reply_text(name, found) == TEXT


def test_done_without_a_reason_to_finish_is_no_end() -> None:
    first = BODIES[OPENAI].partition(b"\n\n")[0] + b"\n\n"
    assert failure(saying(stream(first + b"data: [DONE]\n\n"))).code == "stream_cut"


def test_what_comes_behind_the_last_event_is_of_no_account() -> None:
    for name, body in BODIES.items():
        found = against(saying(stream(body + b"data: {garbage\n\n")), name)
        assert isinstance(found, list)
        assert reply_text(name, found) == TEXT


@pytest.mark.parametrize(
    "answer",
    [
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        http(200, "<html>log in first</html>", content_type="text/html"),
        http(200, '{"choices":[]}', content_type="application/json"),
        http(204),
        stream(b"data: {not json\n\n"),
        stream(b"data: [1]\n\n"),
        stream(b"data: " + b"[" * 100_000 + b"\n\n"),
    ],
)
def test_what_is_no_answer_of_a_model_server_is_malformed(answer: bytes) -> None:
    error = failure(saying(answer))
    assert (error.code, error.may_have_happened) == ("stream_malformed", True)


@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
def test_garbage_in_the_middle_is_malformed(name: str) -> None:
    async def run() -> list[ServerEvent] | CallError:
        faults = {1: Garbage(after_events=2)}
        async with StrictServer(replies=[Reply(text=TEXT)], faults=faults) as server:
            return await outcome(server.url, name)

    found = asyncio.run(run())
    assert isinstance(found, CallError) and found.code == "stream_malformed"


def test_half_an_emoji_in_an_event_is_passed_on() -> None:
    half = b'data: {"choices":[{"delta":{"content":"\\ud83d"},"finish_reason":"stop"}]}\n\n'
    found = against(saying(stream(half)))
    assert isinstance(found, list) and "\\ud83d" in found[0].data


@pytest.mark.parametrize(
    ("limits", "body"),
    [
        (replace(QUICK, event_bytes=1000), b"data: " + b"x" * 2000),
        (replace(QUICK, stream_bytes=2000), b": keep alive\n\n" * 1000),
    ],
)
def test_an_answer_without_end_is_refused_in_bounded_memory(limits: Limits, body: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(stream(body))
        while True:
            writer.write(body)
            await writer.drain()

    assert failure(serve, limits=limits).code == "stream_malformed"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"error": {"message": "x", "type": "overloaded_error"}}, "overloaded"),
        ({"error": {"message": "Provider failed", "code": 502}, "choices": []}, "server_failed"),
        ({"error": {"message": "slow down", "code": 429}}, "rate_limited"),
        ({"error": "unexpected EOF"}, "server_failed"),
        ({"error": {"message": "bad", "type": "invalid_request_error"}}, "request_refused"),
    ],
)
def test_an_error_inside_a_stream_has_its_own_code(event: dict[str, object], code: str) -> None:
    first = BODIES[OPENAI].partition(b"\n\n")[0] + b"\n\n"
    body = first + b"data: " + json.dumps(event).encode() + b"\n\n"
    error = failure(saying(stream(body)))
    assert (error.code, error.may_have_happened) == (code, True)
