"""The strict server: headers, records, faults on demand, from a thread and from a coroutine."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sojourn.testing.strict import (
    Cut,
    End,
    Fail,
    Garbage,
    Gate,
    Hold,
    Reply,
    Rule,
    StreamError,
    StrictServer,
    ToolCall,
    Trickle,
    in_order,
    serve_in_thread,
)
from sojourn.testing.strict.faults import FAIL_KINDS
from sojourn.testing.strict.refusal import HTTP_RULES

ASK = {"role": "user", "content": "hi"}
MESSAGES: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [ASK]}
CHAT: dict[str, Any] = {"model": "m", "messages": [ASK]}
ANTHROPIC = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
OPENAI = {"authorization": "Bearer k"}
REPLY = Reply(text="Hello, you. How are you today?")


def post(server: StrictServer, path: str, body: Any, headers: dict[str, str]) -> httpx2.Response:
    return httpx2.post(server.url + path, json=body, headers=headers)


def ask(server: StrictServer, *, stream: bool = False, **headers: str) -> httpx2.Response:
    body = MESSAGES | ({"stream": True} if stream else {})
    return post(server, "/v1/messages", body, ANTHROPIC | headers)


def ask_chat(server: StrictServer, *, stream: bool = False) -> httpx2.Response:
    body = CHAT | ({"stream": True} if stream else {})
    return post(server, "/v1/chat/completions", body, OPENAI)


def said(body: str) -> str:
    """The text of a stream of the Messages API, as far as it came."""
    found = ""
    for line in body.splitlines():
        if line.startswith("data: ") and "text_delta" in line:
            found += json.loads(line[6:])["delta"]["text"]
    return found


HEADER_CASES = [
    ("key_missing", "/v1/messages", {"anthropic-version": "2023-06-01"}, 401),
    ("key_wrong", "/v1/messages", ANTHROPIC | {"x-api-key": "x"}, 401),
    ("version_missing", "/v1/messages", {"x-api-key": "k"}, 400),
    ("content_type", "/v1/messages", ANTHROPIC | {"content-type": "text/plain"}, 400),
    ("unknown_model", "/v1/messages", ANTHROPIC, 404),
    ("key_missing", "/v1/chat/completions", {}, 401),
    ("key_missing", "/v1/chat/completions", {"authorization": "Basic k"}, 401),
    ("key_wrong", "/v1/chat/completions", {"authorization": "Bearer x"}, 401),
    ("content_type", "/v1/chat/completions", OPENAI | {"content-type": "text/plain"}, 415),
    ("unknown_model", "/v1/chat/completions", OPENAI, 404),
    ("no_route", "/v1/responses", OPENAI, 404),
    ("bad_method", "/v1/messages", ANTHROPIC, 405),
]


@pytest.mark.parametrize(("rule", "path", "headers", "status"), HEADER_CASES)
def test_each_rule_of_http_refuses_a_request(
    rule: str, path: str, headers: dict[str, str], status: int
) -> None:
    models = ["other"] if rule == "unknown_model" else ["m"]
    body = MESSAGES if path == "/v1/messages" else CHAT
    with serve_in_thread(StrictServer(replies=[REPLY], keys=["k"], models=models)) as server:
        method = "PUT" if rule == "bad_method" else "POST"
        response = httpx2.request(method, server.url + path, json=body, headers=headers)
        assert response.status_code == status
        assert response.json()["error"]["message"]
        refusal = server.requests[0].refusal
    assert refusal is not None
    assert refusal.rule == rule


def test_every_rule_of_http_has_a_case() -> None:
    assert {rule for rule, *_ in HEADER_CASES} == HTTP_RULES


def test_good_headers_are_accepted_by_both_apis() -> None:
    with serve_in_thread(StrictServer(replies=[REPLY], keys=["k"], models=["m"])) as server:
        assert ask(server).json()["content"] == [{"type": "text", "text": REPLY.text}]
        assert ask_chat(server).json()["choices"][0]["message"]["content"] == REPLY.text
        assert server.refusals == []


def test_a_server_of_one_api_does_not_know_the_path_of_the_other() -> None:
    with serve_in_thread(StrictServer(replies=[REPLY], api="openai")) as server:
        assert ask(server).status_code == 404
        assert ask_chat(server).status_code == 200
        assert [one.number for one in server.requests] == [0, 1]


def test_a_host_without_keys_asks_for_none() -> None:
    with serve_in_thread(StrictServer(replies=[REPLY], host="llama.cpp")) as server:
        assert post(server, "/v1/chat/completions", CHAT, {}).status_code == 200


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"model": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    with serve_in_thread(StrictServer(replies=[REPLY])) as server:
        headers = ANTHROPIC | {"content-type": "application/json"}
        response = httpx2.post(server.url + "/v1/messages", content=body, headers=headers)
        assert response.status_code == 400
        assert [one.refusal and one.refusal.rule for one in server.requests] == [Rule.NOT_JSON]


def test_an_escaped_lone_surrogate_is_refused() -> None:
    body = json.dumps(MESSAGES | {"messages": [{"role": "user", "content": "\ud83d"}]})
    with serve_in_thread(StrictServer(replies=[REPLY])) as server:
        headers = ANTHROPIC | {"content-type": "application/json"}
        httpx2.post(server.url + "/v1/messages", content=body, headers=headers)
        assert [one.refusal and one.refusal.rule for one in server.requests] == [Rule.SURROGATE]


def test_a_body_over_the_limit_is_answered_and_not_cut_off() -> None:
    with serve_in_thread(StrictServer(replies=[REPLY])) as server:
        body = MESSAGES | {"messages": [{"role": "user", "content": "x" * (33 << 20)}]}
        response = post(server, "/v1/messages", body, ANTHROPIC)
    assert response.status_code == 413
    assert response.json()["error"]["type"] == "request_too_large"


def test_a_chunked_body_is_read() -> None:
    parts = iter([json.dumps(MESSAGES).encode()[:10], json.dumps(MESSAGES).encode()[10:]])
    with serve_in_thread(StrictServer(replies=[REPLY])) as server:
        headers = ANTHROPIC | {"content-type": "application/json"}
        response = httpx2.post(server.url + "/v1/messages", content=parts, headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize("kind", FAIL_KINDS)
def test_a_failure_on_demand_has_the_status_and_the_words_of_its_api(kind: Any) -> None:
    fault = Fail(kind=kind, retry_after="2")
    with serve_in_thread(StrictServer(replies=[REPLY], faults={1: fault, 2: fault})) as server:
        one, two = ask(server), ask_chat(server)
        assert ask(server).status_code == 200
        assert [record.verdict for record in server.requests] == ["failed", "failed", "accepted"]
    expected = {
        "rate_limited": (429, 429),
        "server_error": (500, 500),
        "overloaded": (529, 503),
        "gateway_page": (502, 502),
        "too_large": (413, 413),
        "window": (400, 400),
        "quota": (400, 429),
        "key_wrong": (401, 401),
        "forbidden": (403, 403),
    }
    assert (one.status_code, two.status_code) == expected[kind]
    assert (one.headers["retry-after"], two.headers["retry-after"]) == ("2", "2")
    if kind == "gateway_page":
        assert one.headers["content-type"] == "text/html"
        return
    assert one.json()["type"] == "error"
    assert one.json()["error"]["type"].endswith(("_error", "_too_large"))
    assert set(two.json()["error"]) == {"message", "type", "param", "code"}
    if kind == "window":
        assert "prompt is too long" in one.json()["error"]["message"]
        assert two.json()["error"]["code"] == "context_length_exceeded"


def test_llama_cpp_says_in_its_own_words_that_the_window_is_full() -> None:
    faults = {1: Fail(kind="window")}
    with serve_in_thread(StrictServer(host="llama.cpp", faults=faults)) as server:
        error = ask_chat(server).json()["error"]
    assert (error["code"], error["type"]) == (400, "exceed_context_size_error")


def test_no_fault_hides_a_request_that_is_wrong() -> None:
    with serve_in_thread(StrictServer(faults={1: Fail(kind="overloaded")})) as server:
        response = post(server, "/v1/messages", MESSAGES | {"messages": []}, ANTHROPIC)
        assert response.status_code == 400
        assert server.requests[0].verdict == "refused"


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_connection_ends_without_the_rest_of_the_body(stream: bool) -> None:
    with serve_in_thread(StrictServer(replies=[REPLY], faults={1: Cut(after_bytes=60)})) as server:
        body = MESSAGES | {"stream": stream}
        found = b""
        with (
            pytest.raises(httpx2.RemoteProtocolError),
            httpx2.stream(
                "POST", server.url + "/v1/messages", json=body, headers=ANTHROPIC
            ) as response,
        ):
            for part in response.iter_raw():
                found += part
        assert len(found) == 60
        assert ask(server, stream=stream).status_code == 200


def test_a_connection_can_break_before_the_status_line() -> None:
    with serve_in_thread(
        StrictServer(replies=[REPLY], faults={1: Cut(after_bytes=None)})
    ) as server:
        with pytest.raises(httpx2.TransportError):
            ask(server)
        assert server.requests[0].verdict == "accepted"


def test_a_stream_can_end_cleanly_without_its_last_words() -> None:
    with serve_in_thread(StrictServer(replies=[REPLY], faults={1: End(after_events=4)})) as server:
        body = ask(server, stream=True).text
        assert "message_stop" in ask(server, stream=True).text
    assert said(body) == REPLY.text[:12]
    assert "message_stop" not in body


def test_a_stream_can_hold_garbage_between_its_events() -> None:
    fault = Garbage(after_events=2)
    with serve_in_thread(StrictServer(replies=[REPLY], faults={1: fault})) as server:
        lines = ask(server, stream=True).text.splitlines()
    broken = [line for line in lines if line.startswith("data: ") and not line.endswith("}")]
    assert broken == ['data: {"type": "content_blo']


def test_a_stream_can_end_with_an_error_event() -> None:
    faults = {1: StreamError(after_events=4), 2: StreamError(after_events=2, kind="server_error")}
    with serve_in_thread(StrictServer(replies=[REPLY], faults=faults)) as server:
        one, two = ask(server, stream=True).text, ask_chat(server, stream=True).text
    assert one.endswith(
        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error",'
        '"message":"Overloaded"}}\n\n'
    )
    assert said(one) == REPLY.text[:12]
    assert "server_error" in two.split("\n\n")[-2]
    assert "[DONE]" not in two


def test_bytes_that_trickle_are_the_same_bytes() -> None:
    with serve_in_thread(StrictServer(replies=[REPLY], faults={1: Trickle(size=1)})) as server:
        assert said(ask(server, stream=True).text) == REPLY.text


def test_a_held_stream_goes_on_when_the_gate_opens() -> None:
    gate = Gate()
    with serve_in_thread(
        StrictServer(replies=[REPLY], faults={1: Hold(gate=gate, after_events=4)})
    ) as server:
        body = MESSAGES | {"stream": True}
        url = server.url + "/v1/messages"
        with httpx2.stream("POST", url, json=body, headers=ANTHROPIC) as response:
            parts = response.iter_text()
            found = ""
            while not said(found):
                found += next(parts)
            assert gate.reached.wait(30)
            assert said(found) == REPLY.text[:12]
            gate.open()
            found += "".join(parts)
    assert said(found) == REPLY.text


def test_a_server_stops_quietly_although_a_stream_is_held(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()

    async def leave() -> None:
        async with (
            StrictServer(replies=[REPLY], faults={1: Hold(gate=gate)}) as server,
            httpx2.AsyncClient() as client,
        ):
            body = MESSAGES | {"stream": True}
            url = server.url + "/v1/messages"
            async with client.stream("POST", url, json=body, headers=ANTHROPIC) as response:
                assert response.status_code == 200
                assert await asyncio.to_thread(gate.reached.wait, 30)

    asyncio.run(leave())
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_the_same_request_gets_the_same_reply_whenever_it_comes() -> None:
    replies = [Reply(text="one"), Reply(text="two")]
    later = MESSAGES | {"messages": [ASK, {"role": "assistant", "content": "one"}, ASK]}
    with serve_in_thread(StrictServer(replies=replies)) as server:
        texts = [
            post(server, "/v1/messages", body, ANTHROPIC).json()["content"][0]["text"]
            for body in (MESSAGES, MESSAGES, later, MESSAGES)
        ]
    assert texts == ["one", "one", "two", "one"]


def test_replies_can_also_be_given_in_order_or_made_from_the_request() -> None:
    with serve_in_thread(StrictServer(replies=in_order([Reply(text="a"), REPLY]))) as server:
        assert ask(server).json()["content"][0]["text"] == "a"
        assert ask(server).json()["content"][0]["text"] == REPLY.text
        assert ask(server).status_code == 400
        assert [one.verdict for one in server.requests] == ["accepted", "accepted", "broken"]
    with serve_in_thread(StrictServer(replies=lambda body: Reply(text=str(body["model"])))) as one:
        assert ask(one).json()["content"][0]["text"] == "m"


def test_a_mistake_in_a_reply_function_reaches_the_test() -> None:
    def broken(_body: object) -> Reply:
        raise LookupError("no such reply")

    with (
        pytest.raises(LookupError, match="no such reply"),
        serve_in_thread(StrictServer(replies=broken)) as server,
        pytest.raises(httpx2.TransportError),
    ):
        ask(server)


def test_a_port_that_is_taken_is_told_to_the_caller() -> None:
    with serve_in_thread(StrictServer()) as server:
        port = int(server.url.rpartition(":")[2])
        with (
            pytest.raises(OSError, match="address already in use"),
            serve_in_thread(StrictServer(port=port)),
        ):
            pass


def test_every_request_is_recorded_and_counted_by_its_idempotency_key(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    log.write_text("before\n")
    with serve_in_thread(
        StrictServer(replies=[REPLY], faults={2: Fail(kind="overloaded")}, log=log)
    ) as server:
        for _ in range(2):
            ask(server, **{"idempotency-key": "abc"})
        post(server, "/v1/messages", MESSAGES | {"messages": []}, ANTHROPIC)
        assert server.counts == {"abc": 2}
        first = server.requests[0]
        assert (first.number, first.api, first.payload, first.reply) == (
            1,
            "anthropic",
            MESSAGES,
            REPLY,
        )
        assert first.headers["x-api-key"] == "k"
    head, *lines = log.read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert head == "before"
    assert [(one["number"], one["verdict"], one["rule"]) for one in records] == [
        (1, "accepted", None),
        (2, "failed", None),
        (3, "refused", "no_messages"),
    ]
    assert [one["key"] for one in records] == ["abc", "abc", None]
    assert records[0]["body"] == records[1]["body"]
    assert "payload" not in records[0]


def test_calls_of_different_requests_have_different_ids() -> None:
    reply = Reply(calls=(ToolCall(name="read", arguments="{"), ToolCall(name="read", arguments={})))
    with serve_in_thread(StrictServer(replies=[reply])) as server:
        ids = [block["id"] for _ in range(3) for block in ask(server).json()["content"]]
    assert len(set(ids)) == 6


def test_broken_arguments_are_streamed_as_they_are() -> None:
    raw = '{"path": "a'
    reply = Reply(calls=(ToolCall(name="read", arguments=raw),), stop="length")
    with serve_in_thread(StrictServer(replies=[reply])) as server:
        events = [
            json.loads(line[6:])
            for line in ask(server, stream=True).text.splitlines()
            if line.startswith("data: ")
        ]
        chat = ask_chat(server).json()["choices"][0]
    parts = [
        event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta"
    ]
    assert "".join(parts) == raw
    assert events[-2]["delta"]["stop_reason"] == "max_tokens"
    assert chat["message"]["tool_calls"][0]["function"]["arguments"] == raw
    assert chat["finish_reason"] == "length"
