"""The turn state of every strand of a log: concurrent turns do not disturb one another.

docs/protocol.md#lineage is the specification; `core/turn_state.py` folds one strand.
"""

from collections import deque
from collections.abc import Collection
from typing import Final, TypeAlias

from sojourn.core.strands import ChainKey, Strands, rank_of
from sojourn.core.turn_state import TurnState, evolve
from sojourn.format.body import Head
from sojourn.format.event import Event, Header
from sojourn.ids import EventId

RECENT: Final = 64
"""How many states of a strand are kept; older ones that somebody went on from are read again."""

_Then: TypeAlias = tuple[EventId, Header, TurnState]
"""The state after an event; of the event only what ranks it, so that its body may go."""


class TurnStates:
    """Takes the events of a log in their order; `wanted` are events whose states are kept, too.

    `missing` are events that a strand went on from and whose states were not kept: fold the log
    again with these `wanted`.
    """

    def __init__(self, wanted: Collection[EventId] = ()) -> None:
        self.missing: set[EventId] = set()
        self.strands = Strands()
        self._wanted = frozenset(wanted)
        self._states: list[TurnState] = []
        self._recent: list[deque[_Then]] = []
        self._kept: dict[EventId, _Then] = {}

    def apply(self, event: Event) -> int:
        """Take in the log's next event; the number of its strand."""
        at = self.strands.follow(event)
        if at == len(self._states):
            self._states.append(self.taken_over(self.strands.taken_over(event)))
            self._recent.append(deque(maxlen=RECENT))
        state = self._states[at] = evolve(self._states[at], event)
        then = (event.id, event.header, state)
        self._recent[at].append(then)
        if self._wanted and event.id in self._wanted:
            self._kept[event.id] = then
        return at

    def state(self, own: ChainKey | None) -> TurnState:
        """The state of a chain; where it has no event, of the strand that counts most."""
        at = self.strands.of_chain(own)
        if at is None:
            ranked = range(len(self._states))
            at = max(ranked, key=self.strands.rank, default=None)
        return TurnState() if at is None else self._states[at]

    def taken_over(self, heads: Collection[Head]) -> TurnState:
        """The state that whoever takes over these events goes on from: of the one that counts."""
        found = self._counting(heads)
        return TurnState() if found is None else found[2]

    def line_of(self, heads: Collection[Head]) -> EventId | None:
        """The one of these events that counts: whoever takes them over names it."""
        found = self._counting(heads)
        return None if found is None else found[0]

    def _counting(self, heads: Collection[Head]) -> _Then | None:
        found = [kept for head in heads if (kept := self._state_at(head)) is not None]
        return max(found, key=lambda kept: rank_of(kept[1], kept[0]), default=None)

    def _state_at(self, head: Head) -> _Then | None:
        kept = self._kept.get(head.id)
        if kept is not None:
            return kept
        for at in self.strands.sides((head.machine, head.incarnation)):
            if at == len(self._recent):
                continue
            for then in reversed(self._recent[at]):
                if then[0] == head.id:
                    return then
        self.missing.add(head.id)
        return None
