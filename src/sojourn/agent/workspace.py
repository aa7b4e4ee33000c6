"""The live workspace of a held capsule: snapshot it, and put an earlier snapshot back."""

from dataclasses import dataclass

from sojourn.agent.look import Tail
from sojourn.agent.places import Place
from sojourn.drive.hold import Hold
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.snapshots import Keeper, PutBackSnapshot, TakenSnapshot
from sojourn.format.snapshot import Snapshot
from sojourn.ids import EventId
from sojourn.ports_workspace import Progress, Stop


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
        events = Tail(self.hold.store).all()
        put = await self.keeper.put_back(snapshot, events=events, progress=progress, stop=stop)
        await self.hold.refresh()
        return put

    def list_at(self, snapshot: EventId | None) -> Snapshot:
        """The list of a snapshot event. Raises: NotFoundError `no_snapshot`; FormatError."""
        return self.keeper.list_at(snapshot)


def live_workspace(ports: Ports, place: Place, hold: Hold, observer: Observer) -> LiveWorkspace:
    """The workspace that this machine's ledger names for a held capsule."""
    workspace = ports.workspace_at(place.capsule, place.folder, hold.record.workspace)
    return LiveWorkspace(hold, Keeper(hold=hold, workspace=workspace, observer=observer))
