"""A disk on which a process dies or fails at a chosen operation, and a clock that never waits."""

import asyncio
import os

from sojourn.store.disk import OpenMode, OsDisk
from sojourn.store.system import OsClock
from sojourn.testing.disk import Died


class MortalDisk(OsDisk):
    """The real disk; at the operation number `at` (from 1) its process dies, or it says `error`."""

    def __init__(self, at: int = 0, error: int | None = None) -> None:
        self.at = at
        self.error = error
        self.done: list[str] = []
        self.dead = False

    def _step(self, what: str, path: str = "") -> None:
        if self.dead:
            raise Died("a process that is gone does nothing more")
        self.done.append(f"{what} {os.path.basename(path)}")
        if len(self.done) == self.at:
            if self.error is not None:
                raise OSError(self.error, os.strerror(self.error), path)
            self.dead = True
            raise Died(self.done[-1])

    def open(self, path: str, mode: OpenMode) -> int:
        if mode == "create" or self.dead:
            self._step("create", path)
        return super().open(path, mode)

    def write(self, handle: int, data: bytes) -> int:
        self._step("write")
        return super().write(handle, data)

    def write_at(self, handle: int, data: bytes, offset: int) -> int:
        self._step("write")
        return super().write_at(handle, data, offset)

    def truncate(self, handle: int, length: int) -> None:
        self._step("truncate")
        super().truncate(handle, length)

    def sync(self, handle: int) -> None:
        """Only counted: what is tried here is the death of a process, not a power cut."""
        self._step("sync", str(handle))

    def sync_data(self, handle: int) -> None:
        self._step("sync", str(handle))

    def sync_folder(self, path: str) -> None:
        self._step("sync folder", path)

    def sync_all(self, path: str) -> bool:
        self._step("sync all", path)
        return True

    def rename(self, old: str, new: str) -> None:
        self._step("rename", new)
        super().rename(old, new)

    def link(self, old: str, new: str) -> None:
        self._step("link", new)
        super().link(old, new)

    def unlink(self, path: str) -> None:
        self._step("unlink", path)
        super().unlink(path)

    def make_folder(self, path: str) -> None:
        self._step("make folder", path)
        super().make_folder(path)

    def remove_folder(self, path: str) -> None:
        self._step("remove folder", path)
        super().remove_folder(path)


class FastClock(OsClock):
    """Waiting takes no time here."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.passed

    async def wait(self, seconds: float) -> None:
        self.passed += seconds
        await asyncio.sleep(0)
