"""The ids of a chain's events, packed: one by its `seq` (docs/format.md#chains)."""

from bisect import bisect_right

from sojourn.ids import EventId

KEPT = 16
"""Bytes that are kept of each id, so that the ids of a log of a gigabyte fit into memory."""

FRESH = 1024
"""How many ids are packed at once."""


class ChainIds:
    """The ids of a chain by seq, in runs without a hole."""

    def __init__(self) -> None:
        self._starts = [0]
        self._runs = [bytearray()]
        self._fresh: list[EventId] = []

    def add(self, seq: int, event: EventId) -> None:
        """Keep the id; one that is there stays."""
        following = self._starts[-1] + len(self._runs[-1]) // KEPT + len(self._fresh)
        if seq < following:
            return
        if seq > following:
            self._pack()
            self._starts.append(seq)
            self._runs.append(bytearray())
        self.extend([event])

    def extend(self, events: list[EventId]) -> None:
        """Keep the ids that follow the last one."""
        self._fresh += events
        if len(self._fresh) >= FRESH:
            self._pack()

    def _pack(self) -> None:
        packed = "".join([event[: 2 * KEPT] for event in self._fresh])
        self._runs[-1] += bytes.fromhex(packed)
        self._fresh.clear()

    def get(self, seq: int) -> str | None:
        """The beginning of the id with this seq, None when it is not known."""
        self._pack()
        at = bisect_right(self._starts, seq) - 1
        if at < 0:
            return None
        offset = (seq - self._starts[at]) * KEPT
        return self._runs[at][offset : offset + KEPT].hex() or None
