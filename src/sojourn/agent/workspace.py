"""The live workspace of a held capsule: snapshot it, and put an earlier snapshot back."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sojourn.agent.aftermath import Target, of_restore, telling
from sojourn.agent.look import events_in
from sojourn.agent.places import Place, check_apart
from sojourn.drive.hold import Hold
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.snapshots import (
    Keeper,
    PutBackSnapshot,
    TakenSnapshot,
    absent,
    refuse_conflicts,
)
from sojourn.format.gone import Gone
from sojourn.format.snapshot import EMPTY, Snapshot
from sojourn.ids import CapsuleId, EventId
from sojourn.ports_workspace import Plan, Progress, Stop, Workspace
from sojourn.store.arriving import FolderLanding
from sojourn.store.disk import Disk
from sojourn.store.state import StateFolder


@dataclass(frozen=True, slots=True)
class LiveWorkspace:
    """Snapshots of the folder that the agent works in, one after the other."""

    hold: Hold
    keeper: Keeper

    async def snapshot(
        self, *, progress: Progress | None = None, stop: Stop | None = None
    ) -> TakenSnapshot:
        """Snapshot it, durable on return; nothing is written when nothing changed.

        Raises: NotFoundError `no_workspace`, StorageError, LimitError, StoppedError.
        """
        taken = await self.keeper.take(progress=progress, stop=stop)
        await self.hold.refresh()
        return taken

    async def restore(
        self,
        snapshot: EventId | None,
        *,
        progress: Progress | None = None,
        stop: Stop | None = None,
    ) -> PutBackSnapshot:
        """Put it back to what the event `snapshot` says, None to an empty folder.

        What is there now is snapshotted first; files that no snapshot holds are never touched.

        Raises: NotFoundError `no_snapshot`; UsageError `restore_conflict`; FormatError;
        StoppedError; StorageError.
        """
        events = events_in(self.hold.store)
        put = await self.keeper.put_back(snapshot, events=events, progress=progress, stop=stop)
        await self.hold.refresh()
        return put

    def list_at(self, snapshot: EventId | None) -> Snapshot:
        """The list of a snapshot event. Raises: NotFoundError `no_snapshot`; FormatError."""
        return self.keeper.list_at(snapshot)


def landing_in(state: StateFolder, disk: Disk) -> FolderLanding:
    """Where what other machines send is kept."""
    return FolderLanding(
        arriving=state.arriving,
        cache=state.cache,
        capsules=state.capsules,
        workspaces=state.workspaces,
        disk=disk,
    )


def workspace_in(
    state: StateFolder, capsule: CapsuleId, folder: str, workspace: str, *, disk: Disk
) -> Workspace:
    """The folder `workspace`, whose contents go to the capsule in `folder`.

    What readings find is kept for a capsule with an id.
    """
    from sojourn.store.workspace import FolderWorkspace

    stats = state.stats(capsule) if capsule else ""
    return FolderWorkspace(path=workspace, capsule=folder, stats=stats, disk=disk)


def live_workspace(ports: Ports, place: Place, hold: Hold, observer: Observer) -> LiveWorkspace:
    """The workspace that this machine's ledger names for a held capsule."""
    workspace = ports.workspace_at(place.capsule, place.folder, hold.record.workspace)
    return LiveWorkspace(hold, Keeper(hold=hold, workspace=workspace, observer=observer))


def extract(
    ports: Ports,
    place: Place,
    listed: Snapshot,
    folder: str,
    *,
    gone: Gone,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> Plan:
    """Put a list into another folder, made first when it is not there; the log is not touched.

    What the log says is `gone` is left out, and the plan names it. Raises: UsageError
    `restore_conflict` or `folders_nested`; FormatError; StoppedError; StorageError.
    """
    folder = os.path.realpath(folder)
    check_apart(place.folder, folder)
    target = Target(folder)
    missing = absent(ports.store_at(place.folder), listed, gone)
    with telling(lambda: of_restore(target)), _gone_if_empty(folder, target):
        os.makedirs(folder, exist_ok=True)
        workspace = ports.workspace_at(CapsuleId(""), place.folder, folder)
        plan = workspace.plan(EMPTY, listed, gone=missing)
        refuse_conflicts(plan)
        workspace.put_back(plan, progress=progress, stop=stop)
    return plan


@contextmanager
def _gone_if_empty(folder: str, target: Target) -> Generator[None]:
    """A folder that was made for nothing is removed again."""
    try:
        yield
    except BaseException:
        if not target.was_there:
            with suppress(OSError):
                os.rmdir(folder)
        raise
