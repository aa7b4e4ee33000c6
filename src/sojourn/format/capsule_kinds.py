"""Kinds of events about the capsule itself: who it is, who took it over, what was carried or lost.

docs/format.md#kinds is the specification. The kinds of a turn are in `format/event.py`.
"""

from typing import Literal, TypeAlias

import msgspec

from sojourn.format.body import AnySeq, Body, Head
from sojourn.format.parts import BlobRef, Count, Digest, Text
from sojourn.ids import CallKey, CapsuleId, EventId, Incarnation, MachineId


class Forked(Body, frozen=True, kw_only=True, gc=False):
    """The identity event of a capsule that goes its own way from another; first of its chain.

    `parent` is the other's id, `heads` those of all chains at the point of parting, and `continues`
    the one of them that the fork goes on from. `nonce` (32 lower hex digits) makes two forks of one
    point different.
    """

    parent: CapsuleId
    name: str
    nonce: str
    heads: tuple[Head, ...]
    continues: EventId | None = None


class Claimed(Body, frozen=True, kw_only=True, gc=False):
    """A person made this machine the holder of `capsule`; first of its chain.

    `adopt` after this machine lost its own record, `claim` of a capsule that another held.
    `forced` when nobody could tell whether the other still runs it. `heads` are those of all
    chains, every side of an equivocated one too: what they name is thereby settled. `continues` is
    the one of them that the chain goes on from (docs/protocol.md#lineage).
    """

    capsule: CapsuleId
    how: Literal["adopt", "claim"]
    by: str
    heads: tuple[Head, ...]
    continues: EventId | None = None
    forced: bool = False
    reason: Text = ""


class Activated(Body, frozen=True, kw_only=True, gc=False):
    """The capsule arrived here by the move `move` from the machine `source`; first of its chain.

    `continues` is the last event of the chain that ran it there, `heads` are those of all chains.
    `label` is what the machine calls itself, if it wants to. `missing` are calls whose effects did
    not come along, `unknown` those of the open turn whose outcome nobody knows, `left_out` the
    first of `left_out_count` paths of the workspace that did not come.
    """

    capsule: CapsuleId
    move: str
    source: MachineId
    continues: EventId | None = None
    heads: tuple[Head, ...]
    label: str = ""
    missing: tuple[CallKey, ...] = ()
    unknown: tuple[CallKey, ...] = ()
    left_out: tuple[str, ...] = ()
    left_out_count: Count = 0


class LeftOut(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A name in the workspace that no snapshot can hold, escaped so that it is text, and why."""

    path: str
    reason: str


class Snapshotted(Body, frozen=True, kw_only=True, gc=False):
    """The workspace at this moment, as what changed since the snapshot of the event `parent`.

    `result` is the sha256 of the full list's bytes, `entries` and `size` its entries and their
    bytes. `delta` is JSON text, `full` the full list where one was stored
    (docs/format.md#snapshots). `left_out` are the first of `left_out_count` names.
    """

    parent: EventId | None
    result: Digest
    entries: Count
    size: Count
    delta: Text
    full: BlobRef | None = None
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: Count = 0


class Restored(Body, frozen=True, kw_only=True, gc=False):
    """The workspace was put to what the event `snapshot` lists, null for nothing.

    `missing` are calls that the log holds and whose effects the workspace may therefore lack.
    """

    snapshot: EventId | None
    why: Literal["asked", "fork", "claim"]
    missing: tuple[CallKey, ...] = ()


class Sealed(Body, frozen=True, kw_only=True, gc=False):
    """The capsule was sealed: the `number`th time, after the seal with the manifest `previous`.

    `without_workspace`: the contents of the workspace's files were left out of the seal.
    """

    number: Count
    previous: Digest | None
    purpose: Literal["backup", "fork", "move", "share"]
    without_workspace: bool = False
    heads: tuple[Head, ...] = ()


class Redacted(Body, frozen=True, kw_only=True, gc=False):
    """The body of `event` and these blobs were taken away for good; null: the blobs alone."""

    event: EventId | None = None
    by: str
    reason: Text
    blobs: tuple[Digest, ...] = ()


class Repaired(Body, frozen=True, kw_only=True, gc=False):
    """Bytes that were not those that had been written were set aside as `blob`, null for none.

    `code` is what was wrong. They stood for the events `first` to `last` of a chain, where that is
    known, or for the blobs `lost`: exactly this is accepted (docs/format.md#repair).
    """

    code: str
    blob: BlobRef | None = None
    machine: MachineId | None = None
    incarnation: Incarnation | None = None
    first: AnySeq | None = None
    last: AnySeq | None = None
    lost: tuple[Digest, ...] = ()


CapsuleBody: TypeAlias = (
    Forked | Claimed | Activated | Snapshotted | Restored | Sealed | Redacted | Repaired
)
"""Bodies of this module."""
