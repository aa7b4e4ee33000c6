"""Every refusal has one stable code, whichever provider words it, and says what to do."""

import asyncio
import errno
import json
import re
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from httpx2 import ConnectError

from models.loopback import (
    CHAT,
    MESSAGES,
    QUICK,
    Clock,
    Dice,
    http,
    model_at,
    once,
    saying,
    served,
)
from sojourn.errors import CallError
from sojourn.models.choose import open_model
from sojourn.models.failures import Failures
from sojourn.models.providers import PROVIDERS, find_place
from sojourn.models.said import read_refusal
from sojourn.models.wire import Sending, trouble
from sojourn.render.refusal import WORDS, code_of
from sojourn.testing.strict import Fail, Reply, StrictServer
from sojourn.testing.strict.faults import FAIL_KINDS, FailKind

ANTHROPIC, OPENAI = "anthropic/m", "openai-compatible/m"


def said(message: str, **fields: object) -> str:
    return json.dumps({"error": {"message": message, **fields}})


BODIES: list[tuple[int, str, str]] = [
    (401, said("x", type="authentication_error"), "key_refused"),
    (403, said("your key has no right to that"), "key_refused"),
    (400, said("Incorrect API key provided"), "key_refused"),
    (404, said("model: claude-9", type="not_found_error"), "model_unknown"),
    (404, said("The model `m` does not exist", code="model_not_found"), "model_unknown"),
    (404, said("model 'm' not found, try pulling it first"), "model_unknown"),
    (400, said("Model Not Exist", type="invalid_request_error"), "model_unknown"),
    (400, said("a/b is not a valid model ID", code=400), "model_unknown"),
    (404, '{"detail":"Not Found"}', "url_wrong"),
    (404, "<html>nothing</html>", "url_wrong"),
    (405, "", "url_wrong"),
    (308, "", "url_wrong"),
    (402, said("pay first"), "credit_used_up"),
    (429, said("You exceeded it", type="insufficient_quota"), "credit_used_up"),
    (400, said("Your credit balance is too low to use this API"), "credit_used_up"),
    (429, said("slow down", type="rate_limit_error"), "rate_limited"),
    (429, said("too many tokens per minute"), "rate_limited"),
    (413, said("too large", type="request_too_large"), "request_too_large"),
    (413, said("Limit 6000 tokens per minute, request too large (TPM)"), "request_too_large"),
    (400, said("messages.2: unexpected `tool_use_id`"), "request_refused"),
    (422, '{"detail":[{"loc":["body"],"msg":"field required"}]}', "request_refused"),
    (400, said("max_tokens: must be at least 1"), "request_refused"),
    (400, said("x", code="content_policy_violation"), "refused_by_policy"),
    (403, said("The input was flagged by moderation"), "refused_by_policy"),
    (451, "", "refused_by_policy"),
    (408, "", "timed_out"),
    (409, said("another call with this key runs"), "server_failed"),
    (500, said("x", type="api_error"), "server_failed"),
    (502, "<html>Bad Gateway</html>", "server_failed"),
    (503, "", "overloaded"),
    (504, "", "server_failed"),
    (529, said("Overloaded", type="overloaded_error"), "overloaded"),
]

OVERFLOWS = [
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "This model's maximum context length is 8192 tokens. However, you asked for 9000.",
    "Your input exceeds the context window of this model.",
    "the request exceeds the available context size. try increasing it",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Please reduce the length of the messages or completion.",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "Invalid request: Your request exceeded model token limit: 262144",
    "invalid params, context window exceeds limit (2013)",
    "prompt too long; exceeded max context length by 1200 tokens",
    "tokens to keep from the initial prompt is greater than the context length",
    "too large for model with 32768 maximum context length",
    "prompt token count of 70000 exceeds the limit of 64000",
    "Input is too long for requested model.",
    "Range of input length should be [1, 30720]",
]
NO_OVERFLOWS = [
    "Request too large: too many tokens per minute, limit 30000",
    "messages.0.content: Input should be a valid list",
    "`max_tokens` must be positive",
    "Throttled: too many tokens, please wait",
    "string too long. Expected a string with maximum length 64",
]


def fails(*answers: bytes, name: str = OPENAI, clock: Clock | None = None) -> CallError:
    """The failure of a call that is given these raw answers."""

    async def run() -> CallError:
        async with served(saying(*answers)) as url:
            with pytest.raises(CallError) as caught:
                await once(
                    model_at(url, name, clock=clock), MESSAGES if name == ANTHROPIC else CHAT
                )
            return caught.value

    return asyncio.run(run())


@pytest.mark.parametrize(("status", "body", "code"), BODIES)
def test_a_refusal_has_the_code_of_its_meaning(status: int, body: str, code: str) -> None:
    error = fails(http(status, body))
    assert (error.code, error.status) == (code, status)
    assert error.retry is (
        status in (408, 409, 429, 500, 502, 503, 504, 529) and "quota" not in body
    )
    assert error.may_have_happened is (status in (502, 504))


@pytest.mark.parametrize("text", OVERFLOWS)
def test_a_request_that_is_too_long_is_known_in_every_wording(text: str) -> None:
    for status in (400, 413, 422, 500):
        assert code_of(read_refusal(said(text).encode()), status) == "context_overflow"


@pytest.mark.parametrize("text", NO_OVERFLOWS)
def test_what_only_sounds_like_it_is_no_overflow(text: str) -> None:
    assert code_of(read_refusal(said(text).encode()), 400) != "context_overflow"
    assert code_of(read_refusal(said(text).encode()), 429) == "rate_limited"


@pytest.mark.parametrize("name", [ANTHROPIC, OPENAI])
@pytest.mark.parametrize("kind", FAIL_KINDS)
def test_the_errors_of_the_strict_server_are_all_named(name: str, kind: FailKind) -> None:
    codes = {
        "rate_limited": "rate_limited",
        "server_error": "server_failed",
        "overloaded": "overloaded",
        "gateway_page": "server_failed",
        "too_large": "request_too_large",
        "window": "context_overflow",
        "quota": "credit_used_up",
        "key_wrong": "key_refused",
        "forbidden": "key_refused",
    }

    async def run() -> str:
        faults = dict.fromkeys(range(1, 9), Fail(kind=kind))
        async with StrictServer(replies=[Reply(text="x")], faults=faults) as server:
            with pytest.raises(CallError) as caught:
                await once(model_at(server.url, name), MESSAGES if name == ANTHROPIC else CHAT)
            return caught.value.code

    assert asyncio.run(run()) == codes[kind]


def test_what_a_strict_server_refuses_is_refused_in_its_own_words() -> None:
    async def run() -> CallError:
        async with StrictServer(replies=[Reply(text="x")]) as server:
            with pytest.raises(CallError) as caught:
                await once(model_at(server.url), {**CHAT, "messages": []})
            assert server.refusals[0].refusal is not None
            assert server.refusals[0].refusal.message in caught.value.message
            return caught.value

    error = asyncio.run(run())
    assert (error.code, error.status, error.retry) == ("request_refused", 400, False)


def test_a_key_that_a_server_does_not_know_is_refused_by_the_name_of_its_variable() -> None:
    async def run() -> CallError:
        async with StrictServer(replies=[Reply(text="x")], keys=["another"]) as server:
            with pytest.raises(CallError) as caught:
                await once(model_at(server.url, ANTHROPIC), MESSAGES)
            return caught.value

    error = asyncio.run(run())
    assert error.code == "key_refused"
    assert "ANTHROPIC_API_KEY" in error.hint


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (said("in error"), "in error"),
        ('{"error":"as text"}', "as text"),
        ('{"message":"bare","type":"BadRequestError"}', "bare"),
        ('{"detail":"of a framework"}', "of a framework"),
        ('[{"error":{"message":"in a list"}}]', "in a list"),
        ("plain text", "plain text"),
        ("<html><body>x</body></html>", "a page of HTML"),
        ('{"type":"error","error":{"type":"invalid_request_error"}}', "invalid_request_error"),
        ('"\\ud83d"', "ud83d"),
        ("\xff", ""),
    ],
)
def test_the_words_of_a_refusal_are_found_in_every_shape(body: str, text: str) -> None:
    assert text in fails(http(400, body)).message


def test_a_message_of_a_provider_is_one_bounded_line() -> None:
    message = fails(http(400, said("a\n\tb\x1b[31m" + "x" * 5000))).message
    assert "a b [31mxxx" in message
    assert message.endswith("…") and len(message) < 1100


def test_a_body_that_never_ends_is_read_up_to_a_limit() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    async def run() -> CallError:
        async with served(serve) as url:
            with pytest.raises(CallError) as caught:
                await once(model_at(url, limits=replace(QUICK, refusal_seconds=600)))
            return caught.value

    assert asyncio.run(run()).code == "request_refused"


def test_a_body_that_never_comes_is_not_waited_for_long() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad\r\ncontent-type: text/plain\r\n\r\nbecause")
        await writer.drain()
        await asyncio.Event().wait()

    async def run() -> CallError:
        async with served(serve) as url:
            with pytest.raises(CallError, match="because") as caught:
                await once(model_at(url, limits=replace(QUICK, idle_seconds=300)))
            return caught.value

    assert asyncio.run(run()).code == "request_refused"


def test_an_error_with_status_200_is_an_error() -> None:
    body = said("upstream is overloaded", code=503)
    error = fails(http(200, body, content_type="application/json"))
    assert (error.code, error.may_have_happened) == ("overloaded", False)


def test_a_provider_is_quoted_with_its_id_of_the_request() -> None:
    assert "req_123" in fails(http(400, "{}", request_id="req_123")).hint


def test_nothing_that_listens_is_unreachable_and_tried_again() -> None:
    clock = Clock()

    async def run() -> CallError:
        async with served(saying(b"")) as url:
            pass
        with pytest.raises(CallError) as caught:
            await once(model_at(url, clock=clock))
        return caught.value

    error = asyncio.run(run())
    assert error.code == "unreachable" and "nothing listens there" in error.message
    assert (error.may_have_happened, len(clock.waits)) == (False, 4)
    assert "SOJOURN_BASE_URL" in error.hint and "127.0.0.1" in error.hint


@pytest.mark.parametrize(
    ("cause", "words", "retry"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "no such name", False),
        (socket.gaierror(socket.EAI_AGAIN, "later"), "no such name", True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "nothing listens there", True),
        (ssl.SSLCertVerificationError(1, "bad"), "certificate is not trusted", False),
        (OSError(errno.ENETUNREACH, "x"), "Network is unreachable", True),
        (ExceptionGroup("all", [OSError(errno.EHOSTUNREACH, "x")]), "No route to host", True),
    ],
)
def test_why_there_is_no_connection_is_said(cause: Exception, words: str, retry: bool) -> None:
    error = ConnectError("host.example does not answer")
    error.__cause__ = cause
    place = find_place(PROVIDERS["ollama"], {"OLLAMA_HOST": "host.example"})
    failures = Failures(place=place, model="m", limit=1000)
    found = trouble(error, Sending(), failures, QUICK)
    assert (found.code, found.retry, found.may_have_happened) == ("unreachable", retry, False)
    assert words in found.message and "host.example" not in found.message
    assert "OLLAMA_HOST (http://host.example:11434/v1" in found.hint


def test_no_tls_is_unreachable_and_not_tried_again() -> None:
    clock = Clock()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"this is no TLS\r\n")
        await writer.drain()

    async def run() -> CallError:
        async with served(serve) as url:
            with pytest.raises(CallError) as caught:
                await once(model_at(url.replace("http:", "https:"), clock=clock))
            return caught.value

    error = asyncio.run(run())
    assert error.code == "unreachable" and "TLS" in error.message
    assert clock.waits == []


def test_messages_hold_no_address_and_hints_do() -> None:
    for answer in (http(404, ""), http(500, ""), b"", b"garbage\r\n\r\n", http(200, "{}")):
        error = fails(answer)
        assert "127.0.0.1" not in error.message + error.state
        assert error.message and error.state and error.hint


def test_every_code_is_described_for_people() -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    described = set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE))
    assert described >= {*WORDS, "key_missing", "key_malformed", "script_ended", "script_lost"}


def test_a_model_of_an_own_endpoint_needs_its_key_before_anything_is_sent() -> None:
    with pytest.raises(CallError) as caught:
        open_model(
            "openai/m",
            environment={"OLLAMA_HOST": "127.0.0.1:9"},
            clock=Clock(),
            randomness=Dice(),
            limits=replace(QUICK, attempts=1),
        )
    assert (caught.value.code, caught.value.state) == ("key_missing", "Nothing was sent.")
