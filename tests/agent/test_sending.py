"""A request id brings one message, whether that waits, was read, or lies in a blob."""

import asyncio
from pathlib import Path

import pytest

from agent.stage import Stage
from sojourn.errors import UsageError
from sojourn.format.event import Input

LONG = "a long line\n" * 5000


def send(stage: Stage, text: str, request: str | None = "r1", author: str = "user") -> bool:
    place = stage.make()
    sent = stage.machine.send(place, text, request=request, author=author)
    return asyncio.run(sent).already


@pytest.mark.parametrize("text", ["hello", LONG])
def test_a_message_sent_again_is_there_already(text: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "Hello."}, {"text": "Bye."}])
    assert [send(stage, text), send(stage, text)] == [False, True]
    assert stage.take().reason == "rest"
    assert send(stage, text)
    assert stage.machine.look(stage.make()).waiting == 0
    assert len(stage.bodies(Input)) == 1


@pytest.mark.parametrize("first", ["hello", LONG])
def test_another_message_under_an_id_that_was_read_is_refused(first: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "Hello."}])
    send(stage, first)
    stage.take()
    for text, author in ((first + ".", "user"), (first, "somebody else")):
        with pytest.raises(UsageError) as refused:
            send(stage, text, author=author)
        assert refused.value.code == "request_reused"
    assert stage.machine.look(stage.make()).waiting == 0


def test_messages_without_an_id_are_always_new(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "Hello."}])
    assert [send(stage, "hello", None), send(stage, "hello", None)] == [False, False]
    assert stage.machine.look(stage.make()).waiting == 2
