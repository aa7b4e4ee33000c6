"""The port of a workspace: a real folder that snapshots are taken of and put back into.

docs/format.md#snapshots is the specification; `store/workspace.py` answers.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from sojourn.format.capsule_kinds import LeftOut
from sojourn.format.snapshot import Entry, Snapshot
from sojourn.ids import BlobId

NOTHING: Final[Mapping[BlobId, str]] = {}
"""No content is gone."""

Progress = Callable[[int, int], None]
"""Told how many files and bytes were done since it was last told; from any thread."""

Stop = Callable[[], bool]
"""Asked now and then whether to stop; from any thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What one walk found, names and times only.

    `files` and `size` (bytes) must be read. `same_as` is the digest of the list that the workspace
    still is, None when something changed since.
    """

    files: int
    size: int
    same_as: BlobId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A workspace as it was read: its list, the list's bytes and their digest.

    `fresh` are the blobs that are known to be durable, because this reading made them so.
    """

    listed: Snapshot
    data: bytes
    result: BlobId
    left_out: tuple[LeftOut, ...]
    fresh: frozenset[BlobId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Something that is not ours lies where a file belongs; or something ours has changed."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What putting a list back would do, in the order of paths; `links` are made last.

    `refused` are not made: links that would lead out of the workspace or in a circle, and files
    whose contents are gone. `folders` are all that there are afterwards.
    """

    make: tuple[Entry, ...]
    links: tuple[Entry, ...]
    remove: tuple[Entry, ...]
    refused: tuple[Conflict, ...]
    conflicts: tuple[Conflict, ...]
    folders: frozenset[str]

    @property
    def changes(self) -> bool:
        """Whether anything would be done."""
        return bool(self.make or self.links or self.remove)


class Workspace(Protocol):
    """One folder; contents are kept as blobs of the capsule that it was made for."""

    @property
    def path(self) -> str: ...

    def survey(self) -> Survey:
        """Walk once; nothing is read but names, times and ignore rules.

        Raises: NotFoundError `no_workspace`; StorageError when the folder cannot be read.
        """
        ...

    def read(
        self,
        *,
        without: Collection[BlobId] = (),
        progress: Progress | None = None,
        stop: Stop | None = None,
    ) -> Taken:
        """Read what the last survey found changed; contents are durable blobs on return.

        Those of `without` are named in the list and never written.
        Raises: StorageError; StoppedError when `stop` said so, nothing kept.
        """
        ...

    def remember(self) -> None:
        """Keep what the last reading found, so that the next one reads less."""
        ...

    def forget(self) -> None:
        """Know nothing of earlier readings: the next one reads every file."""
        ...

    def plan(
        self, before: Snapshot, wanted: Snapshot, *, gone: Mapping[BlobId, str] = NOTHING
    ) -> Plan:
        """What it takes to make the folder `wanted`, where `before` is what is ours in it.

        What would have to be made of a content in `gone` is refused with the reason given there.
        Raises: FormatError when a link's target cannot be read from its blob; StorageError.
        """
        ...

    def put_back(
        self, plan: Plan, *, progress: Progress | None = None, stop: Stop | None = None
    ) -> None:
        """Carry out a plan without conflicts; durable on return.

        Every new file is whole and checked before the first change. Raises: FormatError
        `blob_missing` or `blob_altered`, StoppedError, nothing changed; StorageError.
        """
        ...
