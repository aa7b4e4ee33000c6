"""What a move sends while the agent still runs: rounds of looking, asking and sending.

Nothing is promised by it. Each round finds what changed since the one before
(docs/moving.md#check).
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

from sojourn.core.migration_messages import Answer, Check, Propose, Refused, Wanted
from sojourn.drive.machine import Ports
from sojourn.drive.offering import Folder, LogReading, Offered, live_offer, pieces
from sojourn.errors import MigrationError, PeerError
from sojourn.format import snapshot
from sojourn.format.snapshot import Snapshot
from sojourn.ids import BlobId, CapsuleId, MoveId
from sojourn.ports_move import Peer, Piece
from sojourn.ports_workspace import Workspace

MOST_ROUNDS: Final = 5
"""Rounds before the freeze, while each one still finds much less to send than the one before."""

LITTLE: Final = 1 << 20
"""Bytes that may be left to send when the agent is stopped."""

TRIES: Final = 4
"""How often what is lacking is sent, when some of it did not arrive or was altered on the way."""


@dataclass(slots=True, kw_only=True)
class Sender:
    """Sends the capsule in `folder` piece by piece; `sent` is told how many bytes went out."""

    ports: Ports
    peer: Peer
    capsule: CapsuleId
    move: MoveId
    folder: Folder
    log: LogReading
    workspace: Workspace
    label: str
    sent: Callable[[int], None]
    total: int = 0
    last: Offered | None = None
    _seen: set[BlobId] = field(default_factory=set[BlobId])

    async def look(self) -> Answer:
        """Ask how far the other machine is fit; only small files and the log are sent.

        Raises: PeerError, MigrationError; NotFoundError, StorageError, FormatError.
        """
        return await self._offer(whole=False)

    async def send_ahead(self) -> Answer:
        """Send all, and again what changed meanwhile, until that is little. Raises: as `look`."""
        before, rounds = -1, 0
        while True:
            start, rounds = self.total, rounds + 1
            answer = await self._offer(whole=True)
            went = self.total - start
            little = went <= LITTLE or 0 <= before < 2 * went
            if not isinstance(answer, Wanted) or little or rounds == MOST_ROUNDS:
                return answer
            before = went

    async def deliver(self, offered: Offered, message: Check | Propose, first: Answer) -> Answer:
        """Send what the answers to `message` ask for, until nothing is lacking; the last answer.

        Raises: PeerError, MigrationError when something still is after several tries.
        """
        return await self._until_nothing_lacks(offered, message, first, whole=True)

    async def _offer(self, *, whole: bool) -> Answer:
        listed = self._listed()
        offered = self.last = live_offer(self.folder, self.log, listed, label=self.label)
        check = Check(capsule=self.capsule, move=self.move, offer=offered.offer)
        return await self._until_nothing_lacks(
            offered, check, await self.peer.ask(check), whole=whole
        )

    async def _until_nothing_lacks(
        self, offered: Offered, message: Check | Propose, answer: Answer, *, whole: bool
    ) -> Answer:
        failure: PeerError | None = None
        for _ in range(TRIES):
            wanted = self._to_send(offered, answer, whole=whole)
            if wanted is None:
                return answer
            try:
                await self.peer.send(self.capsule, self.move, self._pieces(offered, wanted))
                failure = None
            except PeerError as error:
                # What came is kept there; the next answer says what is still lacking.
                failure = error
            answer = await self.peer.ask(message)
        if failure is not None:
            raise failure
        if self._to_send(offered, answer, whole=whole) is None:
            return answer
        raise MigrationError(
            "what was sent did not arrive whole, several times in a row",
            code="not_arriving",
            state="The agent goes on here.",
            hint="Look at the link between both machines, then move it again.",
        )

    def _to_send(self, offered: Offered, answer: Answer, *, whole: bool) -> Wanted | None:
        """What of an answer is sent now; None for nothing."""
        if not isinstance(answer, Wanted):
            return None
        mark = offered.manifest.timeline
        has_log = (answer.log, answer.prefix) == (mark.length, mark.sha256)
        contents = answer.contents
        if not whole:
            small = {one.sha256 for one in offered.manifest.files.values()}
            small.add(BlobId(offered.offer.root))
            contents = tuple(one for one in contents if one[0] in small)
        if not contents and has_log:
            return None
        return Wanted(contents=contents, log=answer.log, prefix=answer.prefix)

    async def _pieces(self, offered: Offered, wanted: Wanted) -> AsyncIterator[Piece]:
        root_alone = wanted.contents == ((offered.offer.root, 0),) and not wanted.log
        async for piece in pieces(
            offered, wanted, self.folder, self.log, self._count, with_log=not root_alone
        ):
            yield piece

    def _count(self, size: int) -> None:
        self.total += size
        self.sent(size)

    def _listed(self) -> bytes:
        """Read the workspace as it is, its contents kept as blobs; the bytes of its list."""
        self.workspace.survey()
        taken = self.workspace.read()
        self.workspace.remember()
        mask = self.ports.mask
        if mask.idle:
            return taken.data
        entries = taken.listed.entries
        return snapshot.encode(
            Snapshot(entries=tuple(e for e in entries if mask.text(e.path) == e.path))
        )


def refusal_in(answer: Answer) -> Refused | None:
    """Why an answer to an offer stands against the move; None when nothing does."""
    if isinstance(answer, Refused):
        return answer
    if not isinstance(answer, Wanted):
        return Refused(code="peer_answer", message="the other machine gave no answer to the offer")
    against = tuple(item for item in answer.checklist if not item.ok)
    if not against:
        return None
    words = against[0].message or against[0].what
    return Refused(
        code="not_ready",
        message=f"the other machine is not ready: {words}",
        hint=against[0].hint,
        checklist=answer.checklist,
    )
