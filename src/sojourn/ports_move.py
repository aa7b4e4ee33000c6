"""What the drivers of a move ask of the world: the other machine, and what has arrived so far."""

from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sojourn.core.migration_messages import Answer, Message
from sojourn.ids import BlobId, CapsuleId, MachineId, MoveId


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes of one content from `offset` on; `size` is that of the whole content.

    `digest` names the content; the timeline is the one of its whole bytes.
    """

    digest: BlobId
    size: int
    offset: int
    data: bytes


class Peer(Protocol):
    """Another machine, whose key the link has checked: every answer is of `machine`."""

    @property
    def machine(self) -> MachineId: ...
    @property
    def address(self) -> str: ...

    async def ask(self, message: Message) -> Answer:
        """Say it, and wait for the answer.

        Raises: PeerError; with `may_have_happened` when the message may have arrived.
        """
        ...

    async def send(self, capsule: CapsuleId, move: MoveId, pieces: AsyncIterable[Piece]) -> None:
        """Stream contents; those that came whole are kept there even when the link is cut.

        Raises: PeerError.
        """
        ...

    async def aclose(self) -> None: ...


class Receiver(Protocol):
    """The machine's side that others speak to; `sender` is whose key the link has checked."""

    async def answer(self, message: Message, *, sender: MachineId, address: str) -> Answer:
        """What this machine says; whatever it promises is durable before the answer.

        Raises: SojournError when a durable write failed: nothing may be answered then.
        """
        ...

    async def boot_up(self) -> None:
        """Before the first message: forget what was arriving, open what was activated.

        Raises: StorageError.
        """
        ...

    async def take(
        self, capsule: CapsuleId, move: MoveId, pieces: AsyncIterator[Piece], *, sender: MachineId
    ) -> None:
        """Keep contents as they come. Raises: MigrationError for what was never asked for."""
        ...


class Release(Protocol):
    """Asks the process that runs a capsule to let go of it at its next safe point."""

    def ask(self, capsule: CapsuleId, *, grace: float) -> None:
        """Durable until withdrawn. A call that runs longer than `grace` seconds is ended."""
        ...

    def asked(self, capsule: CapsuleId) -> float | None:
        """The grace in seconds when somebody asks, else None; costs one look at a file."""
        ...

    def asker(self, capsule: CapsuleId) -> int | None:
        """The living process that asks."""
        ...

    def withdraw(self, capsule: CapsuleId) -> None: ...
    def begin_reading(self, capsule: CapsuleId) -> None:
        """This process keeps contents of the capsule without its lock; durable until it ends."""
        ...

    def end_reading(self, capsule: CapsuleId) -> None: ...
    def died_reading(self, capsule: CapsuleId) -> bool:
        """Whether a process that did so is gone, and may have left something half-made."""
        ...


class Landing(Protocol):
    """Where what comes from other machines is kept until it is live (docs/moving.md#landing).

    `landing` is the folder of one move, `older` that of an earlier copy of the capsule. Methods
    raise MigrationError for what does not fit, and StorageError.
    """

    def at(self, capsule: CapsuleId, move: MoveId) -> str: ...
    def free_folder(self, name: str) -> str: ...
    def free_workspace(self, capsule: CapsuleId) -> str: ...
    def begin(self, landing: str, *, older: str | None = None) -> None:
        """The folder is there; its log begins with that of `older`."""
        ...

    def have(self, digest: BlobId, size: int) -> int:
        """Bytes of a content that are here; `size` only when all of them are, and are right."""
        ...

    def take(self, piece: Piece) -> bool:
        """Keep bytes of a content; whether it is whole now."""
        ...

    def keep(self, data: bytes) -> BlobId:
        """Keep bytes that were made here."""
        ...

    def borrow(self, folder: str, blobs: Mapping[BlobId, int]) -> None:
        """Have what lies unaltered as blobs of the capsule in a folder."""
        ...

    def read(self, digest: BlobId, limit: int) -> bytes | None:
        """A whole content of at most `limit` bytes, None when it is not here."""
        ...

    def room(self) -> int:
        """Bytes of the disk that may still be used."""
        ...

    def log_here(self, landing: str) -> tuple[int, str]:
        """How many bytes of the timeline are here, and their sha256."""
        ...

    def take_log(self, landing: str, piece: Piece) -> None:
        """Keep bytes of the timeline."""
        ...

    def put_files(self, landing: str, files: Mapping[str, bytes]) -> None: ...
    def link(self, landing: str, blobs: Iterable[BlobId]) -> None: ...
    def prune(self, landing: str, *, blobs: Collection[BlobId], files: Collection[str]) -> None: ...
    def settle(self, landing: str) -> None:
        """All that came by this move is durable."""
        ...

    def place(
        self, landing: str, *, folder: str, workspace: str, older: tuple[str, ...]
    ) -> tuple[str, str]:
        """Put both into their places, durable on return; where they are now."""
        ...

    def is_placed(self, landing: str) -> bool:
        """Whether what came by this move may have been put into its places."""
        ...

    def drop(self, landing: str) -> None:
        """Remove all that came by this move, wherever it was put."""
        ...

    def live(self, landing: str) -> None:
        """It was opened soundly: the older copy goes, and the landing."""
        ...

    def landings(self) -> tuple[str, ...]: ...
    def tidy(self, seconds: float) -> None:
        """Contents that nobody used for so long go, and so do empty folders."""
        ...
