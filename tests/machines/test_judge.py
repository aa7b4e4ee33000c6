"""The judge of machines in miniature finds each thing that must never be."""

from dataclasses import replace
from typing import Any

import pytest

from machines import judge
from machines.counter import Call


def call(number: int, host: str, epoch: int, *, tool: str = "launch", key: str = "") -> Call:
    return Call(
        number=number,
        host=host,
        tool=tool,
        key=key or f"key{number}",
        attempt=1,
        epoch=epoch,
        state="HOLDER",
    )


SOUND = (
    call(0, "a", 1),
    call(1, "a", 1, tool="charge", key="same"),
    call(2, "b", 2, tool="charge", key="same"),
    call(3, "b", 2),
)


def event(kind: str, epoch: int, machine: str = "m", **body: object) -> dict[str, Any]:
    return {"header": {"kind": kind, "epoch": epoch, "machine": machine, "seq": 0}, "body": body}


def log_of(*calls: Call, status: str = "done") -> list[dict[str, Any]]:
    """What a log says of these calls."""
    found: list[dict[str, Any]] = []
    for one in calls:
        found.append(event("tool_intent", one.epoch, one.host, call=one.key))
        found.append(event("tool_outcome", one.epoch, one.host, call=one.key, status=status))
    return found


def test_a_sound_record_is_sound() -> None:
    assert [*judge.of_the_world(SOUND)] == []
    log = [event("input", 1, "a", request="one"), *log_of(*SOUND)]
    assert [*judge.of_the_log(log, SOUND, ("one",))] == []
    assert [*judge.of_the_workspace(log, "launch key0\ncharge same\nlaunch key3\n")] == []


@pytest.mark.parametrize(
    ("calls", "word"),
    [
        ((*SOUND, call(4, "a", 1)), "came after"),
        ((*SOUND, call(4, "c", 2)), "was that of b, and of c"),
        ((*SOUND, call(4, "b", 2, key="key3")), "happened 2 times"),
        ((*SOUND, replace(call(4, "b", 2), state="FROZEN")), "in state FROZEN"),
    ],
    ids=["two machines by turns", "one epoch on two machines", "repeated", "frozen"],
)
def test_a_world_that_was_wronged_says_so(calls: tuple[Call, ...], word: str) -> None:
    assert any(word in fault for fault in judge.of_the_world(calls))


@pytest.mark.parametrize(
    ("log", "word"),
    [
        (log_of(*SOUND, call(4, "b", 2)), "never happened"),
        (log_of(*SOUND[:3]), "is not in the log"),
        ([*log_of(*SOUND), event("sealed", 1, "a")], "after 2"),
        ([*log_of(*SOUND), event("sealed", 2, "c")], "two machines"),
        ([*log_of(*SOUND), *[event("input", 2, "b", request="one")] * 2], "2 times"),
    ],
    ids=["done and lost", "unasked", "epoch back", "shared epoch", "read twice"],
)
def test_a_log_that_does_not_fit_the_world_says_so(log: list[dict[str, Any]], word: str) -> None:
    asked = ("one",) if "2 times" in word else ()
    assert any(word in fault for fault in judge.of_the_log(log, SOUND, asked))


def test_a_message_that_was_accepted_and_never_read_is_found() -> None:
    assert any("0 times" in fault for fault in judge.of_the_log([], (), ("one",)))


def test_a_line_that_the_workspace_lost_is_found() -> None:
    assert [*judge.of_the_workspace(log_of(SOUND[0]), "")] != []
    assert [*judge.of_the_workspace(log_of(SOUND[0], status="unknown"), "")] == []
