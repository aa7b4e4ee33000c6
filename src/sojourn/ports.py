"""What the drivers ask of the world, as Protocols; the adapters answer, one folder a port.

Nothing here does anything. Methods that may wait are async; what is machine-local and short
(ledger, inbox, lock) is not.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

import msgspec

from sojourn.core.ledger_record import LedgerRecord
from sojourn.format.event import DocumentChange, FileDigest, Issuer, ToolSpec
from sojourn.format.parts import ContentPart
from sojourn.ids import BlobId, CallKey, CapsuleId, Epoch, EventId, MachineId, RequestId
from sojourn.ports_recall import Recall
from sojourn.render.profile import Profile


class WallClock(Protocol):
    """The only source of time: for people, deadlines and waiting, never for an order."""

    def now(self) -> str:
        """RFC 3339, UTC, milliseconds, ending in Z."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    async def wait(self, seconds: float) -> None:
        """Return after that long."""
        ...


class Randomness(Protocol):
    """The only source of random values."""

    def token(self, size: int) -> bytes:
        """`size` random bytes."""
        ...


class Tip(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a log ends: its length in bytes and the id of its last line's event (None if empty)."""

    length: int
    last: EventId | None


class Store(Protocol):
    """One capsule's bytes, wherever they are (docs/protocol.md#store)."""

    def size(self) -> int:
        """Length of the log in bytes."""
        ...

    def read_log(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The log's bytes from `start` on, in chunks of bounded size."""
        ...

    async def append(self, *, epoch: Epoch, expected: Tip, data: bytes) -> None:
        """Add whole lines, all or none, durable on return.

        Raises: FencedError when the log does not end at `expected` or the folder was replaced;
        StorageError when the write failed and its outcome is unknown.
        """
        ...

    async def settle_log(self, *, start: int, length: int) -> None:
        """Cut the log to `length`, rewrite its bytes from `start` in place, sync (never trust)."""
        ...

    def has_blob(self, blob: BlobId) -> bool: ...
    def read_blob(self, blob: BlobId) -> bytes:
        """The verified bytes. Raises: FormatError `blob_missing` or `blob_altered`."""
        ...

    async def put_blobs(self, blobs: Mapping[BlobId, bytes]) -> None:
        """Keep blobs that are not there yet, durable on return; equal ones are not written."""
        ...

    def read_file(self, name: str) -> bytes | None:
        """Bytes of a capsule file such as `manifest.json`, None when absent."""
        ...

    async def replace_file(self, name: str, data: bytes) -> None:
        """Replace it atomically, durable on return."""

    async def remove_file(self, name: str) -> None:
        """It is not there any more, durable on return."""

    def file_names(self) -> tuple[str, ...]:
        """Every file of the capsule but blobs, as POSIX relative paths, sorted."""
        ...

    def sweep(self) -> None:
        """Remove what killed writers left half-made; only under the capsule's lock."""

    def close(self) -> None:
        """Let go of what is open."""


class Ledger(Protocol):
    """A machine's own record of what it holds: one atomic write per transition."""

    def load(self, capsule: CapsuleId) -> LedgerRecord | None:
        """The record; SUSPECT, `ledger_copied`, when its file is not the one this machine wrote.

        Raises: FormatError `ledger_damaged` or `ledger_unsupported`.
        """
        ...

    def save(self, record: LedgerRecord) -> None:
        """Write it whole, durable on return; a damaged one that is there is set aside first.

        Raises: FencedError `floor_falls`; StorageError.
        """
        ...

    def recover(self, capsule: CapsuleId) -> LedgerRecord | None:
        """Load, and write the same again before anything builds on it; a copied one stays as it is.

        Under the capsule's lock. Raises as `load` and `save`.
        """
        ...

    def capsules(self) -> tuple[CapsuleId, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBy:
    """Who has a capsule's lock, since when (RFC 3339); `pid` and `start` name one process."""

    pid: int
    since: str
    command: str
    boot: str
    start: str = ""


class Lock(Protocol):
    """A capsule's lock on this host; the kernel lets go of it when the process dies."""

    def acquire(self, capsule: CapsuleId) -> AbstractContextManager[HeldBy | None]:
        """Hold it; the value entered is the last holder that did not let go in good order.

        Its `boot` is that of the first who died here since the log was settled, empty when that
        is not known. Raises: HeldElsewhereError with pid and since.
        """
        ...

    def settled(self, capsule: CapsuleId) -> None:
        """Recovery is done: what the last holders left does not matter any more."""
        ...

    def holder(self, capsule: CapsuleId) -> HeldBy | None:
        """Who holds it right now, None when free."""
        ...

    def left(self, capsule: CapsuleId) -> HeldBy | None:
        """What `acquire` would enter, for who only looks; None when it is held."""
        ...

    def check(self, capsule: CapsuleId) -> None:
        """Raises FencedError `lock_lost` when this object's hold is not what others would meet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What somebody wants appended by the holder: an input, or an edit of the notes.

    With `memory`, `text` is their whole new text, `before` the sha256 of the text that was edited.
    """

    request: RequestId
    author: str
    text: str
    kind: Literal["message", "memory"] = "message"
    before: BlobId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """An accepted message and the name of its file; `waited` when `put` found it there."""

    name: str
    message: Message
    waited: bool = field(default=False, compare=False)


class Inbox(Protocol):
    """Messages accepted and not yet in the log, in the order of acceptance."""

    def put(self, capsule: CapsuleId, message: Message) -> InboxItem:
        """Accept a message, durable on return; the same again is the same item.

        Raises: UsageError `request_reused` when the id is known with other content.
        """
        ...

    def items(self, capsule: CapsuleId) -> tuple[InboxItem, ...]:
        """Every message that waits; what is no message is left out and blocks nothing."""
        ...

    def remove(self, capsule: CapsuleId, item: InboxItem) -> None:
        """Forget a message that is in the log now; one that is gone already is no error."""
        ...

    def refused(self, capsule: CapsuleId) -> tuple[str, ...]:
        """Paths of every file that is no message, set aside or not yet; changes nothing."""
        ...

    def set_aside(self, capsule: CapsuleId) -> tuple[str, ...]:
        """Move every file that is no message out of the way; the paths they have now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A wake-up for one capsule, at most one a capsule; `folder` is where it was last seen.

    `puts` counts how often it was asked for since the last acknowledgement.
    """

    capsule: CapsuleId
    folder: str
    put_at: str
    worker: str | None = None
    puts: int = 1


class Queue(Protocol):
    """Wake-ups behind turns, rebuilt when lost (docs/protocol.md#queue)."""

    def put(self, capsule: CapsuleId, folder: str) -> None:
        """Idempotent: one job a capsule."""
        ...

    def jobs(self) -> tuple[Job, ...]: ...
    def lease(
        self, capsule: CapsuleId, worker: str, *, is_free: Callable[[CapsuleId], bool]
    ) -> Job | None:
        """Take the job; one that another worker has is taken over when the capsule's lock is free.

        None when there is no job, or when it is at work elsewhere.
        """
        ...

    def ack(self, job: Job) -> None:
        """The turn's end is in the log: the job goes, unless it was put again since the lease."""
        ...

    async def wait_for_change(self, seconds: float) -> bool:
        """Return when a job was put or acknowledged, or after that long with False."""
        ...


class ServerEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event of a provider's stream: its name (may be empty) and its data."""

    event: str
    data: str


class Model(Protocol):
    """One model behind one API; retries what was refused before any of it was answered."""

    @property
    def issuer(self) -> Issuer: ...
    @property
    def profile(self) -> Profile: ...

    def stream(
        self, payload: Mapping[str, object], *, key: CallKey
    ) -> AsyncGenerator[ServerEvent, None]:
        """Send the request and yield the answer's events.

        Raises: CallError, typed by `code`, with `retry` and `may_have_happened`.
        """
        ...

    async def aclose(self) -> None: ...


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a tool says: parts for the model, and what it changed.

    `full` is the whole output where `parts` holds a shortened one; `memory` the notes' whole new
    text where the tool edited them.
    """

    parts: tuple[ContentPart, ...]
    failed: bool = False
    code: str = ""
    full: bytes | None = None
    documents: tuple[DocumentChange, ...] = ()
    files: tuple[FileDigest, ...] = ()
    memory: str | None = None
    synced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a program ended: `status` as a shell has it (128 + signal), None when time was up.

    `ended` counts the processes that were still alive in the background, and were ended then.
    """

    status: int | None
    ended: int = 0


class Sandbox(Protocol):
    """Runs programs for tools so that nothing they start outlives their worker's successor."""

    async def run(
        self,
        command: Sequence[str],
        *,
        key: CallKey,
        cwd: str,
        environment: Mapping[str, str],
        stdin: bytes = b"",
        seconds: float,
        on_output: Callable[[bytes], None],
    ) -> Ran:
        """Run to the end, output as it comes; then nothing that was started is alive.

        When cancelled, everything that was started is ended before the exception goes on.

        Raises: StorageError when the run could not be recorded, CallError `not_started`; in both
        cases nothing ran.
        """
        ...

    def end_left_behind(self) -> tuple[int, ...]:
        """End every process that calls of this capsule left on this host; their pids.

        Raises: HeldElsewhereError `call_alive` when one of them cannot be ended.
        """
        ...


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool may use: its workspace folder, its idempotency key, and the ports it needs."""

    key: CallKey
    attempt: int
    workspace: str
    sandbox: Sandbox
    documents: Mapping[str, DocumentChange] = {}
    memory: str = ""
    ask: Callable[[str], Awaitable[str]] | None = None
    on_output: Callable[[bytes], None] | None = None
    recall: Recall | None = None


class Tool(Protocol):
    """A tool: how it is declared to models, and its run."""

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, args: Mapping[str, object], context: ToolContext) -> ToolResult:
        """Do it once.

        Raises: CallError for a failure that the model should read.
        """
        ...


class MachineKey(Protocol):
    """The machine's own key, made at first use; `renew` sets it aside and makes another."""

    def machine(self) -> MachineId: ...
    def renew(self) -> MachineId: ...


class Files(Protocol):
    """Whole small files of the machine; what cannot be written is a StorageError."""

    def read(self, path: str) -> bytes | None:
        """All bytes, None when nothing is there."""
        ...

    def create(self, path: str, data: bytes) -> bool:
        """Make it, durable on return; False when something is there, which is durable too."""
        ...

    def set_aside(self, path: str) -> str | None:
        """Rename what cannot be used to `<path>.damaged-N`; its new path, None if it is gone."""
        ...

    def make_folder(self, path: str) -> None:
        """The folder and its parents are there, for this user alone, durable on return."""
        ...
