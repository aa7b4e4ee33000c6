"""Whatever fails in a move, and wherever: one machine has the agent, and it ends its turn once."""

import asyncio
import errno
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from moves.harness import (
    Fault,
    Link,
    Two,
    attempt,
    finish,
    judge,
    prepared,
    recovered,
    two_in,
)
from moves.mortal import MortalDisk
from sojourn.drive.settling import decide
from sojourn.errors import PeerError
from sojourn.format.capsule_kinds import Claimed

KINDS = ("check", "propose", "prepare", "activate", "retired")
HOW = ("before", "after", "twice", "late")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("moves") / "two")


def run(two: Two, fault: Fault) -> tuple[str, Link]:
    async def inside() -> tuple[str, Link]:
        link = Link(two, "a", "b", fault)
        outcome = await attempt(two, link)
        await recovered(two)
        return outcome, link

    return asyncio.run(inside())


def test_a_move_without_trouble_ends_at_the_other_machine(template: Path) -> None:
    two = two_in(template)
    outcome, _ = run(two, Fault())
    assert outcome == "moved"
    assert judge(two) == "b"


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_is_lost_repeated_or_late_loses_nothing(
    kind: str, how: str, template: Path
) -> None:
    two = two_in(template)
    _, link = run(two, Fault(kind=kind, how=how))
    for message in link.late:
        asyncio.run(link.deliver(message))
    asyncio.run(recovered(two))
    judge(two)


@pytest.mark.parametrize("number", range(3))
def test_an_altered_content_is_sent_again(number: int, template: Path) -> None:
    two = two_in(template)
    outcome, _ = run(two, Fault(alter=number))
    assert outcome == "moved"
    assert judge(two) == "b"


ENDS = [("a", at) for at in range(5, 110, 17)] + [("b", at) for at in range(5, 160, 17)]


def die(two: Two, side: str, at: int, *, error: int | None = None) -> bool:
    """Move, the machine dying or failing at that operation; whether there was one."""
    disk = two.disks[side] = MortalDisk(at, error)
    outcome, _ = run(two, Fault())
    reached = len(disk.done) >= at
    assert reached or outcome == "moved"
    judge(two)
    return reached


@pytest.mark.parametrize(("side", "at"), ENDS)
def test_either_machine_may_die_at_any_operation(side: str, at: int, template: Path) -> None:
    die(two_in(template), side, at)


@pytest.mark.slow
@pytest.mark.parametrize("error", [None, errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("side", ["a", "b"])
def test_either_machine_may_die_or_fail_at_every_operation(
    side: str, error: int | None, template: Path
) -> None:
    ends = 1
    while die(two_in(template), side, ends, error=error):
        ends += 1
    assert ends > 30


@pytest.mark.slow
def test_a_stream_may_be_cut_at_every_place(template: Path) -> None:
    whole = 40_000
    for cut in (*range(0, 2_000, 50), *range(2_000, whole, 1_000)):
        two = two_in(template)
        outcome, _ = run(two, Fault(cut=cut))
        assert outcome == "moved"
        assert judge(two) == "b"


@pytest.mark.parametrize("cut", [0, 1, 700, 9_999, 20_001])
def test_a_stream_that_is_cut_goes_on_where_it_was(cut: int, template: Path) -> None:
    two = two_in(template)
    outcome, _ = run(two, Fault(cut=cut))
    assert outcome == "moved"
    assert judge(two) == "b"


def test_all_old_messages_said_again_change_nothing(template: Path) -> None:
    """There, back, and there again, and each time everything that was ever said once more."""
    two = two_in(template)

    async def again() -> None:
        for source, target, message in list(two.said):
            with suppress(PeerError):
                await Link(two, source, target).deliver(message)

    async def to_and_fro() -> None:
        for source, target in (("a", "b"), ("b", "a"), ("a", "b"), ("b", "a")):
            assert await attempt(two, Link(two, source, target), source) == "moved"
            assert (two.state(source), two.state(target)) == ("RETIRED", "HOLDER")
            await again()
            assert (two.state(source), two.state(target)) == ("RETIRED", "HOLDER")

    asyncio.run(to_and_fro())
    asyncio.run(recovered(two))
    assert judge(two) == "a"


def lost_memory(two: Two) -> None:
    """The other machine activates, its answer is lost, and then its ledger."""

    async def inside() -> None:
        link = Link(two, "a", "b", Fault(kind="activate", how="after"))
        link.deaf = True
        assert await attempt(two, link) == "in_doubt"

    asyncio.run(inside())
    shutil.rmtree(Path(two.machine("b").state.ledger))
    asyncio.run(recovered(two))


def test_after_a_lost_ledger_nobody_runs_it_until_a_person_says_so(template: Path) -> None:
    two = two_in(template)
    lost_memory(two)
    assert [two.state(name) for name in "ab"] == ["IN_DOUBT", "NONE"]
    decide(two.machine("a").ports, two.capsule, how="resume", by="user")
    assert two.state("a") == "HOLDER"
    asyncio.run(finish(two, "a"))
    assert (template / "outside.txt").read_text() == "one\ntwo\n"
    kinds = [event.body for event in two.machine("a").look(two.place("a")).events_of()]
    assert [body.forced for body in kinds if isinstance(body, Claimed)] == [True]
