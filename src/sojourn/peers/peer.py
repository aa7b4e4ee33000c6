"""Another machine as the drivers of a move and the command line want it."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Final
from urllib.parse import urlencode

from sojourn.core.migration_messages import Answer, Message
from sojourn.ids import CapsuleId, MachineId, MoveId, RequestId
from sojourn.peers.frames import Requests
from sojourn.peers.limits import ANSWER_SECONDS, PREPARE_SECONDS
from sojourn.peers.link import Link
from sojourn.peers.places import Near
from sojourn.peers.shapes import Done, Hello, Listing, Said, Taken
from sojourn.ports_move import Piece

SLOW: Final = frozenset({"check", "propose", "prepare", "activate"})
"""Messages for which the other side may have to read all that it has got."""


class LinkPeer:
    """The `Peer` port over a link; open on return of `open`."""

    def __init__(self, link: Link, hello: Hello) -> None:
        self._link = link
        self.hello = hello

    @classmethod
    async def open(cls, link: Link) -> "LinkPeer":
        """The machine at the other end, which has said who it is. Raises: PeerError."""
        try:
            return cls(link, await link.hello())
        except BaseException:
            await link.aclose()
            raise

    @property
    def machine(self) -> MachineId:
        """Whose every answer is."""
        return self.hello.machine

    @property
    def address(self) -> str:
        """Where it was reached."""
        return str(self._link.way)

    async def ask(self, message: Message) -> Answer:
        """Say it, and wait for the answer.

        Raises: PeerError; with `may_have_arrived` when the message may have been acted upon.
        """
        named = str(type(message).__struct_config__.tag)
        seconds = PREPARE_SECONDS if named in SLOW else ANSWER_SECONDS
        target = f"/v1/moves/{message.move}/{named}"
        wanted: type[Answer] = Answer  # pyright: ignore[reportAssignmentType]
        return await self._link.call("POST", target, wanted, message, seconds=seconds)

    async def send(self, capsule: CapsuleId, move: MoveId, pieces: AsyncIterable[Piece]) -> None:
        """Stream contents, cut into requests that each have an answer.

        Raises: PeerError.
        """
        target = f"/v1/moves/{move}/contents?{urlencode({'capsule': capsule})}"
        requests = Requests(pieces, compress=not isinstance(self._link.way, Near))
        async with contextlib.aclosing(requests):
            while await requests.begin():
                await self._link.pour(target, Done, requests.body())

    async def again(self) -> Hello:
        """Ask once more who is there. Raises: PeerError."""
        self.hello = await self._link.hello(again=True)
        return self.hello

    async def capsules(self) -> Listing:
        """The capsules there. Raises: PeerError."""
        return await self._link.call("GET", "/v1/capsules", Listing)

    async def say(self, capsule: CapsuleId, text: str, *, request: str) -> Taken:
        """Leave a message; durable there on return. Raises: PeerError."""
        said = Said(request=RequestId(request), text=text)
        return await self._link.call("POST", f"/v1/capsules/{capsule}/messages", Taken, said)

    async def log(
        self, capsule: CapsuleId, *, start: int = 0, follow: bool = False
    ) -> AsyncGenerator[bytes]:
        """The log's lines from byte `start` on, each as it is stored; with `follow` for ever.

        An empty line is no line of the log: it says that the link lives. Raises: PeerError.
        """
        query = urlencode({"start": start, "follow": int(follow)})
        lines = self._link.lines(f"/v1/capsules/{capsule}/log?{query}")
        async with contextlib.aclosing(lines):
            async for line in lines:
                yield line

    async def aclose(self) -> None:
        """Close all connections."""
        await self._link.aclose()
