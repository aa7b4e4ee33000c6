"""The store in a folder keeps the rules of a store; and the rules find stores that break them."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.format import layout
from sojourn.ids import BlobId, Epoch
from sojourn.ports import Tip
from sojourn.store.create import create_capsule
from sojourn.store.folder import FolderStore
from sojourn.testing.conformance import store as suite
from sojourn.testing.conformance.store import STORE_RULES, StoreRule
from sojourn.testing.disk import RecordingDisk


@pytest.mark.parametrize("rule", STORE_RULES)
def test_a_folder_keeps_the_rules(rule: StoreRule, tmp_path: Path) -> None:
    folder = str(tmp_path / "capsule")
    create_capsule(folder, {layout.WORKING_MEMORY: b""})
    opened: list[FolderStore] = []

    def open_store() -> FolderStore:
        opened.append(FolderStore(folder))
        return opened[-1]

    try:
        asyncio.run(rule(open_store))
    finally:
        for store in opened:
            store.close()


@pytest.mark.parametrize("rule", STORE_RULES)
def test_a_folder_in_memory_keeps_the_rules(rule: StoreRule) -> None:
    asyncio.run(rule(in_memory(FolderStore)))


def in_memory(kind: type[FolderStore]) -> Callable[[], FolderStore]:
    disk = RecordingDisk()
    create_capsule("/capsule", {layout.WORKING_MEMORY: b""}, disk=disk)
    return lambda: kind("/capsule", disk=disk)


class Blind(FolderStore):
    """Appends wherever the log ends."""

    async def append(self, *, epoch: Epoch, expected: Tip, data: bytes) -> None:
        log = b"".join(self.read_log())
        del expected
        tip = Tip(length=len(log), last=suite_last(log))
        await super().append(epoch=epoch, expected=tip, data=data)


class LengthOnly(FolderStore):
    """Looks at the length, not at the event."""

    async def append(self, *, epoch: Epoch, expected: Tip, data: bytes) -> None:
        log = b"".join(self.read_log())
        tip = Tip(length=expected.length, last=suite_last(log))
        await super().append(epoch=epoch, expected=tip, data=data)


class Timeless(FolderStore):
    """Takes any epoch."""

    async def append(self, *, epoch: Epoch, expected: Tip, data: bytes) -> None:
        await super().append(epoch=Epoch(epoch * 0 + 9), expected=expected, data=data)


class Forgetful(FolderStore):
    """Keeps no blob."""

    async def put_blobs(self, blobs: object) -> None:
        del blobs


class Trusting(FolderStore):
    """Believes that blobs are there."""

    def has_blob(self, blob: BlobId) -> bool:
        del blob
        return True


class NeverCuts(FolderStore):
    """Settles nothing."""

    async def settle_log(self, *, start: int, length: int) -> None:
        del start, length


class Adding(FolderStore):
    """Adds to files instead of replacing them."""

    async def replace_file(self, name: str, data: bytes) -> None:
        await super().replace_file(name, (self.read_file(name) or b"") + data)


class Keeping(FolderStore):
    """Removes nothing."""

    async def remove_file(self, name: str) -> None:
        del name


class Wandering(FolderStore):
    """Goes wherever a name leads."""

    def _plain(self, name: str) -> None:
        del name


class Unsorted(FolderStore):
    """Names its files in another order."""

    def file_names(self) -> tuple[str, ...]:
        return tuple(reversed(super().file_names()))


def suite_last(log: bytes) -> suite.EventId | None:
    from sojourn.store.log import last_id

    return last_id(log) if log else None


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (Blind, suite.refuses_an_append_that_expects_another_length),
        (Blind, suite.refuses_the_second_of_two_writers),
        (LengthOnly, suite.refuses_an_append_that_expects_another_event),
        (Timeless, suite.refuses_an_older_epoch),
        (Forgetful, suite.keeps_blobs_by_what_they_hold),
        (Trusting, suite.names_a_missing_blob),
        (NeverCuts, suite.settles_the_log_at_a_length),
        (NeverCuts, suite.never_settles_beyond_the_end),
        (Adding, suite.replaces_files_whole),
        (Keeping, suite.removes_files),
        (Wandering, suite.never_leaves_its_capsule),
        (Unsorted, suite.names_its_files),
    ],
)
def test_the_rules_find_a_broken_store(broken: type[FolderStore], rule: StoreRule) -> None:
    with pytest.raises((AssertionError, OSError)):
        asyncio.run(rule(in_memory(broken)))
