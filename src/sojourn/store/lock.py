"""The lock of a capsule on this host: the kernel's, so that it goes when its process dies.

One file a capsule, never removed. Its content names the holder and is emptied on a good close, so
what is found in a free lock was left by a process that died (docs/protocol.md#state-folder).
"""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from sojourn.errors import FencedError, FormatError, HeldElsewhereError, UsageError
from sojourn.format.canon import encode, load
from sojourn.ids import CapsuleId
from sojourn.ports import HeldBy, WallClock
from sojourn.store.disk import Disk, FileStat, OsDisk
from sojourn.store.durable import Durable, durable_write, reading, write_whole_at
from sojourn.store.system import boot_id, process_start

CONTENT: Final = 512
"""Bytes of a lock's content, padded with spaces: one sector, written as one."""

COMMAND: Final = 120
"""Characters of the command that are kept."""

TRIES: Final = 50
SURE: Final = 5
PAUSE: Final = 0.002
"""Seconds between tries: a lock that is taken may be so by a question only, for a moment.

After `SURE` tries a living process that signed it is believed to hold it.
"""


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """`unsettled` is the boot of the first of those who died here since the log was settled."""

    boot: str
    unsettled: str | None
    command: str
    pid: int
    since: str
    start: str


_UNKNOWN: Final = _Content(boot="", unsettled=None, command="", pid=0, since="", start="")
"""Of whoever left a content that cannot be read."""


@dataclass(frozen=True, slots=True)
class _Held:
    handle: int
    stat: FileStat
    content: _Content


class FileLock:
    """The `Lock` port in a folder; `command` is what others are told of this process.

    `boot` is that of the running host; it is asked for when not given.
    """

    def __init__(
        self,
        folder: str,
        *,
        command: str,
        clock: WallClock,
        disk: Disk | None = None,
        boot: str | None = None,
    ) -> None:
        self._folder = folder
        self._boot = boot_id() if boot is None else boot
        self._command = command
        self._clock = clock
        self._disk = disk or OsDisk()
        self._files = Durable(self._disk)
        self._held: dict[CapsuleId, _Held] = {}

    @contextmanager
    def acquire(self, capsule: CapsuleId) -> Generator[HeldBy | None]:
        """Hold it; the value entered is the last holder that did not let go in good order.

        Its `boot` is that of the first of several who died one after the other before the log was
        settled: it tells whether the last append may be torn (docs/format.md#torn-tail), and so
        it is durable here before anything is done. Raises: HeldElsewhereError with pid and since;
        UsageError `network_folder`; StorageError.
        """
        path = self._path(capsule)
        self._files.make_folder(self._folder)
        self._check_local()
        with durable_write(path):
            handle = self._disk.open(path, "lock")
        try:
            with durable_write(path):
                self._take(handle)
                left = _left(self._content(handle))
                content = self._signature(None if left is None else left.boot)
                self._write(handle, content)
                self._disk.sync(handle)
                self._disk.sync_folder(self._folder)
            self._held[capsule] = _Held(handle, self._disk.stat(handle), content)
            try:
                yield left
                self._clear(handle)
            finally:
                del self._held[capsule]
        finally:
            with suppress(OSError):
                self._disk.unlock(handle)
            self._disk.close(handle)

    def holder(self, capsule: CapsuleId) -> HeldBy | None:
        """Who holds it right now, None when free; changes nothing.

        Raises: StorageError.
        """
        content, free = self._seen(capsule)
        return None if free else _held_by(content or _UNKNOWN)

    def left(self, capsule: CapsuleId) -> HeldBy | None:
        """What `acquire` would enter, for who only looks; None when it is held.

        Raises: StorageError.
        """
        content, free = self._seen(capsule)
        return _left(content) if free else None

    def check(self, capsule: CapsuleId) -> None:
        """Nothing, while this object's hold is still the one that others would meet.

        Raises: FencedError `lock_lost` when the lock's file was removed or replaced, or when this
        object does not hold it.
        """
        held = self._held.get(capsule)
        if held is None or not held.stat.same(self._disk.stat_path(self._path(capsule))):
            raise FencedError(
                "the lock of this capsule is no longer held: its file was removed or replaced",
                code="lock_lost",
                state="Nothing was written.",
                hint="Open the capsule again.",
            )

    def settled(self, capsule: CapsuleId) -> None:
        """The log is settled: whoever left it unsettled before does not matter any more."""
        held = self._held.get(capsule)
        if held is None or held.content.unsettled is None:
            return
        content = msgspec.structs.replace(held.content, unsettled=None)
        with durable_write(self._path(capsule)):
            self._write(held.handle, content)
        self._held[capsule] = _Held(held.handle, held.stat, content)

    def _seen(self, capsule: CapsuleId) -> tuple[_Content | None, bool]:
        """The content, and whether the lock is free."""
        path = self._path(capsule)
        with reading(path):
            try:
                handle = self._disk.open(path, "read")
            except FileNotFoundError:
                return None, True
            try:
                free = self._disk.lock(handle, shared=True)
                return self._content(handle), free
            finally:
                self._disk.unlock(handle)
                self._disk.close(handle)

    def _take(self, handle: int) -> None:
        for count in range(TRIES):
            if self._disk.lock(handle):
                return
            held = self._content(handle)
            if count >= SURE and held is not None and self._is_alive(held):
                raise _held_elsewhere(_held_by(held))
            time.sleep(PAUSE)
        raise _held_elsewhere(_held_by(self._content(handle) or _UNKNOWN))

    def _is_alive(self, held: _Content) -> bool:
        return held.pid > 0 and held.boot == self._boot and process_start(held.pid) == held.start

    def _signature(self, unsettled: str | None) -> _Content:
        pid = os.getpid()
        return _Content(
            boot=self._boot,
            unsettled=unsettled,
            command=self._command[:COMMAND].encode("ascii", "replace").decode(),
            pid=pid,
            since=self._clock.now(),
            start=process_start(pid),
        )

    def _write(self, handle: int, content: _Content) -> None:
        """Never empty in between: an empty content says that all is well."""
        write_whole_at(self._disk, handle, encode(content).ljust(CONTENT - 1) + b"\n", 0)

    def _clear(self, handle: int) -> None:
        """Not synced: if it is lost, the next holder only looks more closely."""
        with suppress(OSError):
            self._disk.truncate(handle, 0)

    def _content(self, handle: int) -> _Content | None:
        """What a holder wrote; None when it is empty, `_UNKNOWN` when it cannot be read."""
        data = self._disk.read_at(handle, CONTENT + 1, 0)
        if not data:
            return None
        try:
            return msgspec.convert(load(data, what="lock", limit=CONTENT), _Content)
        except (FormatError, msgspec.ValidationError):
            return _UNKNOWN

    def _check_local(self) -> None:
        kind = self._disk.network(self._folder)
        if kind is not None:
            raise UsageError(
                f"the state folder is on a network file system ({kind}), where locks promise "
                "too little to run a capsule",
                code="network_folder",
                state="Nothing was changed.",
                hint="Let SOJOURN_HOME name a folder on a local disk.",
                exit_code=6,
            )

    def _path(self, capsule: CapsuleId) -> str:
        return f"{self._folder}/{capsule}"


def _held_by(content: _Content) -> HeldBy:
    return HeldBy(
        pid=content.pid,
        since=content.since,
        command=content.command,
        boot=content.boot,
        start=content.start,
    )


def _left(content: _Content | None) -> HeldBy | None:
    """The last holder, with the boot since which the log was not settled."""
    if content is None:
        return None
    boot = content.boot if content.unsettled is None else content.unsettled
    return replace(_held_by(content), boot=boot)


def _held_elsewhere(held: HeldBy) -> HeldElsewhereError:
    who = f"pid {held.pid} since {held.since}" if held.pid else "another process"
    return HeldElsewhereError(
        f"the capsule is held by {who}" + (f" ({held.command})" if held.command else ""),
        state="Nothing was changed.",
        since=held.since if held.pid else "",
        hint="Watch it with `sojourn log -f`, or give it a message with `sojourn send`.",
    )
