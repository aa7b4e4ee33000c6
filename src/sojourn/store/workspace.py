"""A real folder as a workspace: snapshots are taken and put back (docs/format.md#snapshots)."""

import os
import stat
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from sojourn.errors import NotFoundError
from sojourn.format import snapshot
from sojourn.format.capsule_kinds import LeftOut
from sojourn.format.snapshot import Entry, Snapshot
from sojourn.ids import BlobId
from sojourn.ports_workspace import NOTHING, Plan, Progress, Stop, Survey, Taken
from sojourn.store import workspace_known as known
from sojourn.store.blob_batch import BlobBatch
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import reading
from sojourn.store.workspace_folders import Reach
from sojourn.store.workspace_known import (
    EMPTY_FOLDER,
    Known,
    Row,
    Rows,
    with_rows,
    without_rows,
)
from sojourn.store.workspace_plan import Planner
from sojourn.store.workspace_put_back import PutBack
from sojourn.store.workspace_read import Contents
from sojourn.store.workspace_walk import Walk, Walker


@dataclass(slots=True)
class FolderWorkspace:
    """The `Workspace` port for the folder `path`, whose contents go to the capsule in `capsule`.

    All paths are absolute; `stats` is the file that keeps what earlier readings found, empty for
    none. `now` gives nanoseconds, as the kernel stamps files with.
    """

    path: str
    capsule: str
    stats: str
    disk: Disk = field(default_factory=OsDisk)
    now: Callable[[], int] = time.time_ns
    _known: Known | None = None
    _walk: Walk | None = None
    _next: Known | None = None
    _entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    _read: dict[str, Entry] = field(default_factory=dict[str, Entry])

    def survey(self) -> Survey:
        """Walk once; nothing is read but names, times and ignore rules.

        Raises: NotFoundError `no_workspace`; StorageError when the folder cannot be read.
        """
        rows = self._load().rows
        with reading(self.path):
            walk = self._walk = Walker(rows).walk(self.path)
        found = sum(map(len, walk.same.values()))
        same = not walk.unread and not walk.empty and found == self._load().count()
        files = [one for one in walk.unread if stat.S_ISREG(one.found.st_mode)]
        return Survey(
            files=len(walk.unread),
            size=sum(one.found.st_size for one in files),
            same_as=(self._load().result or None) if same else None,
        )

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
        before = self._load()
        walk = self._walk or Walk()
        batch = BlobBatch(self.capsule, self.disk, without=without)
        try:
            with reading(self.path), Reach(self.path) as reach:
                contents = Contents(reach, batch, progress=progress, stop=stop, now=self.now)
                contents.read(walk.unread)
            fresh = batch.known
            batch.commit()
        except BaseException:
            batch.drop()
            raise
        new = contents.rows | dict.fromkeys(walk.empty, EMPTY_FOLDER)
        rows = with_rows(_still(before.rows, walk.same), new)
        return self._taken(rows, new, walk.left_out + contents.left_out, fresh)

    def remember(self) -> None:
        """Keep what the last reading found, so that the next one reads less."""
        if self._next is not None:
            self._known, self._next = self._next, None
            self._entries, self._read = self._read, {}
            known.save(self.stats, self._known)

    def forget(self) -> None:
        """Know nothing of earlier readings: the next one reads every file."""
        before = self._load()
        self._known = Known(device=before.device, inode=before.inode, result=BlobId(""), rows={})
        self._entries = {}

    def plan(
        self, before: Snapshot, wanted: Snapshot, *, gone: Mapping[BlobId, str] = NOTHING
    ) -> Plan:
        """What it takes to make the folder `wanted`, where `before` is what is ours in it.

        What would have to be made of a content in `gone` is refused with the reason given there.
        Raises: FormatError when a link's target cannot be read from its blob; StorageError.
        """
        with reading(self.path), Reach(self.path) as reach:
            rows = self._load().rows
            return Planner(reach, rows, self.capsule, self.disk, gone=gone).plan(before, wanted)

    def put_back(
        self, plan: Plan, *, progress: Progress | None = None, stop: Stop | None = None
    ) -> None:
        """Carry out a plan without conflicts; durable on return.

        Every new file is whole and checked before the first change. Raises: FormatError
        `blob_missing` or `blob_altered`, StoppedError, nothing changed; StorageError.
        """
        with Reach(self.path) as reach:
            work = PutBack(reach, self.capsule, self.disk, progress=progress, stop=stop)
            made = work.carry_out(plan, self.path, now=self.now, rows=bool(self.stats))
        before = self._load()
        rows = without_rows(before.rows, (entry.path for entry in plan.remove))
        self._known = Known(
            device=before.device,
            inode=before.inode,
            result=BlobId(""),
            rows=with_rows(rows, made),
        )
        self._entries = {}
        known.save(self.stats, self._known)

    def _load(self) -> Known:
        if self._known is None:
            try:
                found = os.stat(self.path)
            except FileNotFoundError:
                found = None
            if found is None or not stat.S_ISDIR(found.st_mode):
                raise NotFoundError(
                    f"the workspace {self.path} is not there",
                    code="no_workspace",
                    state="Nothing was changed.",
                    hint="Put the folder back.",
                )
            self._known = known.load(self.stats, found.st_dev, found.st_ino)
        return self._known

    def _taken(
        self, rows: Rows, new: Mapping[str, Row], left_out: list[LeftOut], fresh: frozenset[BlobId]
    ) -> Taken:
        before = self._load()
        made = self._read = self._listed(rows, new)
        listed = Snapshot(entries=tuple(made.values()))
        data = snapshot.encode(listed)
        result = snapshot.digest(data)
        self._next = Known(device=before.device, inode=before.inode, result=result, rows=rows)
        return Taken(
            listed=listed,
            data=data,
            result=result,
            left_out=tuple(sorted(left_out, key=lambda one: one.path.encode())),
            fresh=fresh,
        )

    def _listed(self, rows: Rows, new: Mapping[str, Row]) -> dict[str, Entry]:
        """The entries of rows in the order of their paths; of the last reading what is not new."""
        entries = self._entries
        if len(entries) == sum(map(len, rows.values())) and entries.keys() >= new.keys():
            return entries | {path: entry_of(path, row) for path, row in new.items()}
        every = {
            folder + name: row for folder, names in rows.items() for name, row in names.items()
        }
        # The order of text by its characters is that of its UTF-8 by its bytes.
        return {
            path: (None if path in new else entries.get(path)) or entry_of(path, row)
            for path, row in sorted(every.items(), key=itemgetter(0))
        }


def entry_of(path: str, row: Row) -> Entry:
    """The entry of a row."""
    if stat.S_ISDIR(row.mode):
        return Entry(path=path, type="directory")
    if stat.S_ISLNK(row.mode):
        kind = "symlink"
    else:
        kind = "executable" if row.mode & stat.S_IXUSR else "file"
    return Entry(path=path, sha256=BlobId(row.sha256), size=row.size, type=kind)


def _still(rows: Rows, same: Mapping[str, list[str]]) -> Rows:
    """The rows of the names that are the same; whole folders are taken as they are."""
    still: Rows = {}
    for folder, names in same.items():
        known = rows[folder]
        still[folder] = known if len(names) == len(known) else {name: known[name] for name in names}
    return still
