"""What a tenure begins with: the `claimed` event, and a workspace that fits the log.

docs/protocol.md#claim is the specification. Both are done by the next opening when the process that
claimed died before.
"""

import os
from typing import Literal

from sojourn.core.parting import Traces
from sojourn.drive.hold import Hold
from sojourn.drive.observe import Observer
from sojourn.drive.reading import Folded, blob_or_none
from sojourn.format.capsule_kinds import Claimed, Restored
from sojourn.format.event import Event
from sojourn.format.timeline_read import Reader
from sojourn.ports import Store


async def begin_tenure(hold: Hold, folded: Folded, observer: Observer) -> None:
    """Draft what a claim that is not finished still has to append; nothing for any other."""
    claim = hold.record.claim
    if claim is None:
        return
    incarnation = hold.record.incarnation
    if not any(chain.incarnation == incarnation for chain in folded.ending.chains):
        claimed = Claimed(
            capsule=hold.capsule,
            how=claim.how,
            by=claim.by,
            heads=folded.ending.sides,
            forced=claim.forced,
            reason=claim.reason,
        )
        hold.state = folded.states.taken_over(folded.ending.sides)
        hold.draft(claimed)
    workspace = hold.record.workspace
    traces = traces_of(hold.store, folded.ending.length) if claim.restore else Traces()
    as_it_was = os.path.isdir(workspace) and traces.snapshot is None and not traces.calls
    if claim.restore and not as_it_was:
        restored = restoring(traces, why="claim")
        await fill_workspace(hold.store, restored, workspace)
        hold.draft(restored)
        observer.note(f"the workspace {workspace} was made anew; the agent is told what it lacks")


def restoring(traces: Traces, *, why: Literal["claim", "fork"]) -> Restored:
    """The event that says what a workspace is that is made anew, and what it lacks.

    Without a snapshot it is empty, and every call that may have changed it is missing.
    """
    return Restored(snapshot=None, why=why, missing=traces.calls)


async def fill_workspace(store: Store, restored: Restored, workspace: str) -> None:
    """Make the folder what the event says; the blobs are those of `store`."""
    del store, restored
    os.makedirs(workspace, mode=0o700, exist_ok=True)


def traces_of(store: Store, length: int) -> Traces:
    """What a workspace that is made anew lacks of the first `length` bytes of the log."""
    traces = Traces()
    reader = Reader(read_blob=lambda ref: blob_or_none(store, ref))
    items = (item for chunk in store.read_log(0, length) for item in reader.feed(chunk))
    for item in items:
        if isinstance(item, Event):
            traces.apply(item)
    for item in reader.finish(same_boot=True).rest:
        if isinstance(item, Event):
            traces.apply(item)
    return traces
