"""The ports of one machine, as the drivers need them; `agent.py` puts them together."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from sojourn.core.mask import Mask
from sojourn.format.filling import Filling
from sojourn.ids import BlobId, CapsuleId
from sojourn.ports import (
    Inbox,
    Ledger,
    Lock,
    MachineKey,
    Queue,
    Randomness,
    Sandbox,
    Store,
    WallClock,
)
from sojourn.ports_move import Landing, Release
from sojourn.ports_workspace import Progress, Stop, Workspace


class Maker(Protocol):
    """Makes capsules' folders, each whole or not at all (docs/protocol.md#fork)."""

    def stage(
        self,
        folder: str,
        filling: Filling,
        *,
        progress: Progress | None = None,
        stop: Stop | None = None,
    ) -> str:
        """Everything, durable, in a folder beside `folder`; its path. `progress` is of blobs.

        Raises: UsageError `exists`; FormatError `blob_missing` or `blob_altered`; FencedError
        `log_changed`; StoppedError; StorageError. What was begun is gone then.
        """
        ...

    def place(self, staged: str, folder: str) -> None:
        """Put it into its place, durable on return. Raises: UsageError `exists`; StorageError."""
        ...

    def drop(self, staged: str) -> bool:
        """Remove what will not be put into its place; False when it is not there any more.

        Raises: StorageError.
        """
        ...

    def settle(self, folder: str) -> None:
        """All that lies in the folder is on the disk. Raises: StorageError."""
        ...

    def left_behind(self, folder: str) -> tuple[str, ...]:
        """Staged folders for `folder` whose maker died."""
        ...


class Rewriter(Protocol):
    """Puts another log in the place of a capsule's log (docs/protocol.md#rewrite)."""

    def stage(self, pieces: Iterable[bytes]) -> None:
        """Write a log beside the log, durable on return. Raises: StorageError."""
        ...

    def install(self) -> None:
        """The staged log takes the place of the log, durable on return. Raises: StorageError."""
        ...

    def discard(self, blobs: Collection[BlobId]) -> int:
        """These blobs are not there any more, durable on return; how many were.

        Raises: StorageError.
        """
        ...

    def drop(self) -> None:
        """Leave nothing behind of what was staged and not installed."""
        ...


class Merger(Rewriter, Protocol):
    """Brings another capsule's blobs and the merged log into a capsule (docs/protocol.md#merge)."""

    def lacking(self, without: Collection[BlobId]) -> tuple[BlobId, ...]:
        """Blobs that the other capsule has and this one lacks, but for those."""
        ...

    def copy(self, blobs: Collection[BlobId], *, progress: Callable[[int, int], None]) -> None:
        """Copy these blobs, verified and durable on return; `progress`: how many of all.

        Raises: FormatError `blob_altered`; StorageError.
        """
        ...

    def staged(self) -> Iterator[bytes]:
        """The bytes of the staged log as they lie there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What one machine has; `store_at` opens the capsule in a folder, `boot` is the boot's id.

    `merger_at` brings into the first folder what the second one has.
    `workspace_at` takes the capsule's id, its folder and that of the workspace;
    `network_at` names the kind of network file system a folder is on, None for a local one;
    `is_other_folder` says whether the first folder still exists and is not the second;
    `mask` takes secret values out of what is about to be written.
    """

    ledger: Ledger
    lock: Lock
    inbox: Inbox
    queue: Queue
    release: Release
    landing: Landing
    key: MachineKey
    maker: Maker
    clock: WallClock
    randomness: Randomness
    boot: str
    store_at: Callable[[str], Store]
    merger_at: Callable[[str, str], Merger]
    rewriter_at: Callable[[str], Rewriter]
    sandbox_for: Callable[[CapsuleId], Sandbox]
    workspace_at: Callable[[CapsuleId, str, str], Workspace]
    network_at: Callable[[str], str | None]
    is_other_folder: Callable[[str, str], bool]
    mask: Mask
