"""Whatever fails in a move, and wherever: one machine has the agent, and it ends its turn once."""

import asyncio
from pathlib import Path

import pytest

from moves.harness import Fault, Link, MortalDisk, Two, attempt, judge, prepared, recovered, two_in

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


ENDS = [("a", at) for at in range(1, 400, 29)] + [("b", at) for at in range(1, 400, 29)]
EVERY = [(side, at) for side in "ab" for at in range(1, 400)]


def die(two: Two, side: str, at: int) -> bool:
    """Move, the machine dying at that operation; whether there was one."""
    disk = two.disks[side] = MortalDisk(at)
    outcome, _ = run(two, Fault())
    reached = len(disk.done) >= at
    assert reached or outcome == "moved"
    judge(two)
    return reached


@pytest.mark.parametrize(("side", "at"), ENDS)
def test_either_machine_may_die_at_any_operation(side: str, at: int, template: Path) -> None:
    die(two_in(template), side, at)
