"""Two runners of one capsule although the lock failed: the log's expected head is the fence."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent.stage import Stage
from sojourn.agent import Unwatched
from sojourn.drive.opening import hold_capsule
from sojourn.errors import FencedError
from sojourn.format.event import Input
from sojourn.format.parts import TextPart
from sojourn.ids import RequestId
from sojourn.ports import HeldBy
from sojourn.store.log import LogFile


class NoLock:
    """A lock that lets everybody in."""

    @contextmanager
    def acquire(self, _: object) -> Generator[HeldBy | None]:
        yield None

    def holder(self, _: object) -> None:
        return None

    def settled(self, _: object) -> None:
        return None

    def check(self, _: object) -> None:
        return None


def said(text: str) -> Input:
    return Input(request=RequestId(text), author="user", parts=(TextPart(text=text),))


async def two_appends(stage: Stage, folder: str) -> None:
    """Both open the same log; the first appends, then the second from its stale head."""
    ports = replace(stage.machine.ports, lock=NoLock())
    first = hold_capsule(ports, folder, observer=Unwatched())
    second = hold_capsule(ports, folder, observer=Unwatched())
    one, two = await first.__aenter__(), await second.__aenter__()
    one.draft(said("one"))
    await one.commit()
    two.draft(said("two"))
    await two.commit()


def test_a_stale_runner_writes_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "Hello."}])
    place = stage.make()
    with pytest.raises(FencedError) as refused:
        asyncio.run(two_appends(stage, place.folder))
    assert refused.value.code == "stale_head"
    assert [body.request for body in stage.bodies(Input)] == ["one"]
    assert stage.verify() == []


def test_without_the_check_of_the_head_the_log_is_broken_and_verify_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, [{"text": "Hello."}])
    place = stage.make()

    def unchecked(*_: object) -> None:
        """The check, removed."""

    monkeypatch.setattr(LogFile, "_expect", unchecked)
    asyncio.run(two_appends(stage, place.folder))
    assert set(stage.verify()) & {"equivocation", "duplicate_event", "chain_broken"}
