"""What the drivers of a move ask of the world: the other machine, and what has arrived so far."""

from collections.abc import AsyncIterable, AsyncIterator
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

    def withdraw(self, capsule: CapsuleId) -> None: ...
