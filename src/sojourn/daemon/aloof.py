"""A machine that takes no capsule in: every message of a move is refused by name."""

from collections.abc import AsyncIterator

from sojourn.core.migration_messages import Answer, Message, Refused
from sojourn.errors import MigrationError
from sojourn.ids import CapsuleId, MachineId, MoveId
from sojourn.ports_move import Piece


class Aloof:
    """The `Receiver` of a machine that cannot be moved to."""

    async def boot_up(self) -> None:
        """Nothing ever arrives here."""

    async def answer(self, message: Message, *, sender: MachineId, address: str) -> Answer:
        """Refused; nothing is promised, nothing kept."""
        del message, sender, address
        return Refused(
            code="no_moves",
            message="this machine takes no capsule in",
        )

    async def take(
        self, capsule: CapsuleId, move: MoveId, pieces: AsyncIterator[Piece], *, sender: MachineId
    ) -> None:
        """Raises: MigrationError."""
        del capsule, move, pieces, sender
        raise MigrationError("this machine takes no capsule in", code="no_moves")
