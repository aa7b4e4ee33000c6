"""Ledger, lock and inbox keep their ports' rules; and the rules find those that break them."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sojourn.core.ledger_record import LedgerRecord
from sojourn.errors import FencedError, HeldElsewhereError, UsageError
from sojourn.ids import CapsuleId
from sojourn.ports import HeldBy, InboxItem, Message
from sojourn.store.inbox import FolderInbox
from sojourn.store.ledger import FileLedger
from sojourn.store.lock import FileLock
from sojourn.store.system import OsClock
from sojourn.testing.conformance import machine as suite
from sojourn.testing.conformance.machine import (
    INBOX_RULES,
    LEDGER_RULES,
    LOCK_RULES,
    InboxRule,
    LedgerRule,
    LockRule,
)
from sojourn.testing.disk import RecordingDisk


def lock_in(folder: Path, kind: type[FileLock] = FileLock) -> FileLock:
    return kind(str(folder), command="a test", clock=OsClock())


@pytest.mark.parametrize("rule", LEDGER_RULES)
def test_the_ledger_keeps_the_rules(rule: LedgerRule, tmp_path: Path) -> None:
    rule(lambda: FileLedger(str(tmp_path / "ledger"), host="h"))
    disk = RecordingDisk()
    rule(lambda: FileLedger("/ledger", host=None, disk=disk))


@pytest.mark.parametrize("rule", LOCK_RULES)
def test_the_lock_keeps_the_rules(rule: LockRule, tmp_path: Path) -> None:
    rule(lambda: lock_in(tmp_path / "locks"))
    disk = RecordingDisk()
    rule(lambda: FileLock("/locks", command="a test", clock=OsClock(), disk=disk))


@pytest.mark.parametrize("rule", INBOX_RULES)
def test_the_inbox_keeps_the_rules(rule: InboxRule, tmp_path: Path) -> None:
    rule(lambda: FolderInbox(str(tmp_path / "inbox")))


class Writable(FileLedger):
    """Lets the floor fall."""

    def save(self, record: LedgerRecord) -> None:
        try:
            super().save(record)
        except FencedError:
            (Path(self._folder) / f"{record.capsule}.json").unlink()
            super().save(record)


class OneForAll(FileLedger):
    """Has one record for all capsules."""

    def capsules(self) -> tuple[CapsuleId, ...]:
        return super().capsules()[:1]


class NoLock(FileLock):
    """Lets everybody in."""

    @contextmanager
    def acquire(self, capsule: CapsuleId) -> Generator[HeldBy | None]:
        try:
            with super().acquire(capsule) as left:
                yield left
        except HeldElsewhereError:
            yield None


class ForgetfulLock(FileLock):
    """Forgets that the last holder died."""

    @contextmanager
    def acquire(self, capsule: CapsuleId) -> Generator[HeldBy | None]:
        with super().acquire(capsule):
            yield None


class SilentLock(FileLock):
    """Never says that the lock was lost."""

    def check(self, capsule: CapsuleId) -> None:
        del capsule


class Twice(FolderInbox):
    """Accepts everything as new."""

    def _same_request(self, folder: str, message: Message) -> InboxItem | None:
        del folder, message
        return None


class AnyText(FolderInbox):
    """Takes the same id for the same message."""

    def put(self, capsule: CapsuleId, message: Message) -> InboxItem:
        try:
            return super().put(capsule, message)
        except UsageError:
            return self.items(capsule)[0]


class Backwards(FolderInbox):
    """Shows the last message first."""

    def items(self, capsule: CapsuleId) -> tuple[InboxItem, ...]:
        return tuple(reversed(super().items(capsule)))


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (Writable, suite.never_lets_the_floor_fall),
        (OneForAll, suite.keeps_capsules_apart),
        (NoLock, suite.is_held_by_one),
        (ForgetfulLock, suite.is_free_again_after_any_end),
        (SilentLock, suite.says_when_it_is_not_held),
        (Twice, suite.accepts_the_same_message_once),
        (Twice, suite.stands_many_senders),
        (AnyText, suite.accepts_the_same_message_once),
        (Backwards, suite.keeps_the_order_of_acceptance),
        (Backwards, suite.forgets_what_was_taken),
    ],
)
def test_the_rules_find_a_broken_adapter(
    broken: type[FileLedger | FileLock | FolderInbox], rule: object, tmp_path: Path
) -> None:
    assert callable(rule)
    with pytest.raises(AssertionError):
        rule(lambda: opened(broken, tmp_path / "folder"))


def opened(kind: type[FileLedger | FileLock | FolderInbox], folder: Path) -> object:
    if issubclass(kind, FileLedger):
        return kind(str(folder), host="h")
    if issubclass(kind, FileLock):
        return lock_in(folder, kind)
    return kind(str(folder))
