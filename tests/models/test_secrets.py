"""A key is seen by its provider alone: no error, log line or representation holds it."""

import asyncio
import base64
import logging
import traceback

import pytest

from models.loopback import SECRET, collect, http, model_at, saying, served, stream
from sojourn.errors import CallError
from sojourn.models.said import shown

ECHOES = [
    f"bad key {SECRET}",
    f"bad key {SECRET[:10]}***",
    f"bad key: sk-a****************{SECRET[-4:]}.",
    f"Authorization: Bearer {SECRET}, again {SECRET[:-3]}",
]
ANSWERS = [http(401, f'{{"error":{{"message":"{text}"}}}}') for text in ECHOES]
ANSWERS += [http(500, ECHOES[0]), http(200, ECHOES[0]), b"HTTP/1.1 bad " + SECRET.encode()]
ANSWERS += [stream(b'data: {"error": "' + SECRET.encode() + b'"}\n\n'), b""]


@pytest.mark.parametrize("name", ["anthropic/m", "openai-compatible/m"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_no_failure_and_no_log_holds_the_key(
    answer: bytes, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> tuple[CallError, str]:
        seen: list[dict[str, str]] = []
        async with served(saying(answer, seen=seen)) as url:
            model = model_at(url, name)
            with pytest.raises(CallError) as caught:
                await collect(model)
            await model.aclose()
            assert any(SECRET in value for value in seen[0].values())
            return caught.value, f"{model!r} {model.issuer!r} {model.profile!r}"

    with caplog.at_level(logging.DEBUG):
        error, shown_model = asyncio.run(run())
    texts = [error.message, error.state, error.hint, repr(error), shown_model, caplog.text]
    texts.append("".join(traceback.format_exception(error)))
    for text in texts:
        assert SECRET not in text
        assert SECRET[:8] not in text and SECRET[-4:] not in text
        assert base64.b64encode(SECRET.encode()).decode() not in text


def test_only_words_that_look_like_the_key_are_hidden() -> None:
    text = f"key {SECRET[:9]}... of *project* a**b is wrong; sk-other stays"
    cleaned = shown(text, secrets=(SECRET,), limit=200)
    assert cleaned == "key [key] of *project* a**b is wrong; sk-other stays"


def test_a_short_key_is_hidden_where_it_stands_whole() -> None:
    text = shown("key secret7 and secret8", secrets=("secret7",), limit=100)
    assert text == "key [key] and secret8"
