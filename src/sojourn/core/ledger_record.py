"""What a machine knows of its tenure of one capsule (docs/protocol.md#ledger)."""

from typing import Literal, TypeAlias

import msgspec

from sojourn.core.migration_records import Moves, Outgoing, Slot
from sojourn.core.seals import SealSeen
from sojourn.ids import CapsuleId, Epoch, EventId, Incarnation

LedgerState: TypeAlias = Literal["NONE", "HOLDER", "SUSPECT", "FROZEN", "IN_DOUBT", "RETIRED"]
"""Only HOLDER may append; SUSPECT is left by a person's command alone.

FROZEN and IN_DOUBT are those of a source in the middle of a move, before and after the point of no
return; RETIRED is that of one whose capsule went elsewhere (docs/moving.md#states).
"""


class LedgerTip(msgspec.Struct, frozen=True, kw_only=True):
    """Where the log ended when the ledger last looked: length in bytes, last event, manifest.

    `manifest` is the sha256 of manifest.json at that moment. The log may be longer, never shorter.
    """

    length: int = 0
    last: EventId | None = None
    manifest: str | None = None


class PendingClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What the `claimed` event says that the next opening appends, unless it is in the log.

    `restore`: the workspace is then filled from the last snapshot (docs/protocol.md#claim).
    """

    how: Literal["adopt", "claim"]
    by: str
    forced: bool = False
    reason: str = ""
    restore: bool = False


class LedgerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine knows of its tenure of one capsule (docs/protocol.md#ledger).

    `floor` is the highest epoch ever held or heard of and never falls. `folder` is where the live
    capsule lies and `workspace` where the agent works, absolute and resolved. `reason` says why
    the state is SUSPECT. `claim` is set while a claim is not finished.
    """

    capsule: CapsuleId
    incarnation: Incarnation
    state: LedgerState
    epoch: Epoch
    floor: Epoch
    folder: str
    workspace: str
    tip: LedgerTip = LedgerTip()
    reason: str = ""
    claim: PendingClaim | None = None
    seal: SealSeen | msgspec.UnsetType = msgspec.UNSET
    moves: Moves | msgspec.UnsetType = msgspec.UNSET

    @property
    def copied(self) -> bool:
        """The record is not the one that this machine wrote; it is never written again."""
        return self.reason == "ledger_copied"

    @property
    def travels(self) -> Moves | None:
        """What is known of moves; None before the first one, and after a loss of memory."""
        return None if isinstance(self.moves, msgspec.UnsetType) else self.moves

    @property
    def outgoing(self) -> Outgoing | None:
        """The move that this machine began and that is not decided."""
        return None if isinstance(self.moves, msgspec.UnsetType) else self.moves.outgoing

    @property
    def slot(self) -> Slot | None:
        """The move that is arriving here."""
        return None if isinstance(self.moves, msgspec.UnsetType) else self.moves.slot

    @property
    def sealed(self) -> SealSeen:
        """The newest seal that is known here."""
        return SealSeen() if isinstance(self.seal, msgspec.UnsetType) else self.seal


def first_record(
    *,
    capsule: CapsuleId,
    incarnation: Incarnation,
    folder: str,
    workspace: str,
    epoch: Epoch = Epoch(1),  # noqa: B008 - a number, never changed
) -> LedgerRecord:
    """The record of a capsule that is about to be made here; it is saved before the capsule."""
    return LedgerRecord(
        capsule=capsule,
        incarnation=incarnation,
        state="HOLDER",
        epoch=epoch,
        floor=epoch,
        folder=folder,
        workspace=workspace,
    )
