"""The inbox: one numbered, create-only file a message (docs/protocol.md#inbox).

Senders take turns by a lock that lasts one `put`, so the same request is one file and order is the
order of acceptance. Whatever else lies in the folder blocks nobody.
"""

import re
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from typing import Final, Literal

import msgspec

from sojourn.errors import FormatError, LimitError, UsageError
from sojourn.format.canon import clean_text, encode, load
from sojourn.format.parts import Digest
from sojourn.ids import CapsuleId, RequestId
from sojourn.ports import InboxItem, Message
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import Durable, durable_write, read_whole, reading, temporary_of

MESSAGE_LIMIT: Final = 4 << 20
"""Bytes of a message's file."""

SECOND: Final = 10**9
TICK: Final = SECOND // 10
"""Nanoseconds after which a change gets another time than the one before it.

No kernel that keeps fractions of seconds counts in longer steps; a file system that keeps none
shows whole seconds.
"""

LOCK: Final = "lock"
REFUSED: Final = "refused"

_NAME: Final = re.compile(r"(?P<number>[0-9]{8,})-(?P<request>[0-9a-f]{32})\.json")


class _File(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    v: int
    request: RequestId
    author: str
    text: str
    kind: Literal["message", "memory"]
    before: Digest | None = None


class FolderInbox:
    """The `Inbox` port in a folder."""

    def __init__(self, folder: str, *, disk: Disk | None = None) -> None:
        self._folder = folder
        self._disk = disk or OsDisk()
        self._files = Durable(self._disk)
        self._empty: dict[CapsuleId, int] = {}

    def put(self, capsule: CapsuleId, message: Message) -> InboxItem:
        """Accept a message, durable on return; the same again is the same item.

        A lone surrogate becomes U+FFFD (docs/format.md#json). Raises: UsageError `request_reused`
        when the request id waits with other content; LimitError `message_too_long`; StorageError.
        """
        data, message = _encoded(message)
        folder = self._of(capsule)
        self._files.make_folder(folder)
        with self._turn(folder):
            same = self._same_request(folder, message)
            if same is not None:
                self._sync(folder)
                return same
            return self._create(folder, message, data)

    def items(self, capsule: CapsuleId) -> tuple[InboxItem, ...]:
        """Every message that waits, in order; what is no message is left out.

        It is asked for at each step, so a folder that was empty is listed again only when it has
        changed since. Raises: StorageError.
        """
        folder = self._of(capsule)
        with reading(folder):
            found = self._disk.stat_path(folder)
        if found is None or found.changed == self._empty.get(capsule):
            return ()
        now = time.time_ns()
        items = tuple(self._items(folder))
        if not items and found.changed % SECOND and now - found.changed > TICK:
            # Whatever comes from now on changes the folder at another time.
            self._empty[capsule] = found.changed
        return items

    def remove(self, capsule: CapsuleId, item: InboxItem) -> None:
        """Forget a message that is in the log now; one that is gone already is no error.

        Not synced: a message that comes back after a power cut is in the log by its request id.
        """
        path = f"{self._of(capsule)}/{item.name}"
        with durable_write(path), suppress(FileNotFoundError):
            self._disk.unlink(path)

    def refused(self, capsule: CapsuleId) -> tuple[str, ...]:
        """Paths of every file that is no message, set aside or not yet; changes nothing.

        Raises: StorageError.
        """
        folder = self._of(capsule)
        aside = f"{folder}/{REFUSED}"
        with reading(folder):
            names = [f"{folder}/{name}" for name in self._foreign(folder)]
            return (*names, *(f"{aside}/{name}" for name, _ in self._disk.list(aside)))

    def set_aside(self, capsule: CapsuleId) -> tuple[str, ...]:
        """Move every file that is no message out of the way; the paths they have now.

        What killed senders left half-made goes. Raises: StorageError.
        """
        folder = self._of(capsule)
        if self._disk.stat_path(folder) is None:
            return ()
        with self._turn(folder):
            self._files.sweep(folder)
            return tuple(self._set_aside(folder, name) for name in self._foreign(folder))

    def _create(self, folder: str, message: Message, data: bytes) -> InboxItem:
        number = 1 + max((int(name.partition("-")[0]) for name in self._names(folder)), default=0)
        while True:
            name = f"{number:08d}-{_digest(message.request)}.json"
            if self._files.create(f"{folder}/{name}", data):
                return InboxItem(name=name, message=message)
            number += 1

    def _same_request(self, folder: str, message: Message) -> InboxItem | None:
        for name in self._names(folder):
            if _digest(message.request) not in name:
                continue
            found = self._message(folder, name)
            if found == message:
                return InboxItem(name=name, message=message, waited=True)
            if found is not None:
                raise UsageError(
                    f"the request id {message.request} was used for another message",
                    code="request_reused",
                    state="The earlier message waits; this one was not accepted.",
                    hint="Send it with another request id.",
                )
        return None

    def _items(self, folder: str) -> Iterator[InboxItem]:
        for name in self._names(folder):
            message = self._message(folder, name)
            if message is not None:
                yield InboxItem(name=name, message=message)

    def _names(self, folder: str) -> list[str]:
        """Names of messages, in their order, also past eight digits."""
        with reading(folder):
            listed = self._disk.list(folder)
        found = [name for name, kind in listed if kind == "file" and _NAME.fullmatch(name)]
        return sorted(found, key=lambda name: (int(name.partition("-")[0]), name))

    def _message(self, folder: str, name: str) -> Message | None:
        """The message in a file; None when it is none, or gone."""
        path = f"{folder}/{name}"
        with reading(path):
            data = read_whole(self._disk, path, limit=MESSAGE_LIMIT + 1)
        if data is None:
            return None
        try:
            found = msgspec.convert(load(data, what=path, limit=MESSAGE_LIMIT), _File)
        except (FormatError, msgspec.ValidationError):
            return None
        if found.v != 1 or _digest(found.request) not in name:
            return None
        return Message(
            request=found.request,
            author=found.author,
            text=found.text,
            kind=found.kind,
            before=found.before,
        )

    def _foreign(self, folder: str) -> Iterator[str]:
        for name, kind in self._disk.list(folder):
            if name in (LOCK, REFUSED) or temporary_of(name) is not None:
                continue
            is_message = kind == "file" and _NAME.fullmatch(name) is not None
            if not is_message or self._message(folder, name) is None:
                yield name

    def _set_aside(self, folder: str, name: str) -> str:
        aside = f"{folder}/{REFUSED}"
        self._files.make_folder(aside)
        target, count = f"{aside}/{name}", 1
        with durable_write(target):
            while self._disk.stat_path(target) is not None:
                target, count = f"{aside}/{name}.{count}", count + 1
            with suppress(FileNotFoundError):
                self._disk.rename(f"{folder}/{name}", target)
            self._disk.sync_folder(aside)
            self._disk.sync_folder(folder)
        return target

    def _sync(self, folder: str) -> None:
        with durable_write(folder):
            self._disk.sync_folder(folder)

    @contextmanager
    def _turn(self, folder: str) -> Generator[None]:
        path = f"{folder}/{LOCK}"
        with durable_write(path):
            handle = self._disk.open(path, "lock")
        try:
            with durable_write(path):
                self._disk.lock(handle, wait=True)
            yield
        finally:
            with suppress(OSError):
                self._disk.unlock(handle)
            self._disk.close(handle)

    def _of(self, capsule: CapsuleId) -> str:
        return f"{self._folder}/{capsule}"


def _encoded(message: Message) -> tuple[bytes, Message]:
    """A message's bytes, and the message as it will be read again."""
    request, author, text = (
        clean_text(part)[0] for part in (message.request, message.author, message.text)
    )
    message = replace(message, request=RequestId(request), author=author, text=text)
    file = _File(
        v=1,
        request=message.request,
        author=author,
        text=text,
        kind=message.kind,
        before=message.before,
    )
    data = encode(file) + b"\n"
    if len(data) > MESSAGE_LIMIT:
        raise LimitError(
            f"the message is longer than {MESSAGE_LIMIT} bytes",
            code="message_too_long",
            state="It was not accepted.",
            hint="Put the text into a file of the workspace, and name the file.",
        )
    return data, message


def _digest(request: RequestId) -> str:
    """The first 32 digits of the request id's sha256, as in the file's name."""
    return sha256(request.encode()).hexdigest()[:32]
