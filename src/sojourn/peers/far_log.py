"""The events of a log on another machine, and those that are added; what is cut is asked again."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from sojourn.format.event import Event
from sojourn.format.timeline_read import Reader
from sojourn.ids import CapsuleId
from sojourn.peers.peer import LinkPeer


class FarLog:
    """Reads from the start; bodies that lie in blobs are not fetched, so such events are left out.

    `at` is how many bytes of the log were read.
    """

    def __init__(self, peer: LinkPeer, capsule: CapsuleId) -> None:
        self._peer = peer
        self._capsule = capsule
        self._reader = Reader(read_blob=lambda _: None)
        self.at = 0

    async def more(self, *, follow: bool) -> AsyncGenerator[Event]:
        """Whole events that were added since; with `follow` it ends only with the link.

        Raises: PeerError.
        """
        lines = self._peer.log(self._capsule, start=self.at, follow=follow)
        async with aclosing(lines):
            async for line in lines:
                for event in self._events(line):
                    yield event

    def rest(self) -> Iterator[Event]:
        """Those of the last append, which only the end shows to be whole; once, at the end."""
        rest = self._reader.finish(same_boot=True).rest
        yield from (item for item in rest if isinstance(item, Event))

    def _events(self, line: bytes) -> Iterator[Event]:
        if line != b"\n":
            self.at += len(line)
            yield from (item for item in self._reader.feed(line) if isinstance(item, Event))
