"""Disks that make one mistake of those that the write discipline is there to prevent."""

from sojourn.format import layout
from sojourn.testing.disk import RecordingDisk


class NoFileSync(RecordingDisk):
    """Files are never synced."""

    def sync(self, handle: int) -> None:
        del handle


class NoFolderSync(RecordingDisk):
    """Folders are never synced."""

    def sync_folder(self, path: str) -> None:
        del path


class NoSyncOfAll(RecordingDisk):
    """The sync of a whole file system says yes and does nothing."""

    def sync_all(self, path: str) -> bool:
        del path
        return True


class SyncAfterRename(RecordingDisk):
    """A half-made file is synced after it has its name."""

    late: int | None = None

    def sync(self, handle: int) -> None:
        if self.late is None and layout.is_temporary(self._handles[handle].path):
            self.late = handle
        else:
            super().sync(handle)

    def close(self, handle: int) -> None:
        if handle != self.late:
            super().close(handle)

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        if self.late is not None:
            super().sync(self.late)
            handle, self.late = self.late, None
            self.close(handle)


class InPlace(RecordingDisk):
    """A file that is there is written over, not replaced."""

    def rename(self, old: str, new: str) -> None:
        found = self.stat_path(new)
        if found is None or found.kind != "file":
            super().rename(old, new)
            return
        data = self.file(old).cache
        handle = self.open(new, "update")
        self.truncate(handle, 0)
        self.write_at(handle, data, 0)
        self.sync(handle)
        self.close(handle)
        self.unlink(old)


class OnlySyncs(RecordingDisk):
    """Recovery syncs what it read, and does not write it again."""

    def write_at(self, handle: int, data: bytes, offset: int) -> int:
        del handle, offset
        return len(data)


class FailedSyncIgnored(RecordingDisk):
    """A sync that failed is taken for one that worked."""

    def sync(self, handle: int) -> None:
        try:
            super().sync(handle)
        except OSError:
            return


class HalfWritten(RecordingDisk):
    """Whoever creates a file writes it under its real name."""

    def link(self, old: str, new: str) -> None:
        handle = self.open(new, "create")
        self.write(handle, self.file(old).cache)
        self.sync(handle)
        self.close(handle)
