"""Visits every reachable world, breadth first, and shows the shortest way to a broken rule."""

import gc
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import chain

from model.log import Log
from model.moves import moves, rests, waits, world_faults
from model.world import Setup, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A broken rule and the moves that lead to it."""

    rule: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        steps = "".join(f"\n  {number:3} {label}" for number, label in enumerate(self.trace, 1))
        return f"{self.rule} is broken after{steps}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """What a search saw: worlds, moves between them, logs, labels, and the first broken rule."""

    worlds: int
    moves: int
    logs: frozenset[Log]
    labels: frozenset[str]
    found: Found | None


class Search:
    """One search of at most `limit` worlds; `only` are the rules that count, all when None."""

    def __init__(
        self, setup: Setup, only: Collection[str] | None = None, limit: int = 2_000_000
    ) -> None:
        self._setup = setup
        self._only = only
        self._limit = limit
        self._worlds: list[World] = []
        self._number: dict[World, int] = {}
        self._came: list[tuple[int, str]] = []
        self._back: list[list[tuple[int, bool]]] = []
        self._moves = 0
        self._labels: set[str] = set()

    def run(self) -> Visited:
        """Visit everything, or up to the first broken rule."""
        self._add(self._setup.first(), -1, "")
        collects = gc.isenabled()
        gc.disable()  # nothing here is ever garbage, and looking for some takes a third of the time
        try:
            found = self._forward() or self._stuck()
        finally:
            if collects:
                gc.enable()
        return Visited(
            worlds=len(self._worlds),
            moves=self._moves,
            logs=frozenset(world.log for world in self._worlds),
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
            world = self._worlds[at]
            for move in moves(self._setup, world):
                self._moves += 1
                self._labels.add(move.label.partition(" as ")[0])
                broken = self._broken(chain(move.faults, world_faults(self._setup, move.world)))
                if broken is not None:
                    return Found(rule=broken, trace=(*self._trace(at), move.label))
                number = self._add(move.world, at, move.label)
                if move.kind in ("step", "person"):
                    self._back[number].append((at, move.kind == "person"))
            at += 1
        return None

    def _broken(self, faults: Collection[str]) -> str | None:
        return next((one for one in faults if self._only is None or one in self._only), None)

    def _trace(self, at: int) -> tuple[str, ...]:
        labels: list[str] = []
        while at > 0:
            at, label = self._came[at]
            labels.append(label)
        return tuple(reversed(labels))

    def _stuck(self) -> Found | None:
        """Every world has a way to rest; and without a person, to rest or to wait for one."""
        ways: tuple[tuple[str, Callable[[World], bool], bool], ...] = (
            ("every_world_can_come_to_rest", rests, True),
            ("workers_alone_come_to_rest_or_to_a_question", lambda w: rests(w) or waits(w), False),
        )
        for rule, goal, persons in ways:
            if self._only is not None and rule not in self._only:
                continue
            reach = self._reach(goal, persons=persons)
            for number, reached in enumerate(reach):
                if not reached:
                    return Found(rule=rule, trace=self._trace(number))
        return None

    def _reach(self, goal: Callable[[World], bool], *, persons: bool) -> bytearray:
        reached = bytearray(len(self._worlds))
        todo = [number for number, world in enumerate(self._worlds) if goal(world)]
        for number in todo:
            reached[number] = 1
        while todo:
            for before, person in self._back[todo.pop()]:
                if not reached[before] and (persons or not person):
                    reached[before] = 1
                    todo.append(before)
        return reached
