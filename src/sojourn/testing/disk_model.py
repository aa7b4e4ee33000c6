"""What is in the caches of a file system, what is on its disk, and what a power cut may leave.

A file's writes reach the disk in any order until it is synced, the last of them torn; a folder's
changes of names in any selection until the folder is synced. A failed sync leaves the caches as
they are and forgets which bytes are not on the disk; lengths and names it keeps, since a file
system that cannot write its journal stops.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, combinations
from typing import Final, TypeAlias, TypeVar

SECTOR: Final = 512
"""Bytes that a disk writes whole or not at all."""

ALL_SUBSETS: Final = 5
"""Up to so many changes of names every selection is tried, above that the likely ones."""

_GOLDEN: Final = 0.6180339887
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Write:
    """`data` at `offset`."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """The file is `length` bytes long."""

    length: int


@dataclass(frozen=True, slots=True)
class Grow:
    """The file is at least `length` bytes long, zeros where nothing was written."""

    length: int


Change: TypeAlias = Write | Cut | Grow


@dataclass(eq=False, slots=True)
class File:
    """One file: what processes see, what the disk may hold without `pending`, and those changes."""

    number: int
    cache: bytes = b""
    disk: tuple[bytes, ...] = (b"",)
    pending: list[Change] = field(default_factory=list[Change])

    def change(self, change: Change) -> None:
        """A change that processes see at once."""
        self.cache = applied(self.cache, change)
        self.pending.append(change)

    def sync(self) -> None:
        """Every pending change is on the disk."""
        self.disk = _distinct(reduce(applied, self.pending, before) for before in self.disk)
        self.pending.clear()

    def fail_sync(self) -> None:
        """All, none or only lengths may be on the disk, and nobody will write the bytes again."""
        whole = [reduce(applied, self.pending, before) for before in self.disk]
        empty = [reduce(_emptied, self.pending, before) for before in self.disk]
        self.disk = _distinct((*self.disk, *whole, *empty))
        self.pending = [_length_alone(change) for change in self.pending]

    def outcomes(self) -> tuple[bytes, ...]:
        """What a power cut may leave of the bytes."""
        return _distinct(chain.from_iterable(_torn(before, self.pending) for before in self.disk))


@dataclass(eq=False, slots=True)
class Folder:
    """One folder: names that processes see, that the disk may hold, and the changes between."""

    number: int
    cache: "dict[str, Entry]" = field(default_factory=lambda: dict[str, Entry]())
    disk: "dict[str, Entry]" = field(default_factory=lambda: dict[str, Entry]())
    pending: "list[dict[str, Entry | None]]" = field(
        default_factory=lambda: list[dict[str, Entry | None]]()
    )

    def change(self, names: "dict[str, Entry | None]") -> None:
        """Names given or taken away, all of them at once."""
        self.cache = _named(self.cache, names)
        self.pending.append(names)

    def sync(self) -> None:
        """Every pending change of names is on the disk."""
        self.disk = reduce(_named, self.pending, self.disk)
        self.pending.clear()

    def fail_sync(self) -> None:
        """The changes stay pending."""

    def outcomes(self) -> "Iterator[dict[str, Entry]]":
        """What a power cut may leave of the names."""
        for chosen in _selections(self.pending):
            yield reduce(_named, chosen, self.disk)


Entry: TypeAlias = File | Folder


def applied(data: bytes, change: Change) -> bytes:
    """The bytes after one change; a gap before it is zeros."""
    match change:
        case Cut(length):
            return data[:length].ljust(length, b"\0")
        case Grow(length):
            return data.ljust(length, b"\0")
        case Write(offset, new):
            return data[:offset].ljust(offset, b"\0") + new + data[offset + len(new) :]


def _length_alone(change: Change) -> Change:
    if isinstance(change, Write):
        return Grow(change.offset + len(change.data))
    return change


def _emptied(data: bytes, change: Change) -> bytes:
    return applied(data, _length_alone(change))


def walk(folder: Folder) -> Iterator[Entry]:
    """The folder and everything below it that processes see."""
    yield folder
    for entry in folder.cache.values():
        if isinstance(entry, Folder):
            yield from walk(entry)
        else:
            yield entry


def copied(folder: Folder) -> Folder:
    """The same folder for another world; a file of two names stays one file."""
    made: dict[int, Entry] = {}
    return _copied_folder(folder, made)


def _copied(entry: Entry, made: dict[int, Entry]) -> Entry:
    if isinstance(entry, Folder):
        return _copied_folder(entry, made)
    found = made.get(entry.number)
    if found is None:
        found = made[entry.number] = File(
            entry.number, entry.cache, entry.disk, list(entry.pending)
        )
    return found


def _copied_folder(folder: Folder, made: dict[int, Entry]) -> Folder:
    found = made.get(folder.number)
    if isinstance(found, Folder):
        return found
    new = made[folder.number] = Folder(folder.number)
    new.cache = {name: _copied(entry, made) for name, entry in folder.cache.items()}
    new.disk = {name: _copied(entry, made) for name, entry in folder.disk.items()}
    new.pending = [
        {name: None if entry is None else _copied(entry, made) for name, entry in change.items()}
        for change in folder.pending
    ]
    return new


def after_power_cut(folder: Folder, *, limit: int) -> Iterator[Folder]:
    """Folders that may be found after the power failed, all of each on the disk.

    Every one of them when there are at most `limit`, else so many, spread evenly over all.
    """
    forms = _Forms()
    total = forms.count(folder)
    step = max(1, int(total * _GOLDEN)) | 1
    chosen = range(total) if total <= limit else (k * step % total for k in range(limit - 1))
    for index in dict.fromkeys((*chosen, total - 1)):
        yield forms.folder(folder, index)


class _Forms:
    """The forms in which entries may be found, numbered, and counted once."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._bytes: dict[int, tuple[bytes, ...]] = {}
        self._names: dict[int, list[tuple[int, dict[str, Entry]]]] = {}

    def count(self, entry: Entry) -> int:
        """How many forms of the entry there are."""
        found = self._counts.get(entry.number)
        if found is None:
            found = self._counts[entry.number] = self._counted(entry)
        return found

    def folder(self, folder: Folder, index: int) -> Folder:
        """The folder's form with that number."""
        self.count(folder)
        for ways, names in self._names[folder.number]:
            if index < ways:
                found = self._entries(names, index)
                return Folder(folder.number, found, dict(found))
            index -= ways
        raise IndexError(index)

    def _entries(self, names: dict[str, Entry], index: int) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for name, entry in names.items():
            index, place = divmod(index, self.count(entry))
            if isinstance(entry, Folder):
                found[name] = self.folder(entry, place)
            else:
                data = self._bytes[entry.number][place]
                found[name] = File(entry.number, data, (data,))
        return found

    def _counted(self, entry: Entry) -> int:
        if isinstance(entry, File):
            self._bytes[entry.number] = entry.outcomes()
            return len(self._bytes[entry.number])
        ways = [(self._ways(names), names) for names in entry.outcomes()]
        self._names[entry.number] = ways
        return sum(count for count, _ in ways)

    def _ways(self, names: dict[str, Entry]) -> int:
        return reduce(lambda ways, entry: ways * self.count(entry), names.values(), 1)


def _torn(before: bytes, changes: Sequence[Change]) -> Iterator[bytes]:
    """The bytes with any first part of the changes, the next one torn or out of its turn."""
    done = before
    yield done
    for change in changes:
        if isinstance(change, Write):
            for part in _parts(change):
                yield applied(done, part)
        done = applied(done, change)
        yield done
    for change in changes:
        yield applied(before, change)


def _parts(write: Write) -> Iterator[Write]:
    """A write of which only some bytes arrived, or only the length of the file."""
    size = len(write.data)
    for stop in sorted({1, size // 2, size - 1, *range(SECTOR, size, SECTOR)}):
        if 0 < stop < size:
            yield Write(write.offset, write.data[:stop])
    yield Write(write.offset, bytes(size))
    half = size // 2
    yield Write(write.offset, bytes(half) + write.data[half:])
    yield Write(write.offset, write.data[:half] + bytes(size - half))


def _named(names: dict[str, Entry], change: dict[str, Entry | None]) -> dict[str, Entry]:
    merged = {**names, **change}
    return {name: entry for name, entry in merged.items() if entry is not None}


def _selections(items: Sequence[_Item]) -> Iterator[tuple[_Item, ...]]:
    if len(items) <= ALL_SUBSETS:
        for size in range(len(items) + 1):
            yield from combinations(items, size)
        return
    for stop in range(len(items) + 1):
        yield tuple(items[:stop])
    for place, item in enumerate(items):
        yield (item,)
        yield (*items[:place], *items[place + 1 :])


def _distinct(items: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(items))
