"""What must be true of three machines, their logs and the world outside, however it was reached."""

import os
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from typing import Any

from machines.counter import Call
from machines.world import World

Event = dict[str, Any]


def of_the_world(calls: Sequence[Call]) -> Iterator[str]:
    """What is wrong with the record of the service outside, by itself."""
    newest, hosts = 0, dict[int, str]()
    for call in calls:
        if call.state != "HOLDER":
            yield f"call {call.number} on {call.host} was made in state {call.state}"
        if call.epoch < newest:
            yield f"call {call.number} on {call.host}: epoch {call.epoch} came after {newest}"
        newest = max(newest, call.epoch)
        first = hosts.setdefault(call.epoch, call.host)
        if first != call.host:
            yield f"call {call.number}: epoch {call.epoch} was that of {first}, and of {call.host}"
    launched = Tally(call.key for call in calls if call.tool == "launch")
    for key, times in launched.items():
        if times > 1:
            yield f"launch {key[:12]} happened {times} times"


def of_the_log(log: Sequence[Event], calls: Sequence[Call], asked: Sequence[str]) -> Iterator[str]:
    """What is wrong with the holder's log, beside the record of the service outside."""
    newest, machines = 0, dict[int, str]()
    for event in log:
        head = event["header"]
        if head["epoch"] < newest:
            yield f"event {head['seq']} has epoch {head['epoch']}, after {newest}"
        newest = max(newest, head["epoch"])
        if machines.setdefault(head["epoch"], head["machine"]) != head["machine"]:
            yield f"epoch {head['epoch']} is that of two machines"
    yield from _of_calls(log, calls)
    requests = Tally(
        event["body"]["request"] for event in log if event["header"]["kind"] == "input"
    )
    for request in asked:
        if requests[request] != 1:
            yield f"message {request} was accepted, and is in the log {requests[request]} times"


def _of_calls(log: Sequence[Event], calls: Sequence[Call]) -> Iterator[str]:
    """Whether every effect was meant at that epoch, and every call that is done had its effect."""
    meant: dict[str, set[int]] = {}
    for event in log:
        if event["header"]["kind"] == "tool_intent":
            meant.setdefault(event["body"]["call"], set()).add(event["header"]["epoch"])
    for call in calls:
        if call.epoch not in meant.get(call.key, set()):
            yield f"call {call.number} at epoch {call.epoch} is not in the log"
    seen = {call.key for call in calls}
    for event in log:
        body = event["body"]
        done = event["header"]["kind"] == "tool_outcome" and body["status"] == "done"
        if done and body["call"] not in seen:
            yield f"the log says that {body['call'][:12]} is done, and it never happened"


def of_the_workspace(log: Sequence[Event], diary: str) -> Iterator[str]:
    """Whether each call that is done left its line in the workspace, which moved along."""
    lines = {line.split()[1] for line in diary.splitlines() if line}
    for event in log:
        body = event["body"]
        done = event["header"]["kind"] == "tool_outcome" and body["status"] == "done"
        if done and body["call"] not in lines:
            yield f"{body['call'][:12]} is done, and its line in the workspace is gone"


def of_the_ledgers(world: World) -> Iterator[str]:
    """Whether exactly one machine holds the capsule, and nothing is promised anywhere."""
    holders = world.holders()
    if len(holders) != 1:
        yield f"holders: {world.states()}"
    yield from never(world)
    records = {name: record for name in world.hosts if (record := world.record(name))}
    epochs = {name: record["epoch"] for name, record in records.items()}
    if holders and epochs[holders[0]] != max(epochs.values()):
        yield f"the holder {holders[0]} is not at the highest epoch: {epochs}"
    for name, record in records.items():
        moves: Event = record.get("moves") or {}
        if moves.get("slot"):
            yield f"{name}: a slot is left"


def never(world: World) -> Iterator[str]:
    """What must not be at any moment, however short."""
    if world.two_hold():
        yield f"two holders: {world.states()}"
    if "SUSPECT" in world.states().values():
        yield f"a record is SUSPECT: {world.states()}"


def of_the_staging(world: World) -> Iterator[str]:
    """What lies there of moves that came to nothing."""
    for name, host in world.hosts.items():
        for above, _, files in os.walk(host.home / "arriving"):
            if files:
                yield f"{name}: left in {os.path.relpath(above, host.home)}: {files[0]}"
