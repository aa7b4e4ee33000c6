"""A call over HTTP: what is sent, what comes back, and what is tried again."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from models.loopback import (
    CHAT,
    KEY,
    MESSAGES,
    QUICK,
    SECRET,
    Clock,
    collect,
    http,
    model_at,
    once,
    saying,
    served,
    stream,
)
from sojourn.errors import CallError
from sojourn.models.choose import AnyModel
from sojourn.ports import ServerEvent
from sojourn.testing.strict import (
    Fail,
    Fault,
    Gate,
    Hold,
    Recorded,
    Reply,
    StreamError,
    StrictServer,
    Trickle,
)

REPLY = Reply(text="Grüße aus 東京 😀 and some more words to cut", input_tokens=7)
OPENAI, ANTHROPIC = "openai-compatible/m", "anthropic/m"
BODY = b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def payload_for(name: str) -> Mapping[str, object]:
    return MESSAGES if name == ANTHROPIC else CHAT


def text_of(events: list[ServerEvent]) -> str:
    """The text that the events of either API carry."""
    found: list[str] = []
    for event in events:
        value = json.loads(event.data) if event.data != "[DONE]" else {}
        found.append(value.get("delta", {}).get("text") or "")
        found += [choice["delta"].get("content") or "" for choice in value.get("choices", ())]
    return "".join(found)


async def ask(
    name: str, *, faults: Mapping[int, Fault] | None = None, times: int = 1, clock: Clock
) -> tuple[list[list[ServerEvent]], list[Recorded]]:
    """Ask a strict server so many times, over one model."""
    async with StrictServer(replies=lambda _: REPLY, faults=faults, keys=[SECRET]) as server:
        model = model_at(server.url, name, clock=clock)
        answers = [await collect(model, payload_for(name)) for _ in range(times)]
        await model.aclose()
        return answers, server.requests


def failing(
    name: str, faults: Mapping[int, Fault], clock: Clock | None = None
) -> tuple[CallError, int]:
    """The failure of a call that meets these faults, and the number of requests."""

    async def run() -> tuple[CallError, int]:
        async with StrictServer(replies=lambda _: REPLY, faults=faults) as server:
            model = model_at(server.url, name, clock=clock)
            with pytest.raises(CallError) as caught:
                await collect(model, payload_for(name))
            await model.aclose()
            return caught.value, len(server.requests)

    return asyncio.run(run())


@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
def test_a_strict_server_accepts_the_request_and_its_answer_is_read_whole(name: str) -> None:
    answers, seen = asyncio.run(ask(name, clock=Clock()))
    assert text_of(answers[0]) == REPLY.text
    assert [one.verdict for one in seen] == ["accepted"]
    assert seen[0].idempotency_key == KEY
    assert seen[0].headers["accept"] == "text/event-stream"
    assert ("anthropic-version" in seen[0].headers) is (name == ANTHROPIC)


@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("size", [1, 7])
def test_an_answer_in_tiny_pieces_is_the_same_answer(name: str, size: int) -> None:
    answers, _ = asyncio.run(ask(name, faults={2: Trickle(size=size)}, times=2, clock=Clock()))
    assert text_of(answers[0]) == text_of(answers[1]) == REPLY.text


@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
def test_pings_are_not_passed_on(name: str) -> None:
    answers, _ = asyncio.run(ask(name, clock=Clock()))
    assert not [event for event in answers[0] if event.event == "ping"]


def test_a_connection_is_used_again_and_a_closed_model_opens_a_new_one() -> None:
    connections: list[object] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
        while True:
            text = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = int(text.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
            writer.write(head % len(BODY) + BODY)
            await writer.drain()

    async def until_done(model: AnyModel) -> None:
        async with contextlib.aclosing(model.stream(CHAT, key=KEY)) as events:
            while (await anext(events)).data != "[DONE]":
                pass

    async def run() -> list[int]:
        async with served(serve) as url:
            model = model_at(url)
            counts: list[int] = []
            for _ in range(3):
                await until_done(model)
                counts.append(len(connections))
            await model.aclose()
            await collect(model)
            await model.aclose()
            return [*counts, len(connections)]

    assert asyncio.run(run()) == [1, 1, 1, 2]


@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("kind", ["rate_limited", "server_error", "overloaded", "gateway_page"])
def test_what_may_pass_is_tried_again_with_the_same_key(name: str, kind: str) -> None:
    clock = Clock()
    fault = Fail(kind=kind)
    answers, seen = asyncio.run(ask(name, faults={1: fault, 2: fault}, clock=clock))
    assert text_of(answers[0]) == REPLY.text
    assert {one.idempotency_key for one in seen} == {KEY} and len(seen) == 3
    assert len({one.digest for one in seen}) == 1
    assert [round(wait, 6) for wait in clock.waits] == [0.5, 1.0]


def test_retries_end_after_the_last_attempt_and_say_so() -> None:
    clock = Clock()
    error, count = failing(OPENAI, {n: Fail(kind="overloaded") for n in range(1, 9)}, clock)
    assert (error.code, error.retry, count) == ("overloaded", True, 5)
    assert [round(wait, 6) for wait in clock.waits] == [0.5, 1.0, 2.0, 4.0]
    assert "tried 5 times" in error.state


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:20 GMT"}, 20.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        (
            {
                "retry-after": "Mon, 30 Nov 2020 10:00:05 GMT",
                "date": "Mon, 30 Nov 2020 10:00:00 GMT",
            },
            5.0,
        ),
        ({"retry-after": "soon"}, 0.5),
        ({"retry-after": "-1"}, 0.5),
        ({"retry-after": "nan"}, 0.5),
    ],
)
def test_retry_after_is_honoured_in_all_its_forms(headers: dict[str, str], wait: float) -> None:
    clock = Clock()

    async def run() -> None:
        async with served(saying(http(429, "{}", **headers), stream(BODY))) as url:
            await once(model_at(url, clock=clock))

    asyncio.run(run())
    assert [round(one, 6) for one in clock.waits] == [wait]


def test_a_retry_after_above_the_limit_is_reported_and_not_waited_for() -> None:
    clock = Clock()
    error, count = failing(OPENAI, {1: Fail(kind="rate_limited", retry_after="61")}, clock)
    assert (error.code, error.retry_after, count, clock.waits) == ("rate_limited", 61.0, 1, [])
    assert "61 s" in error.hint


def test_patience_ends_before_a_pause_that_would_end_later() -> None:
    clock = Clock()
    fault = Fail(kind="rate_limited", retry_after="50")
    error, count = failing(OPENAI, dict.fromkeys(range(1, 9), fault), clock)
    assert (error.retry_after, count, clock.waits) == (50.0, 3, [50.0, 50.0])


@pytest.mark.parametrize(("said", "count"), [("false", 1), ("true", 5)])
def test_the_provider_may_say_itself_whether_to_try_again(said: str, count: int) -> None:
    status = 503 if said == "false" else 400
    seen: list[dict[str, str]] = []

    async def run() -> None:
        handler = saying(http(status, "{}", x_should_retry=said), seen=seen)
        async with served(handler) as url:
            with pytest.raises(CallError):
                await once(model_at(url))

    asyncio.run(run())
    assert len(seen) == count


def test_an_error_before_the_first_event_of_an_answer_is_tried_again() -> None:
    clock = Clock()
    answers, seen = asyncio.run(ask(OPENAI, faults={1: StreamError(after_events=0)}, clock=clock))
    assert text_of(answers[0]) == REPLY.text
    assert (len(seen), len(clock.waits)) == (2, 1)


@pytest.mark.parametrize("name", [OPENAI, ANTHROPIC])
def test_nothing_is_tried_again_after_the_first_event(name: str) -> None:
    clock = Clock()
    error, count = failing(name, {1: StreamError(after_events=2)}, clock)
    code = "overloaded" if name == ANTHROPIC else "server_failed"
    assert (error.code, count, clock.waits) == (code, 1, [])
    assert error.may_have_happened and error.retry


def test_a_cancelled_call_closes_its_connection_at_once() -> None:
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(stream(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'))
        await writer.drain()
        while await reader.read(1000):
            pass
        closed.set()

    async def run() -> None:
        async with served(serve) as url:
            model = model_at(url, limits=replace(QUICK, idle_seconds=300))
            begun = asyncio.Event()

            async def call() -> None:
                async with contextlib.aclosing(model.stream(CHAT, key=KEY)) as events:
                    async for _ in events:
                        begun.set()

            task = asyncio.create_task(call())
            await asyncio.wait_for(begun.wait(), 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(closed.wait(), 10)

    asyncio.run(run())


def test_a_call_that_is_left_early_closes_its_connection() -> None:
    async def run() -> None:
        gate = Gate()
        faults = {1: Hold(gate=gate, after_events=2)}
        async with StrictServer(replies=[REPLY], faults=faults) as server:
            model = model_at(server.url)
            async with contextlib.aclosing(model.stream(CHAT, key=KEY)) as events:
                async for _ in events:
                    break
            gate.open()
            again = await collect(model)
            assert text_of(again) == REPLY.text
            await model.aclose()

    asyncio.run(run())


def test_a_proxy_of_the_environment_is_used_but_not_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> tuple[str, str]:
        seen: list[dict[str, str]] = []
        handler = saying(stream(BODY), seen=seen)
        async with served(handler) as proxy, served(handler) as url:
            monkeypatch.setenv("HTTP_PROXY", proxy)
            monkeypatch.delenv("NO_PROXY", raising=False)
            monkeypatch.delenv("no_proxy", raising=False)
            await once(model_at("http://far.example"))
            await once(model_at(url))
        return seen[0][":"], seen[1][":"]

    through, straight = asyncio.run(run())
    assert through == "POST http://far.example/v1/chat/completions HTTP/1.1"
    assert straight == "POST /v1/chat/completions HTTP/1.1"


@pytest.mark.parametrize("answer", [http(407, "who are you?"), b"HTTP/1.1 200 OK\r\n\r\n", b""])
def test_a_proxy_that_does_not_let_through_is_unreachable(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> CallError:
        seen: list[dict[str, str]] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append({":": (await reader.readuntil(b"\r\n\r\n")).decode()})
            writer.write(answer)

        async with served(serve) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy)
            with pytest.raises(CallError) as caught:
                await once(model_at("https://far.example"))
        assert seen[0][":"].startswith("CONNECT far.example:443")
        assert SECRET not in seen[0][":"]
        return caught.value

    error = asyncio.run(run())
    assert (error.code, error.may_have_happened) == ("unreachable", False)
    assert ("the proxy refused" in error.message) is answer.startswith(b"HTTP/1.1 407")


def test_a_proxy_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://127.0.0.1:1")
    with pytest.raises(CallError) as caught:
        asyncio.run(once(model_at("https://far.example")))
    assert caught.value.code == "unreachable" and "HTTPS_PROXY" in caught.value.hint


def test_two_calls_at_a_time_do_not_mix() -> None:
    async def run() -> list[str]:
        gate = Gate()
        faults = {1: Hold(gate=gate, after_events=3)}
        async with StrictServer(replies=[REPLY], faults=faults) as server:
            model = model_at(server.url, limits=replace(QUICK, idle_seconds=300))
            first = asyncio.create_task(collect(model))
            await asyncio.to_thread(gate.reached.wait, 10)
            second = await collect(model)
            gate.open()
            answers = [text_of(await first), text_of(second)]
            await model.aclose()
            return answers

    assert asyncio.run(run()) == [REPLY.text, REPLY.text]
