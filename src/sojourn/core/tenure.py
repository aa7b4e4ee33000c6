"""Who may append: what a machine remembers of a capsule, and what follows from it when opening.

Authority is the machine's own ledger, never the capsule, so a copied capsule is no authority
(docs/protocol.md#ledger). Every reason against running is a value; nothing here looks anywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from typing import Final, Literal, TypeAlias

import msgspec

from sojourn.core.ledger_record import LedgerRecord, PendingClaim
from sojourn.core.migration_records import Moves
from sojourn.errors import LimitError
from sojourn.ids import CapsuleId, Epoch, EventId, Incarnation

LookCode: TypeAlias = Literal[
    "format_newer",
    "ledger_damaged",
    "ledger_unsupported",
    "not_held_here",
    "ledger_copied",
    "in_doubt",
    "frozen",
    "moved_away",
    "arriving",
    "suspect",
    "newer_epoch",
    "copied",
    "rolled_back",
    "damaged",
    "equivocation",
    "divergence",
    "network_folder",
]
"""Names of the reasons why a capsule may only be looked at, the gravest first."""

CLAIMABLE: Final[frozenset[LookCode]] = frozenset(
    (
        "ledger_damaged",
        "not_held_here",
        "ledger_copied",
        "moved_away",
        "arriving",
        "suspect",
        "newer_epoch",
        "rolled_back",
        "equivocation",
        "divergence",
    )
)
"""Reasons that a person's claim takes away; the others have other remedies."""

FORCED_ONLY: Final[frozenset[LookCode]] = frozenset(("arriving", "moved_away"))
"""Reasons that name another holder for certain: only a claim that is forced takes them away."""

FORCED_STEP: Final = 1000
"""How far a forced claim raises the epoch, since another machine may go on raising it, too."""

MAX_EPOCH: Final = 2**53 - 1

_NOT_RUN: Final = frozenset(("FROZEN", "IN_DOUBT", "RETIRED"))
"""States of a move, which a newer epoch must not hide."""

LOOKING: Final = "Looking at it is fine."
GONE: Final = "If that machine is gone for good, `sojourn claim` makes this one the holder."
BOTH: Final = (
    "`sojourn claim` keeps both sides and goes on; `sojourn fork --at EVENT` goes on from before."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that bears on who may append, as found when opening.

    `folder` is where the capsule was opened, resolved. `ledger_failure` is the failure's code when
    the record is there and cannot be read. `old_folder`: the capsule is still at the record's
    folder too. `length` is that of the log's sound lines, `at_tip` the event whose line ends at
    the record's tip length. `highest_epoch` is that of manifest and log. `mine`: the log has events
    of this machine, `begun`: of the record's incarnation. `damage` names the failure of what could
    not be read, a torn tail excepted. `network` names the network file system under the folder.
    """

    capsule: CapsuleId
    folder: str
    record: LedgerRecord | None
    ledger_failure: str | None = None
    old_folder: bool = False
    length: int
    at_tip: EventId | None
    highest_epoch: Epoch
    mine: bool = False
    begun: bool = True
    read_only_format: bool = False
    damage: str | None = None
    equivocation: bool = False
    divergence: bool = False
    network: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MayRun:
    """The capsule is held here; `record` is what to save first, `moved` if its folder changed."""

    record: LedgerRecord
    moved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MayLook:
    """The capsule may be read and not run: a stable code, one sentence, and what can be done.

    `suspect`: something happened that must not happen. `remember` is a record to save before the
    evidence can go away; where it is None the evidence stays for itself.
    """

    code: LookCode
    message: str
    hint: str
    suspect: bool = False
    remember: LedgerRecord | None = None


Admission: TypeAlias = MayRun | MayLook


def admit(evidence: Evidence) -> Admission:
    """What opening may do: run, or look for the gravest reason (docs/protocol.md#ledger)."""
    reason = next(reasons(evidence), None)
    if reason is not None:
        return reason
    record = evidence.record
    if record is None:
        return _not_held(evidence)
    moved = record.folder != evidence.folder
    if moved:
        record = msgspec.structs.replace(record, folder=evidence.folder)
    return MayRun(record=record, moved=moved)


def claimed_record(
    evidence: Evidence, claim: PendingClaim, *, incarnation: Incarnation, workspace: str
) -> LedgerRecord:
    """The record by which a person's claim makes this machine the holder (docs/protocol.md#claim).

    Its epoch is above all that log, manifest and ledger know of. Raises: LimitError `epoch_limit`.
    """
    record = evidence.record
    known = max(evidence.highest_epoch, 0 if record is None else record.floor)
    epoch = Epoch(known + (FORCED_STEP if claim.forced else 1))
    if epoch > MAX_EPOCH:
        raise LimitError(
            f"the capsule names epoch {known}, and there is none above it that can be claimed",
            code="epoch_limit",
            state="Nothing was changed.",
            hint="Nobody raises an epoch that far: its log was made to mislead. Fork it instead.",
        )
    return LedgerRecord(
        capsule=evidence.capsule,
        incarnation=incarnation,
        state="HOLDER",
        epoch=epoch,
        floor=epoch,
        folder=evidence.folder,
        workspace=workspace,
        claim=claim,
        seal=msgspec.UNSET if record is None else record.seal,
        moves=msgspec.UNSET if record is None else _moves_after_claim(record),
    )


def _moves_after_claim(record: LedgerRecord) -> Moves | msgspec.UnsetType:
    """What was promised to others stays; what was arriving never will, and nothing went away."""
    known = record.travels
    if known is None:
        return msgspec.UNSET
    return msgspec.structs.replace(known, slot=None, went=None, arrived=None)


def reasons(evidence: Evidence) -> Iterator[MayLook]:
    """Every reason against running, the gravest first; none means that the capsule may run.

    Each of them carries what is to be remembered, whichever is shown.
    """
    remember = _remembered(evidence)
    for reason in (*_of_format(evidence), *_of_ledger(evidence), *_of_log(evidence)):
        yield MayLook(
            code=reason.code,
            message=reason.message,
            hint=reason.hint,
            suspect=reason.suspect,
            remember=remember,
        )


def _remembered(evidence: Evidence) -> LedgerRecord | None:
    """A newer epoch is written down, since a rolled-back folder would hide it again."""
    record = evidence.record
    if record is None or record.capsule != evidence.capsule or record.copied:
        return None
    floor = Epoch(max(record.floor, evidence.highest_epoch))
    if record.state in _NOT_RUN:
        return None if floor == record.floor else msgspec.structs.replace(record, floor=floor)
    if evidence.highest_epoch <= max(record.epoch, record.floor if record.reason else 0):
        return None
    return msgspec.structs.replace(record, state="SUSPECT", floor=floor, reason="newer_epoch")


def _of_format(evidence: Evidence) -> Iterator[MayLook]:
    if evidence.read_only_format:
        yield MayLook(
            code="format_newer",
            message="The capsule was written in a newer format than this version can write.",
            hint=f"{LOOKING} Run it with the version that wrote it, or a newer one.",
        )


def _of_ledger(evidence: Evidence) -> Iterator[MayLook]:
    record = evidence.record
    if evidence.ledger_failure is not None:
        yield _unreadable(evidence.ledger_failure)
    elif record is None or record.capsule != evidence.capsule:
        yield _not_held(evidence)
    elif record.state == "NONE":
        yield _moving(record) or _not_held(evidence)
    else:
        yield from _of_record(evidence, record)


def _of_record(evidence: Evidence, record: LedgerRecord) -> Iterator[MayLook]:
    if record.state == "SUSPECT":
        yield _suspected(record)
    moving = _moving(record)
    if moving is not None:
        yield moving
    if evidence.highest_epoch > record.epoch:
        yield MayLook(
            code="newer_epoch",
            message=f"The capsule names epoch {evidence.highest_epoch}, and this machine holds it "
            f"at epoch {record.epoch}: another machine became its holder.",
            hint=f"{LOOKING} Run it on the machine that holds the newer epoch. {GONE}",
            suspect=True,
        )
    if record.folder != evidence.folder and evidence.old_folder:
        yield MayLook(
            code="copied",
            message=f"This folder is a copy: this machine runs the one in {record.folder}.",
            hint=f"{LOOKING}\nGo on with the copy, as a capsule of its own:  "
            f"`sojourn fork {quote(evidence.folder)}`.\nOr claim it in the other's place, once "
            f"that is away:  `mv {quote(record.folder)} {quote(record.folder + '.old')}`.",
        )
    tip = record.tip
    at_tip = None if tip.length == 0 else evidence.at_tip
    arrived = record.travels is not None and record.travels.arrived is not None
    lost = not evidence.begun and record.claim is None and not arrived
    if evidence.damage is None and (evidence.length < tip.length or at_tip != tip.last or lost):
        yield _rolled_back(evidence, record)


def _of_log(evidence: Evidence) -> Iterator[MayLook]:
    if evidence.damage is not None:
        yield MayLook(
            code="damaged",
            message=f"The capsule is damaged: {evidence.damage}.",
            hint=f"{LOOKING} Verify it to see the file and the line; nothing was removed. "
            "`sojourn repair` sets the damage aside and goes on. With `sojourn fork --at EVENT` a "
            "capsule of its own goes on from before the damage.",
            suspect=True,
        )
    if evidence.equivocation:
        yield MayLook(
            code="equivocation",
            message="One machine wrote two different events at the same place of its chain.",
            hint=f"{LOOKING} Verify it to see both. {BOTH}",
            suspect=True,
        )
    if evidence.divergence:
        yield MayLook(
            code="divergence",
            message="Two machines wrote at the same epoch, each without knowing of the other.",
            hint=f"{LOOKING} Verify it to see both. {BOTH}",
            suspect=True,
        )
    if evidence.network is not None:
        yield MayLook(
            code="network_folder",
            message=f"The capsule lies on a network file system ({evidence.network}), where locks "
            "and syncs promise too little to run it.",
            hint=f"{LOOKING} Move the folder to a local disk to run it.",
        )


def _unreadable(failure: str) -> MayLook:
    if failure == "ledger_unsupported":
        return MayLook(
            code="ledger_unsupported",
            message="This machine's own record of the capsule was written by a newer version.",
            hint=f"{LOOKING} Run it with the version that wrote the record, or a newer one.",
        )
    return MayLook(
        code="ledger_damaged",
        message="This machine's own record of the capsule is damaged, so it proves nothing.",
        hint=f"{LOOKING} The damaged record is kept. `sojourn adopt` goes on here, when no other "
        "machine has taken the capsule over since.",
        suspect=True,
    )


def _not_held(evidence: Evidence) -> MayLook:
    if evidence.mine:
        message = "This machine once ran the capsule and has no record now that it still holds it."
        hint = (
            f"{LOOKING} If SOJOURN_HOME named another folder then, set it again. If the state "
            "folder was lost, `sojourn adopt` goes on here."
        )
    else:
        message = "This machine does not hold the capsule: it is a copy, or of another machine."
        hint = (
            f"{LOOKING} Run it on the machine that holds it, or `sojourn fork` it to run a capsule "
            f"of its own. {GONE}"
        )
    return MayLook(code="not_held_here", message=message, hint=hint)


def _moving(record: LedgerRecord) -> MayLook | None:
    """What a move says against running; also of a copied record, which hides the state it had."""
    state, outgoing, moves = record.state, record.outgoing, record.travels
    if state == "IN_DOUBT" or (outgoing is not None and outgoing.ticket is not None):
        return MayLook(
            code="in_doubt",
            message="The capsule is frozen here: whether the machine it was being moved to has it "
            "is not known yet.",
            hint=f"{LOOKING} It settles itself once that machine answers; `sojourn move resume` "
            "asks it now, and says what a person can decide.",
        )
    if state == "FROZEN" or outgoing is not None:
        return MayLook(
            code="frozen",
            message="The capsule is frozen here: it is being moved to another machine.",
            hint=f"{LOOKING} `sojourn move status` shows the move, and `sojourn move abort` ends "
            "it: the agent then goes on here.",
        )
    if state != "HOLDER" and record.slot is not None:
        return MayLook(
            code="arriving",
            message="The capsule is arriving here from another machine, and is not held here yet.",
            hint=f"{LOOKING} `sojourn move status` shows the move. If the other machine is gone "
            "for good, `sojourn claim --forced` makes this one the holder.",
        )
    went = None if moves is None else moves.went
    if state == "RETIRED" or went is not None:
        where = "another machine" if went is None else went.address or went.target[:8]
        return MayLook(
            code="moved_away",
            message=f"The capsule was moved to {where}.",
            hint=f"{LOOKING} Run it there, or move it back from there. If that machine is gone for "
            "good, `sojourn claim --forced` makes this one the holder.",
        )
    return None


def _suspected(record: LedgerRecord) -> MayLook:
    if record.copied:
        return MayLook(
            code="ledger_copied",
            message="This machine's record of the capsule was copied or restored, so it may be "
            "older than the truth.",
            hint=f"{LOOKING} `sojourn adopt` goes on here, when no other copy of the state folder "
            "is in use. If it came from another machine that still runs, run the capsule there.",
            suspect=True,
        )
    message = f"The capsule was set aside as suspect here ({record.reason or 'no reason kept'})."
    hint = f"{LOOKING} {GONE}"
    if record.reason == "repairing":
        message, hint = "A repair was not finished.", f"{LOOKING} `sojourn repair` finishes it."
    return MayLook(code="suspect", message=message, hint=hint, suspect=True)


def _rolled_back(evidence: Evidence, record: LedgerRecord) -> MayLook:
    if evidence.length < record.tip.length:
        what = f"has {evidence.length} bytes and had {record.tip.length}"
    elif not evidence.begun:
        what = "holds nothing that this machine wrote since it became its holder"
    else:
        what = "has another event where it ended before"
    return MayLook(
        code="rolled_back",
        message=f"The capsule is older than this machine remembers: its log {what}.",
        hint=f"{LOOKING} Put the newer folder back in its place, and it runs again. If that one is "
        "lost, `sojourn claim` goes on from here, without what the newer one held.",
        suspect=True,
    )
