"""What a tenure begins with: `claimed` or `activated`, and a workspace that fits the log.

docs/protocol.md#claim and docs/moving.md are the specification. It is done by the next opening when
the process that began the tenure died before.
"""

import os
from typing import Final

from sojourn.core.migration_records import Arriving
from sojourn.drive.hold import Hold
from sojourn.drive.observe import Observer
from sojourn.drive.reading import Folded
from sojourn.drive.refill import fill, remaining
from sojourn.errors import FormatError
from sojourn.format.capsule_kinds import Activated, Claimed
from sojourn.ports_workspace import Progress, Workspace

MOST_LEFT_OUT: Final = 100
"""Paths that an event names; more are counted."""


async def begin_tenure(
    hold: Hold,
    folded: Folded,
    workspace: Workspace,
    observer: Observer,
    *,
    progress: Progress | None = None,
) -> None:
    """Draft what a claim or an arrival that is not finished still has to append, else nothing.

    Raises: as `refill.fill`.
    """
    moves, claim = hold.record.travels, hold.record.claim
    if moves is not None and moves.arrived is not None:
        _arrive(hold, folded, moves.arrived)
    if claim is None:
        return
    incarnation = hold.record.incarnation
    if not any(chain.incarnation == incarnation for chain in folded.ending.chains):
        claimed = Claimed(
            capsule=hold.capsule,
            how=claim.how,
            by=claim.by,
            heads=folded.ending.sides,
            continues=folded.states.line_of(folded.ending.sides),
            forced=claim.forced,
            reason=claim.reason,
        )
        hold.state = folded.states.taken_over(folded.ending.sides)
        hold.draft(claimed)
    if claim.restore:
        await _restore(hold, folded, workspace, observer, progress)


def _arrive(hold: Hold, folded: Folded, arrived: Arriving) -> None:
    """Draft that the capsule arrived, unless the log says so already."""
    incarnation = hold.record.incarnation
    if any(chain.incarnation == incarnation for chain in folded.ending.chains):
        return
    sides, last = folded.ending.sides, folded.snapshots.current
    hold.state = folded.states.taken_over(
        [head for head in sides if head.id == arrived.goes_on] or sides
    )
    left_out = [*arrived.left_out]
    body = next((body for event, body in folded.snapshots if event == last), None)
    more = 0 if body is None else body.left_out_count
    left_out += [] if body is None else [one.path for one in body.left_out]
    hold.draft(
        Activated(
            capsule=hold.capsule,
            move=arrived.move,
            source=arrived.source,
            continues=arrived.goes_on,
            heads=sides,
            label=arrived.label,
            missing=remaining(hold.store, folded.ending.length).missing(last),
            unknown=tuple(
                call.key for call in hold.state.calls if call.state in ("started", "unknown")
            ),
            left_out=tuple(left_out[:MOST_LEFT_OUT]),
            left_out_count=len(arrived.left_out) + more,
        )
    )


async def _restore(
    hold: Hold,
    folded: Folded,
    workspace: Workspace,
    observer: Observer,
    progress: Progress | None,
) -> None:
    """Fill the workspace and draft what says so, unless the log does already."""
    found = remaining(hold.store, folded.ending.length)
    if found.is_restored_by(hold.record.incarnation):
        return
    was_there = os.path.isdir(workspace.path)
    try:
        remains = found.last(folded.ending.gone)
        await fill(workspace, remains, observer, progress=progress)
    except FormatError as error:
        # The capsule is held here already: better an empty workspace than one that never opens.
        observer.note(f"the last snapshot cannot be put back: {error.message}")
        remains = found.nothing()
        os.makedirs(workspace.path, mode=0o700, exist_ok=True)
    if was_there and remains.snapshot is None and not remains.missing:
        return
    hold.draft(remains.restored("claim"))
    files = "is empty" if remains.snapshot is None else f"is that of event {remains.snapshot[:8]}"
    told = "; the agent is told what it lacks" if remains.missing else ""
    observer.note(f"the workspace {workspace.path} {files}{told}")
