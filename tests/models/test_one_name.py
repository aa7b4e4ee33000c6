"""Each failure has one name and one advice, whoever finds it: the client or the reply's reader."""

import asyncio
import json

import pytest

from models.loopback import CHAT, MESSAGES, http, model_at, once, saying, served
from sojourn.errors import CallError
from sojourn.ports import ServerEvent
from sojourn.render import dialect
from sojourn.render.refusal import LATER, WORDS, Facts, words_for

ANTHROPIC, OPENAI = "anthropic/m", "openai-compatible/m"


def _fails(answer: bytes, name: str) -> CallError:
    async def run() -> CallError:
        async with served(saying(answer)) as url:
            with pytest.raises(CallError) as caught:
                await once(model_at(url, name), MESSAGES if name == ANTHROPIC else CHAT)
            return caught.value

    return asyncio.run(run())


IN_STREAM: list[tuple[dict[str, object], str]] = [
    ({"type": "overloaded_error"}, "overloaded"),
    ({"type": "authentication_error"}, "key_refused"),
    ({"type": "permission_error"}, "key_refused"),
    ({"type": "billing_error"}, "credit_used_up"),
    ({"type": "not_found_error", "message": "no such thing"}, "model_unknown"),
    ({"type": "timeout_error"}, "server_failed"),
    ({"type": "invalid_request_error", "message": "prompt is too long"}, "context_overflow"),
    ({"type": "invalid_request_error", "message": "no such field"}, "request_refused"),
    ({"code": "context_length_exceeded", "type": "invalid_request_error"}, "context_overflow"),
    ({"code": "rate_limit_exceeded", "type": "requests"}, "rate_limited"),
    ({"code": "insufficient_quota", "type": "rate_limit_error"}, "credit_used_up"),
    ({"code": "content_filter"}, "refused_by_policy"),
    ({"code": 429, "message": "slow down"}, "rate_limited"),
    ({"code": 400, "message": "bad"}, "request_refused"),
    ({"status": 503, "message": "busy"}, "overloaded"),
    ({"type": "never heard of", "message": "?"}, "server_failed"),
]


@pytest.mark.parametrize("name", [ANTHROPIC, OPENAI])
@pytest.mark.parametrize(("error", "code"), IN_STREAM)
def test_an_error_inside_a_stream_is_the_same_failure_to_model_and_reader(
    name: str, error: dict[str, object], code: str
) -> None:
    body = json.dumps({"type": "error", "error": error})
    answer = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: error\ndata: {body}"
    by_model = _fails(f"{answer}\n\n".encode(), name)
    reader = dialect("anthropic" if name == ANTHROPIC else "openai_chat").reader()
    with pytest.raises(CallError) as caught:
        reader.feed(ServerEvent(event="error", data=body))
    by_reader = caught.value
    assert by_model.code == by_reader.code == code
    assert by_model.retry == by_reader.retry == (code in LATER)
    assert by_reader.hint == words_for(code, Facts())[1]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_without_a_key_names_the_variable_to_set(status: int) -> None:
    async def run(url: str, name: str) -> CallError:
        with pytest.raises(CallError) as caught:
            await once(model_at(url, name, SOJOURN_API_KEY="", OPENAI_BASE_URL=f"{url}/v1"))
        return caught.value

    async def both() -> list[CallError]:
        async with served(saying(http(status, '{"error": {"message": "who are you?"}}'))) as url:
            return [await run(url, OPENAI), await run(url, "openai/m")]

    own, openai = asyncio.run(both())
    assert {own.code, openai.code} == {"key_missing"}
    assert "Set SOJOURN_API_KEY." in own.hint and "Set OPENAI_API_KEY." in openai.hint
    assert "none was sent" in own.message and "who are you?" in own.message


def test_no_message_holds_an_address_or_the_name_of_a_variable() -> None:
    for message, _ in WORDS.values():
        assert "{address}" not in message and "{key}" not in message
