"""What every store of capsules must do, as rules to run on it.

    @pytest.mark.parametrize("rule", STORE_RULES)
    def test_my_store_keeps_the_rules(rule):
        asyncio.run(rule(lambda: my_store_of_the_capsule_under_test))

Each rule gets a function that opens the store of one capsule anew: a capsule of its own, whose log
is empty. Every rule raises AssertionError with what is wrong.
"""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final, TypeAlias

from sojourn.errors import FencedError, FormatError, SojournError
from sojourn.ids import BlobId, Epoch, EventId
from sojourn.ports import Store, Tip
from sojourn.testing.conformance.demands import demand, demand_equal, refused

OpenStore: TypeAlias = Callable[[], Store]
StoreRule: TypeAlias = Callable[[OpenStore], Awaitable[None]]

EMPTY: Final = Tip(length=0, last=None)
ONE: Final = Epoch(1)
FILE: Final = "memory/working_memory.md"


def line(text: str) -> tuple[bytes, EventId]:
    """A line of a log and the id of its event."""
    header = f'{{"of":"{text}"}}'
    data = f'{{"body":{{"text":"{text}"}},"header":{header}}}\n'.encode()
    return data, EventId(sha256(header.encode()).hexdigest())


def log_of(store: Store, start: int = 0, end: int | None = None) -> bytes:
    """The log's bytes, put together."""
    return b"".join(store.read_log(start, end))


def blob_of(data: bytes) -> BlobId:
    """The name of a blob of these bytes."""
    return BlobId(sha256(data).hexdigest())


async def begin(store: Store, text: str = "first") -> Tip:
    """Append one line to an empty log; where the log ends then."""
    data, last = line(text)
    await store.append(epoch=ONE, expected=EMPTY, data=data)
    return Tip(length=len(data), last=last)


async def begins_with_an_empty_log(open_store: OpenStore) -> None:
    """No line is an empty log, and no failure."""
    store = open_store()
    demand_equal(store.size(), 0, "the size of an empty log")
    demand_equal(log_of(store), b"", "an empty log")


async def keeps_what_was_appended(open_store: OpenStore) -> None:
    """Whoever opens the capsule next reads the same bytes in the same order."""
    store = open_store()
    tip = await begin(store)
    data = line("second")[0] + line("third")[0]
    await store.append(epoch=ONE, expected=tip, data=data)
    for reader in (store, open_store()):
        demand_equal(log_of(reader), line("first")[0] + data, "the log")
        demand_equal(reader.size(), tip.length + len(data), "the log's size")


async def reads_any_part_of_the_log(open_store: OpenStore) -> None:
    """From any byte to any byte, also past the end."""
    store = open_store()
    tip = await begin(store)
    whole = line("first")[0]
    for start, end in ((0, 5), (3, 9), (5, None), (0, tip.length + 9), (tip.length, None)):
        demand_equal(log_of(store, start, end), whole[start:end], f"the log from {start} to {end}")


async def refuses_an_append_that_expects_another_length(open_store: OpenStore) -> None:
    """Nothing is written then."""
    store = open_store()
    tip = await begin(store)
    for length in (0, tip.length - 1, tip.length + 1):
        with refused(FencedError, "stale_head", f"an append that expects {length} bytes"):
            expected = Tip(length=length, last=tip.last)
            await store.append(epoch=ONE, expected=expected, data=line("no")[0])
    demand_equal(log_of(open_store()), line("first")[0], "the log after the refusals")


async def refuses_an_append_that_expects_another_event(open_store: OpenStore) -> None:
    """Also the first append of a store that did not write the event before."""
    tip = await begin(open_store())
    for last in (None, line("other")[1]):
        with refused(FencedError, "stale_head", f"an append after the event {last}"):
            expected = Tip(length=tip.length, last=last)
            await open_store().append(epoch=ONE, expected=expected, data=line("no")[0])
    demand_equal(log_of(open_store()), line("first")[0], "the log after the refusals")


async def refuses_the_second_of_two_writers(open_store: OpenStore) -> None:
    """Both stand at the same place; the log is changed by the first alone."""
    first, second = open_store(), open_store()
    tip = await begin(first)
    data = line("of the first")[0]
    await first.append(epoch=ONE, expected=tip, data=data)
    with refused(FencedError, "stale_head", "the append of the second writer"):
        await second.append(epoch=ONE, expected=tip, data=line("of the second")[0])
    demand_equal(log_of(open_store()), line("first")[0] + data, "the log")


async def refuses_an_older_epoch(open_store: OpenStore) -> None:
    """An epoch is never gone back from."""
    store = open_store()
    data, last = line("first")
    await store.append(epoch=Epoch(5), expected=EMPTY, data=data)
    tip = Tip(length=len(data), last=last)
    with refused(FencedError, "stale_epoch", "an append at an older epoch"):
        await store.append(epoch=Epoch(4), expected=tip, data=line("no")[0])
    await store.append(epoch=Epoch(5), expected=tip, data=line("yes")[0])
    demand_equal(log_of(store), data + line("yes")[0], "the log")


async def appends_whole_lines_only(open_store: OpenStore) -> None:
    """Bytes without an end of line are refused."""
    store = open_store()
    with refused(FormatError, None, "half a line"):
        await store.append(epoch=ONE, expected=EMPTY, data=line("first")[0][:-1])
    demand_equal(open_store().size(), 0, "the size of the log")


async def settles_the_log_at_a_length(open_store: OpenStore) -> None:
    """What is behind it goes, what is before it stays, and appending goes on there."""
    store = open_store()
    tip = await begin(store)
    await store.append(epoch=ONE, expected=tip, data=line("torn")[0])
    for opened in (store, open_store()):
        await opened.settle_log(start=0, length=tip.length)
        demand_equal(log_of(opened), line("first")[0], "the settled log")
        await opened.append(epoch=ONE, expected=tip, data=line("next")[0])
        demand_equal(log_of(open_store()), line("first")[0] + line("next")[0], "the log")


async def never_settles_beyond_the_end(open_store: OpenStore) -> None:
    """A log that became shorter is not the log that was opened."""
    tip = await begin(open_store())
    with refused(FencedError, "log_changed", "settling beyond the end"):
        await open_store().settle_log(start=0, length=tip.length + 1)
    demand_equal(log_of(open_store()), line("first")[0], "the log")


async def keeps_blobs_by_what_they_hold(open_store: OpenStore) -> None:
    """One, several and many at once, empty ones too; putting again changes nothing."""
    for count in (1, 3, 40):
        store = open_store()
        blobs = {blob_of(bytes(n) * n): bytes(n) * n for n in range(count)}
        for _ in range(2):
            await store.put_blobs(blobs)
            await open_store().put_blobs(blobs)
        for blob, data in blobs.items():
            demand(open_store().has_blob(blob), f"the blob {blob} is not there")
            demand_equal(open_store().read_blob(blob), data, "a blob")


async def names_a_missing_blob(open_store: OpenStore) -> None:
    """By the failure of docs/format.md#failures."""
    store = open_store()
    blob = blob_of(b"nobody put this")
    demand(not store.has_blob(blob), "a blob that nobody put is there")
    with refused(FormatError, "blob_missing", "reading a blob that is not there"):
        store.read_blob(blob)


async def refuses_bytes_under_another_name(open_store: OpenStore) -> None:
    """Nothing is kept then, the good ones of the same call neither named wrongly."""
    store = open_store()
    wrong = blob_of(b"right")
    with refused(SojournError, None, "bytes under the name of others"):
        await store.put_blobs({wrong: b"wrong"})
    demand(not open_store().has_blob(wrong), "wrong bytes were kept")


async def replaces_files_whole(open_store: OpenStore) -> None:
    """A shorter text leaves nothing of a longer one; what was never written is None."""
    store = open_store()
    for data in (b"a long text\n" * 99, b"short\n", b""):
        await store.replace_file(FILE, data)
        demand_equal(open_store().read_file(FILE), data, "the file")
    demand_equal(store.read_file("memory/no_such_file"), None, "a file that is not there")


async def removes_files(open_store: OpenStore) -> None:
    """What was removed is not there; nor is that an error the second time."""
    store = open_store()
    await store.replace_file(FILE, b"x")
    for _ in range(2):
        await store.remove_file(FILE)
        demand_equal(open_store().read_file(FILE), None, "a file that was removed")


async def names_its_files(open_store: OpenStore) -> None:
    """Sorted, with the log and without blobs."""
    store = open_store()
    await begin(store)
    await store.replace_file(FILE, b"x")
    before = set(store.file_names())
    await store.put_blobs({blob_of(b"blob"): b"blob"})
    names = open_store().file_names()
    demand_equal(set(names), before, "the names after a blob was put")
    demand_equal(names, tuple(sorted(names)), "the order of the names")
    demand(FILE in names, f"{FILE} is not named")


async def never_leaves_its_capsule(open_store: OpenStore) -> None:
    """No name leads out of it."""
    store = open_store()
    for name in ("../out", "memory/../../out", "memory//x", "memory/..", "."):
        with refused(FormatError, "path_unsafe", f"reading {name}"):
            store.read_file(name)
        with refused(FormatError, "path_unsafe", f"writing {name}"):
            await store.replace_file(name, b"x")


STORE_RULES: Final[tuple[StoreRule, ...]] = (
    begins_with_an_empty_log,
    keeps_what_was_appended,
    reads_any_part_of_the_log,
    refuses_an_append_that_expects_another_length,
    refuses_an_append_that_expects_another_event,
    refuses_the_second_of_two_writers,
    refuses_an_older_epoch,
    appends_whole_lines_only,
    settles_the_log_at_a_length,
    never_settles_beyond_the_end,
    keeps_blobs_by_what_they_hold,
    names_a_missing_blob,
    refuses_bytes_under_another_name,
    replaces_files_whole,
    removes_files,
    names_its_files,
    never_leaves_its_capsule,
)
