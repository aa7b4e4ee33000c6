"""The events of a log on another machine, and those that are added; what is cut is asked again."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

from sojourn.agent.look import Numbered
from sojourn.format.event import Event
from sojourn.format.timeline_read import Item, Reader
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

    async def more(self, *, follow: bool) -> AsyncGenerator[Numbered]:
        """Whole events that were added since; with `follow` it ends only with the link.

        Raises: PeerError.
        """
        lines = self._peer.log(self._capsule, start=self.at, follow=follow)
        async with aclosing(lines):
            async for line in lines:
                for event in self._events(line):
                    yield event

    def rest(self) -> Iterator[Numbered]:
        """Those of the last append, which only the end shows to be whole; once, at the end."""
        ending = self._reader.finish(same_boot=True)
        yield from _numbered(ending.rest_lines, ending.rest)

    def _events(self, line: bytes) -> Iterator[Numbered]:
        if line != b"\n":
            self.at += len(line)
            yield from _numbered(*self._reader.numbered(line))


def _numbered(numbers: Iterable[int], items: Iterable[Item]) -> Iterator[Numbered]:
    for number, item in zip(numbers, items, strict=True):
        if isinstance(item, Event):
            yield Numbered(number, item)
