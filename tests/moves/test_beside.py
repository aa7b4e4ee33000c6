"""What goes on beside a move: other requests, names that others take, many long messages."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moves.pair import DirectPeer, Pair, Side
from sojourn.core.migration_messages import (
    Answer,
    Forward,
    Message,
    Problem,
    Standing,
    Who,
)
from sojourn.drive.forwarding import AT_ONCE, MOST_BYTES
from sojourn.drive.settling import settle
from sojourn.errors import PeerError
from sojourn.ids import CapsuleId, Epoch, MoveId
from sojourn.ports_move import Piece
from sojourn.store.arriving import FolderLanding
from sojourn.store.disk import OsDisk

TALK = [{"name": name, "text": name} for name in ("One.", "Two.", "Three.", "Four.")]


def asked_while_judged(side: Side, pair: Pair, *, final: bool) -> list[Answer]:
    """Judging at the target waits until the target has answered something else."""
    gone_on, answers = threading.Event(), list[Answer]()
    receiver, loop = side.receiver, list[asyncio.AbstractEventLoop]()
    judge = receiver.judge
    question = Who(capsule=CapsuleId("c" * 64), move=MoveId("0" * 32), epoch=Epoch(1))

    async def other() -> None:
        sender = pair.sides["c"].machine.ports.key.machine()
        answers.append(await receiver.answer(question, sender=sender, address=""))
        gone_on.set()

    async def waiting(folded: Any, store: Any) -> tuple[Problem, ...]:
        # Only what is frozen has a manifest that says how long its log is.
        if (folded.manifest.timeline.length > 0) is final and not gone_on.is_set():
            loop[0].call_soon_threadsafe(lambda: tasks.append(loop[0].create_task(other())))
            if not gone_on.wait(20):
                return (Problem(what="others", ok=False, code="blocked"),)
        return await judge(folded, store)

    tasks: list[asyncio.Task[None]] = []
    receiver.judge = waiting

    async def moving() -> None:
        loop.append(asyncio.get_running_loop())
        moved = await pair.moving("a", "b")
        assert moved.outcome == "moved", moved

    asyncio.run(moving())
    return answers


@pytest.mark.parametrize("final", [False, True], ids=["check", "prepare"])
def test_others_are_answered_while_all_that_came_is_verified(final: bool, tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    answers = asked_while_judged(pair.sides["b"], pair, final=final)
    assert [type(answer) for answer in answers] == [Standing]


def test_contents_that_come_after_the_move_was_given_up_are_not_kept(tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    b = pair.sides["b"]

    class Ending(DirectPeer):
        """The target forgets the move in the middle of the first stream that has two pieces."""

        refused: str = ""

        async def send(self, capsule: CapsuleId, move: MoveId, pieces: Any) -> None:
            async def ended() -> AsyncIterator[Piece]:
                count = 0
                async for piece in pieces:
                    yield piece
                    count += 1
                    if count == 1:
                        receiver = self.there.receiver
                        receiver._arrivals.clear()  # pyright: ignore[reportPrivateUsage]

            try:
                await self.there.receiver.take(capsule, move, ended(), sender=self.sender)
            except Exception as error:
                self.refused = getattr(error, "code", "?")
                raise PeerError("refused", code=self.refused) from error

    peer = Ending(b, pair.sides["a"].machine.ports.key.machine())
    with pytest.raises(PeerError):
        pair.move("a", "b", peer=peer)
    assert peer.refused == "not_asked_for"
    assert pair.states()["a"] == "HOLDER"


class Rival(OsDisk):
    """Just before a folder gets its place, another process takes that name."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def rename(self, old: str, new: str) -> None:
        kind = os.path.basename(old)
        if kind in ("capsule", "workspace") and len(self.taken) < 4:
            os.makedirs(new)
            Path(new, "mine").write_text("another's")
            self.taken.append(new)
        super().rename(old, new)


def test_a_name_that_another_process_takes_meanwhile_is_left_to_it(tmp_path: Path) -> None:
    disk = Rival()
    landing = FolderLanding(
        arriving=str(tmp_path / "arriving"),
        cache=str(tmp_path / "cache"),
        capsules=str(tmp_path / "capsules"),
        workspaces=str(tmp_path / "workspaces"),
        disk=disk,
    )
    at = landing.at(CapsuleId("c" * 64), MoveId("0" * 32))
    landing.begin(at)
    os.mkdir(f"{at}/workspace")
    Path(at, "workspace", "file").write_text("work")
    wanted = (f"{tmp_path}/capsules/box", f"{tmp_path}/workspaces/{'c' * 64}")
    folder, workspace = landing.place(at, folder=wanted[0], workspace=wanted[1], older=())
    assert (folder, workspace) == (f"{wanted[0]}-5", wanted[1])
    assert Path(workspace, "file").read_text() == "work"
    landing.drop(at)
    assert not os.path.exists(folder)
    assert not os.path.exists(workspace)
    assert [Path(one, "mine").read_text() for one in disk.taken] == ["another's"] * 4


def test_long_messages_that_waited_are_sent_on_a_few_at_a_time(tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    assert pair.move("a", "b").outcome == "moved"
    a, b = pair.sides["a"], pair.sides["b"]
    texts = ["é" * (MOST_BYTES // 5)] * 5 + ["short"] * (AT_ONCE + 1)
    for number, text in enumerate(texts):
        asyncio.run(a.machine.send(a.place(pair.capsule), f"{number} {text}"))
    peer = DirectPeer(b, a.machine.ports.key.machine())
    asyncio.run(settle(a.machine.ports, peer, pair.capsule, a.place(pair.capsule).folder))
    said: list[Message] = [one for one in peer.asked if isinstance(one, Forward)]
    sizes = [
        (len(one.items), sum(len(item.text.encode()) for item in one.items))
        for one in said
        if isinstance(one, Forward)
    ]
    assert all(count <= AT_ONCE and size <= MOST_BYTES for count, size in sizes), sizes
    assert [count for count, _ in sizes][:2] == [2, 2]
    assert len(b.machine.ports.inbox.items(pair.capsule)) == len(texts)
    assert a.machine.ports.inbox.items(pair.capsule) == ()
