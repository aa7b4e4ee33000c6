"""A person makes this machine the holder of a capsule that it may not run (docs/protocol.md#claim).

The ledger record comes first and holds what the claim still has to do, so that a crash leaves
either nothing or a capsule that its next opening brings to the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sojourn.core.ledger_record import LedgerRecord, PendingClaim
from sojourn.core.tenure import (
    CLAIMABLE,
    FORCED_ONLY,
    Evidence,
    MayLook,
    admit,
    claimed_record,
    reasons,
)
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.opening import examine, opened, refusal
from sojourn.drive.reading import read_manifest
from sojourn.drive.refill import check_room, remaining
from sojourn.ids import CapsuleId, Epoch, Incarnation
from sojourn.ports_workspace import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where the agent shall work; `restore` when that folder is to be filled from a snapshot."""

    folder: str
    restore: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Risks:
    """What a person must know before a claim.

    `reasons` are why the capsule does not run here; none when there is nothing to claim.
    `lost` are bytes of the log that this machine remembers and that are not there.
    """

    reasons: tuple[MayLook, ...]
    epoch: Epoch
    lost: int = 0

    def against(self, *, forced: bool) -> MayLook | None:
        """The gravest reason that a claim does not take away.

        One that names another holder for certain is taken away by force only.
        """
        for one in self.reasons:
            if one.code not in CLAIMABLE or (one.code in FORCED_ONLY and not forced):
                return one
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedCapsule:
    """How a claim ended: `held` when there was nothing to claim, `finished` when an earlier one
    had not come to its end.
    """

    done: Literal["claimed", "finished", "held"]
    risks: Risks
    record: LedgerRecord


def risks_of(evidence: Evidence) -> Risks:
    """What a claim of this capsule means, from what was found."""
    record = evidence.record
    known = max(evidence.highest_epoch, 0 if record is None else record.floor)
    lost = 0 if record is None else max(0, record.tip.length - evidence.length)
    return Risks(reasons=tuple(reasons(evidence)), epoch=Epoch(known), lost=lost)


async def claim_capsule(
    ports: Ports,
    folder: str,
    *,
    how: Literal["adopt", "claim"],
    forced: bool,
    reason: str,
    agreed: Callable[[Risks], bool],
    workplace: Callable[[LedgerRecord | None], Workplace],
    observer: Observer,
    progress: Progress | None = None,
) -> ClaimedCapsule | None:
    """Hold the capsule by a person's word; None when `agreed` says no to what it risks.

    A claim that an earlier process did not finish is finished. `progress` is told of a workspace
    that is filled.

    Raises: HeldElsewhereError when a process here has it; HeldElsewhereError or FormatError when a
    reason stays that a claim does not take away; UsageError `restore_conflict` for what lies in
    the way of the workspace's files; FormatError when one of these is gone; LimitError
    `epoch_limit`; StorageError.
    """
    store = ports.store_at(folder)
    capsule = read_manifest(store).capsule
    ports.key.machine()
    with ports.lock.acquire(capsule) as left:
        folded, evidence = examine(ports, store, folder, left=left, recover=True)
        risks = risks_of(evidence)
        if (against := risks.against(forced=forced)) is not None:
            raise refusal(against)
        admission = admit(evidence)
        done: Literal["claimed", "finished", "held"] = "claimed"
        if isinstance(admission, MayLook):
            place = workplace(evidence.record)
            if place.restore:
                workspace = ports.workspace_at(CapsuleId(""), folder, place.folder)
                found = remaining(store, evidence.length)
                check_room(workspace, store, found.last(folded.ending.gone))
            if not agreed(risks):
                return None
            claim = PendingClaim(
                how=how, by="user", forced=forced, reason=reason, restore=place.restore
            )
            record = claimed_record(
                evidence,
                claim,
                incarnation=Incarnation(ports.randomness.token(16).hex()),
                workspace=place.folder,
            )
            # Whoever copied the folder here may not have synced it.
            ports.maker.settle(folder)
            ports.ledger.save(record)
        else:
            record = admission.record
            done = "held" if record.claim is None else "finished"
            if admission.moved:
                ports.ledger.save(record)
        async with opened(ports, store, folded, record, left, observer, progress=progress) as hold:
            pass
        return ClaimedCapsule(done=done, risks=risks, record=hold.record)
