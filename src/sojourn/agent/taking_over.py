"""Taking a capsule over: claims, and adopting after a state folder was lost or copied.

docs/protocol.md#claim and #adopt are the specification.
"""

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from sojourn.agent.machine import Machine
from sojourn.agent.places import (
    Place,
    check_apart,
    is_capsule,
    known_places,
    place_at,
)
from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.tenure import MayLook
from sojourn.drive.claim import ClaimedCapsule, Risks, Workplace, claim_capsule, risks_of
from sojourn.drive.observe import Observer, Unwatched
from sojourn.drive.opening import refusal
from sojourn.errors import DecisionError, UsageError
from sojourn.ports_workspace import Progress


async def claim(
    machine: Machine,
    place: Place,
    *,
    agreed: Callable[[Risks], bool],
    how: Literal["adopt", "claim"] = "claim",
    forced: bool = False,
    reason: str = "",
    workspace: str | None = None,
    observer: Observer | None = None,
    progress: Progress | None = None,
) -> ClaimedCapsule | None:
    """Make this machine the holder of a capsule that it may not run; None when not `agreed`.

    The workspace is the one given, else the one known here, else a new one. It is filled from the
    last snapshot unless it is the one where the agent worked here; what lies in it stays.

    Raises: HeldElsewhereError, FormatError, LimitError, StorageError, UsageError `folders_nested`,
    `restore_conflict`, `workspace_fixed`.
    """
    chosen = None if workspace is None else os.path.realpath(workspace)
    if chosen is not None:
        _check_movable(machine, place, chosen)

    def workplace(record: LedgerRecord | None) -> Workplace:
        return _workplace(machine, place, record, chosen)

    return await claim_capsule(
        machine.ports,
        place.folder,
        how=how,
        forced=forced,
        reason=reason,
        agreed=agreed,
        workplace=workplace,
        observer=observer or Unwatched(),
        progress=progress,
    )


def _check_movable(machine: Machine, place: Place, chosen: str) -> None:
    """Refuse another workspace for a capsule that is held here: there is nothing to claim.

    Raises: UsageError `workspace_fixed`.
    """
    admission = machine.look(place).admission
    if isinstance(admission, MayLook) or admission.record.workspace == chosen:
        return
    works = admission.record.workspace
    known = machine.reference(place)
    raise UsageError(
        f"{place.name} is held here already and works in {works}; a claim does not move that",
        code="workspace_fixed",
        state="Nothing was changed.",
        hint="Leave --workspace out, or let a capsule of its own work there:  "
        f"sojourn fork {known} --workspace {shlex.quote(chosen)}",
    )


def _workplace(
    machine: Machine, place: Place, record: LedgerRecord | None, chosen: str | None
) -> Workplace:
    """Where a claimed capsule works. Raises: UsageError `folders_nested`."""
    known = None if record is None else record.workspace
    default = machine.state.workspace(place.capsule)
    folder = chosen or (known if known is not None and os.path.isdir(known) else default)
    check_apart(place.folder, folder)
    # A folder of the default place is this capsule's alone: it worked there, whatever the record.
    at_home = folder == os.path.realpath(default) and not _is_empty(folder)
    own = at_home or (folder == known and os.path.isdir(folder))
    half_filled = record is not None and record.claim is not None and record.claim.restore
    return Workplace(folder=folder, restore=half_filled or not own)


def _is_empty(folder: str) -> bool:
    """Whether nothing is there yet."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True


LOST: Final = frozenset(("ledger_damaged", "ledger_copied", "not_held_here"))
"""Reasons that a lost, restored or copied state folder gives."""

ADOPTABLE: Final = LOST | {"rolled_back"}
"""Reasons that `adopt` takes away; where there are others somebody else may hold the capsule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A capsule that does not run here since this machine's own memory of it is lost or old."""

    place: Place
    risks: Risks

    @property
    def obstacle(self) -> MayLook | None:
        """Why `adopt` will not take it; None when it will."""
        return next((one for one in self.risks.reasons if one.code not in ADOPTABLE), None)


def key_is_copied(machine: Machine) -> bool:
    """Whether the machine's key came from another host with its state folder."""
    try:
        machine.ports.key.machine()
    except DecisionError:
        return True
    return False


def renew_key(machine: Machine) -> None:
    """Become a machine of its own when the key came from another host; the old key is kept."""
    if key_is_copied(machine):
        machine.ports.key.renew()


def orphans(machine: Machine) -> tuple[Orphan, ...]:
    """Every capsule that `adopt` is for: of the ledger, and of the default folder."""
    folders = {place.folder for place in known_places(machine.ports)}
    with suppress(FileNotFoundError), os.scandir(machine.state.capsules) as entries:
        folders |= {os.path.realpath(entry.path) for entry in entries if is_capsule(entry.path)}
    found = (orphan_at(machine, place_at(machine.ports, folder)) for folder in sorted(folders))
    return tuple(orphan for orphan in found if orphan is not None)


def orphan_at(machine: Machine, place: Place) -> Orphan | None:
    """The capsule as `adopt` sees it; None when nothing shows that it was this machine's.

    One whose claim was not finished is one, too, without a reason against it.
    """
    evidence = machine.look(place).evidence
    risks = risks_of(evidence)
    unfinished = evidence.record is not None and evidence.record.claim is not None
    lost = unfinished or any(one.code in LOST for one in risks.reasons)
    below = os.path.dirname(place.folder) == os.path.realpath(machine.state.capsules)
    ours = evidence.mine or evidence.record is not None or below
    return Orphan(place=place, risks=risks) if lost and ours else None


async def adopt(
    machine: Machine,
    place: Place,
    *,
    forced: bool = False,
    workspace: str | None = None,
    observer: Observer | None = None,
) -> ClaimedCapsule:
    """Go on with a capsule of which this machine's own record was lost, restored or copied.

    Raises: HeldElsewhereError when it is not one for `adopt`, or is held; as `claim`.
    """
    renew_key(machine)
    found = orphan_at(machine, place)
    look = machine.look(place)
    if found is None and isinstance(look.admission, MayLook):
        raise UsageError(
            "nothing shows that this machine ever held this capsule, so it is not its to adopt",
            code="not_ours",
            state=f"Nothing was changed. It does not run here: {look.admission.message}",
            hint="`sojourn claim` takes it over; `sojourn fork` makes a capsule of its own.",
            exit_code=5,
        )
    if found is not None and found.obstacle is not None:
        raise refusal(found.obstacle)
    taken = await claim(
        machine,
        place,
        agreed=lambda _: True,
        how="adopt",
        forced=forced,
        workspace=workspace,
        observer=observer,
    )
    if taken is None:
        raise UsageError("nobody agreed", code="not_agreed")
    return taken
