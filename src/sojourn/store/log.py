"""The log file: whole batches at its end, and nothing else that changes it but settling.

An append costs one write and one sync, inline (docs/protocol.md#store).
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

from sojourn.errors import FencedError
from sojourn.ids import EventId
from sojourn.ports import Tip
from sojourn.store.disk import Disk, FileStat
from sojourn.store.durable import chunks, write_whole, write_whole_at

_TAIL: Final = 1 << 16
"""Bytes from the log's end in which its last line is looked for first."""

_HEADER: Final = b',"header":'


@dataclass(frozen=True, slots=True)
class _Open:
    handle: int
    stat: FileStat


class LogFile:
    """One log at one absolute path; nothing is opened before the first append.

    Every method raises OSError as the kernel says it.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._open: _Open | None = None
        self._tip: Tip | None = None

    def size(self) -> int:
        """Length in bytes, 0 where there is no log."""
        found = self._disk.stat_path(self._path)
        return 0 if found is None else found.size

    def read(self, start: int, end: int | None) -> Iterator[bytes]:
        """The bytes from `start` to `end`, in pieces of bounded size."""
        try:
            handle = self._disk.open(self._path, "read")
        except FileNotFoundError:
            return
        try:
            yield from chunks(self._disk, handle, start, end)
        finally:
            self._disk.close(handle)

    def append(self, expected: Tip, data: bytes) -> None:
        """Add whole lines, durable on return.

        Raises: FencedError `log_changed` or `stale_head`, nothing written.
        """
        fresh = self._open is None and self._opened_new()
        if self._open is None:
            self._open = self._opened("append")
        self._expect(self._open, expected)
        write_whole(self._disk, self._open.handle, data)
        self._disk.sync_data(self._open.handle)
        if fresh:
            self._disk.sync_folder(os.path.dirname(self._path))
        self._tip = Tip(length=expected.length + len(data), last=last_id(data))

    def settle(self, *, start: int, length: int, folders: tuple[str, ...]) -> None:
        """Cut to `length`, write the bytes from `start` again in place, sync them and `folders`.

        Raises: FencedError `log_changed` when the log is shorter, nothing written.
        """
        handle = self._disk.open(self._path, "update")
        try:
            self._rewrite(handle, start, length)
        finally:
            self._disk.close(handle)
        for folder in folders:
            with suppress(PermissionError):
                self._disk.sync_folder(folder)
        self._tip = None

    def close(self) -> None:
        """Let go of the file; it may be used again."""
        log, self._open = self._open, None
        if log is not None:
            self._disk.close(log.handle)

    def _opened_new(self) -> bool:
        if self._disk.stat_path(self._path) is not None:
            return False
        self._open = self._opened("create")
        return True

    def _opened(self, mode: Literal["append", "create"]) -> _Open:
        handle = self._disk.open(self._path, mode)
        return _Open(handle, self._disk.stat(handle))

    def _expect(self, log: _Open, expected: Tip) -> None:
        found = self._disk.stat_path(self._path)
        if found is None or not log.stat.same(found):
            raise fenced("log_changed", "the log that was opened is not the one in its place now")
        length = found.size
        if length != expected.length:
            raise fenced("stale_head", f"the log has {length} bytes, not {expected.length}")
        known = self._tip or Tip(length=length, last=self._read_last(length))
        if known != expected:
            raise fenced("stale_head", "the log does not end with the event that was expected")

    def _read_last(self, length: int) -> EventId | None:
        span = _TAIL
        while True:
            start = max(0, length - span)
            tail = b"".join(self.read(start, length))
            if start == 0 or tail.rfind(b"\n", 0, -1) >= 0:
                return last_id(tail)
            span *= 16

    def _rewrite(self, handle: int, start: int, length: int) -> None:
        size = self._disk.stat(handle).size
        if size < length:
            raise fenced("log_changed", f"the log has {size} bytes and had {length}")
        if size > length:
            self._disk.truncate(handle, length)
        place = start
        for chunk in chunks(self._disk, handle, start, length):
            write_whole_at(self._disk, handle, chunk, place)
            place += len(chunk)
        self._disk.sync(handle)


def fenced(code: str, what: str) -> FencedError:
    """The refusal of an append that does not fit; nothing was written."""
    return FencedError(
        f"the append was refused: {what}",
        code=code,
        state="Nothing was written. Another process, or a person, changed the capsule.",
        hint="Open the capsule again.",
    )


def last_id(data: bytes) -> EventId | None:
    """The id of the event in the last line of whole lines; None when there is none.

    A header holds no object, so the last `,"header":` of a line begins it (docs/format.md#events).
    """
    at = data.rfind(_HEADER, data.rfind(b"\n", 0, -1) + 1)
    if at < 0 or not data.endswith(b"}}\n"):
        return None
    return EventId(sha256(data[at + len(_HEADER) : -2]).hexdigest())
