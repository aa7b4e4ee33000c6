"""The identifiers every room speaks of, and the two that are derived by hashing.

Imports nothing of sojourn. All are `NewType`s over `str` or `int`: a mistaken exchange of two of
them is an error of types, and none costs anything at run time.
"""

from functools import lru_cache
from hashlib import sha256
from typing import NewType

EventId = NewType("EventId", str)
"""sha256 of an event's header bytes, 64 lower hex digits (docs/format.md#events)."""

CapsuleId = NewType("CapsuleId", str)
"""The id of the capsule's identity event, 64 lower hex digits (docs/format.md#identity)."""

MachineId = NewType("MachineId", str)
"""sha256 of the machine's public key, 64 lower hex digits (docs/format.md#chains)."""

Incarnation = NewType("Incarnation", str)
"""Random value of the ledger file that held the capsule, 32 lower hex digits."""

BlobId = NewType("BlobId", str)
"""sha256 of a blob's bytes, 64 lower hex digits; also its file name."""

CallKey = NewType("CallKey", str)
"""Key of one call, equal for all its attempts, 64 lower hex digits (docs/replay.md#call-key)."""

TurnId = NewType("TurnId", str)
"""Id of the first input event of a turn."""

RequestId = NewType("RequestId", str)
"""Chosen by whoever sends a message; the same id with the same content is one message."""

RunnerId = NewType("RunnerId", str)
"""Random value of one process that runs turns, 32 lower hex digits."""

MoveId = NewType("MoveId", str)
"""Random value of one attempt to move a capsule, 32 lower hex digits."""

Epoch = NewType("Epoch", int)
"""Raised at each change of holder, from 1."""

Seq = NewType("Seq", int)
"""Place of an event in its chain, from 0, without gaps."""

Clock = NewType("Clock", int)
"""Lamport clock of an event, from 1."""


@lru_cache(maxsize=64)
def call_key(*, capsule: CapsuleId, requested_by: EventId, index: int) -> CallKey:
    """The key of the call at `index` in the batch that `requested_by` asked for.

    Equal for all attempts, on every machine (docs/replay.md#call-key). Each fold of the log asks
    for the same few keys one after the other.
    """
    text = f"sojourn.call/1 {capsule} {requested_by} {index}"
    return CallKey(sha256(text.encode()).hexdigest())


def machine_id(public_key: bytes) -> MachineId:
    """The id of the machine whose raw Ed25519 public key (32 bytes) this is."""
    return MachineId(sha256(public_key).hexdigest())
