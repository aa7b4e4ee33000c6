"""Visits every reachable world of moves, breadth first, and shows the shortest way to a fault."""

import gc
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from model.moving.moves import broken, moves, settled
from model.moving.world import Setup, World
from model.search import Found

STUCK = "every_world_can_come_to_one_holder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """What a search saw."""

    worlds: int
    moves: int
    labels: frozenset[str]
    found: Found | None


class Search:
    """One search of at most `limit` worlds; `only` are the rules that count, all when None."""

    def __init__(
        self,
        setup: Setup,
        only: Collection[str] | None = None,
        *,
        limit: int = 3_000_000,
    ) -> None:
        self._setup = setup
        self._only = only
        self._limit = limit
        self._ends = setup.setting.settles and (only is None or STUCK in only)
        self._worlds: list[World] = []
        self._number: dict[World, int] = {}
        self._came: list[tuple[int, str]] = []
        self._back: list[list[int]] = []
        self._moves = 0
        self._labels: set[str] = set()

    def run(self) -> Visited:
        """Visit everything, or up to the first broken rule."""
        self._add(self._setup.first(), -1, "")
        collects = gc.isenabled()
        gc.disable()  # nothing here is ever garbage
        try:
            found = self._forward() or (self._stuck() if self._ends else None)
        finally:
            if collects:
                gc.enable()
        return Visited(
            worlds=len(self._worlds),
            moves=self._moves,
            labels=frozenset(self._labels),
            found=found,
        )

    def _add(self, world: World, before: int, label: str) -> int:
        number = self._number.get(world)
        if number is None:
            number = self._number[world] = len(self._worlds)
            self._worlds.append(world)
            self._came.append((before, label))
            self._back.append([])
        return number

    def _forward(self) -> Found | None:
        at = 0
        while at < len(self._worlds):
            if at > self._limit:
                raise RuntimeError(f"{self._setup.setting.name}: more than {self._limit} worlds")
            for move in moves(self._setup, self._worlds[at]):
                self._moves += 1
                self._labels.add(move.label)
                known = self._number.get(move.world)
                rule = self._fault(move.faults)
                if rule is None and known is None:
                    rule = self._fault(broken(self._setup, move.world))
                if rule is not None:
                    return Found(rule=rule, trace=(*self._trace(at), move.label))
                if known is None:
                    known = self._add(move.world, at, move.label)
                if self._ends and move.kind in ("step", "person"):
                    self._back[known].append(at)
            at += 1
        return None

    def _fault(self, faults: Iterable[str]) -> str | None:
        for one in faults:
            if self._only is None or one in self._only:
                return one
        return None

    def _trace(self, at: int) -> tuple[str, ...]:
        labels: list[str] = []
        while at > 0:
            at, label = self._came[at]
            labels.append(label)
        return tuple(reversed(labels))

    def _stuck(self) -> Found | None:
        """A world from which nothing that goes on by itself leads to exactly one holder."""
        reached = bytearray(len(self._worlds))
        todo = [n for n, world in enumerate(self._worlds) if settled(self._setup, world)]
        for number in todo:
            reached[number] = 1
        while todo:
            for before in self._back[todo.pop()]:
                if not reached[before]:
                    reached[before] = 1
                    todo.append(before)
        stuck = reached.find(0)
        return None if stuck < 0 else Found(rule=STUCK, trace=self._trace(stuck))
