"""What a tenure begins with: the `claimed` event, and a workspace that fits the log.

docs/protocol.md#claim is the specification. Both are done by the next opening when the process that
claimed died before.
"""

import os

from sojourn.drive.hold import Hold
from sojourn.drive.observe import Observer
from sojourn.drive.reading import Folded
from sojourn.drive.refill import fill, remaining
from sojourn.errors import FormatError
from sojourn.format.capsule_kinds import Claimed
from sojourn.ports_workspace import Progress, Workspace


async def begin_tenure(
    hold: Hold,
    folded: Folded,
    workspace: Workspace,
    observer: Observer,
    *,
    progress: Progress | None = None,
) -> None:
    """Draft what a claim that is not finished still has to append; nothing for any other.

    Raises: as `refill.fill`.
    """
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
            continues=folded.states.line_of(folded.ending.sides),
            forced=claim.forced,
            reason=claim.reason,
        )
        hold.state = folded.states.taken_over(folded.ending.sides)
        hold.draft(claimed)
    if claim.restore:
        await _restore(hold, folded, workspace, observer, progress)


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
