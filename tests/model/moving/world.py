"""The world of the moves' model: what lies on the disks of three machines, and what was ever said.

A record, a thing that happens and a message are numbers of a table, so that worlds are small and
each step of the real machine is taken once. The network is a set that only grows: whatever was said
may arrive late, twice, in any order, or never.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from sojourn.core import migration
from sojourn.core.ledger_record import LedgerRecord, first_record
from sojourn.core.migration_messages import Abort, Noted, Wanted
from sojourn.core.migration_values import Asked, Here, Ready
from sojourn.errors import SojournError
from sojourn.ids import BlobId, CapsuleId, Epoch, Incarnation, MachineId

CAPSULE = CapsuleId("capsule")
NOTHING = Wanted(contents=(), log=0, prefix=BlobId("0"))
NAMES = "ABC"

Step = Callable[[Any, Any, Here], Ready]


class Purse(NamedTuple):
    """Troubles that are left to happen.

    `moves` begun; `crashes` of a process, also in a durable write; `cuts` of the power; `events`
    that an agent appends; `reds`: checks that fail; `losses` of a record; `restores` of a machine
    to what it was at a `backups`; `copies` of a state folder to another host.
    """

    moves: int = 0
    crashes: int = 0
    cuts: int = 0
    events: int = 0
    reds: int = 0
    losses: int = 0
    backups: int = 0
    restores: int = 0
    copies: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One configuration.

    `machines` are real ones; `astray`: messages also reach a machine that they are not for.
    `marked`: a restored or copied record is noticed by its stamp. `routes` are the moves that may
    begin, as pairs of machines; all when empty. `lean`: answers that nobody waits for any more
    leave the network. `settles`: every world must come to one holder. `shows` are moves that must
    occur.
    """

    name: str
    purse: Purse
    machines: int = 3
    astray: bool = False
    marked: bool = True
    routes: tuple[str, ...] = ()
    lean: bool = False
    settles: bool = True
    shows: tuple[str, ...] = ()


class Machine(NamedTuple):
    """`record` is what a process reads, `under` what is there when the power is cut.

    `runs`: a runner of the agent lives. `boot` counts starts, `lives` losses of the record. `log`
    is the number of events in the live capsule; `landings` are moves whose files lie here. `found`
    is the highest epoch that its folders name. `lost` is the record that was lost.
    """

    record: int
    under: int
    up: bool = True
    runs: bool = False
    boot: int = 0
    lives: int = 0
    log: int = 0
    landings: frozenset[str] = frozenset()
    found: int = 0
    lost: int = -1
    clone: bool = False


class World(NamedTuple):
    """`said` is a set of numbers as bits. `acked` counts acknowledged events, `top` is the highest
    epoch that was ever activated, `given_up` are moves that their source cancelled."""

    machines: tuple[Machine, ...]
    purse: Purse
    said: int = 0
    acked: int = 0
    top: int = 1
    made: int = 0
    given_up: frozenset[str] = frozenset()
    backup: tuple[int, Machine] | None = None

    def put(self, at: int, machine: Machine) -> "World":
        machines = self.machines
        return self._replace(machines=(*machines[:at], machine, *machines[at + 1 :]))

    def spend(self, name: str) -> "World":
        left = self.purse._replace(**{name: getattr(self.purse, name) - 1})
        return self._replace(purse=left)


class Move(NamedTuple):
    """`kind`: step (goes on by itself), person, plan, trouble; `faults` are rules it breaks."""

    label: str
    kind: str
    world: World
    faults: tuple[str, ...] = ()


class Said(NamedTuple):
    """In the network: a message, its answer, or the end of a check (`to` itself)."""

    sender: str
    to: str
    message: Any
    answer: Any = None
    checked: bool = False


class Table:
    """Values by number, and numbers by value."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class Stepped(NamedTuple):
    """A step's outcome: the record's number, the effects, or nothing when it was refused."""

    record: int
    effects: tuple[Any, ...]


class Setup:
    """A setting with its machine; `planted` names faults of the driver."""

    def __init__(
        self,
        setting: Setting,
        step: Step = migration.step,
        planted: frozenset[str] = frozenset(),
    ) -> None:
        self.setting = setting
        self.planted = planted
        self.records = Table()
        self.said = Table()
        self.states: list[str] = []
        self._step = step
        self.changes: dict[tuple[int, int], Any] = {}
        self._stepped: dict[tuple[int, Any, int, int, int, int], Stepped | None] = {}
        self.none = self.record(None)
        self._waits: dict[tuple[str, int], frozenset[tuple[str, str, str]]] = {}

    def record(self, value: LedgerRecord | None) -> int:
        number = self.records.number(value)
        if number == len(self.states):
            self.states.append("NONE" if value is None else value.state)
        return number

    def first(self) -> World:
        held = first_record(
            capsule=CAPSULE, incarnation=Incarnation("first"), folder="", workspace=""
        )
        none = Machine(record=self.none, under=self.none)
        first = Machine(record=self.record(held), under=self.record(held), runs=True)
        others = tuple(none for _ in range(self.setting.machines - 1))
        return World(machines=(first, *others), purse=self.setting.purse)

    def name(self, at: int, machine: Machine) -> str:
        """The machine's id; a clone has that of the first one."""
        return "A" if machine.clone else NAMES[at]

    def stepped(
        self, at: int, machine: Machine, record: int, name: Any, given: Any
    ) -> Stepped | None:
        """What the real machine says to `given`, which `name` names; None when it refuses."""
        key = (record, name, at, machine.boot, machine.lives, machine.found)
        if key in self._stepped:
            return self._stepped[key]
        here = Here(
            machine=MachineId(self.name(at, machine)),
            capsule=CAPSULE,
            boot=f"{NAMES[at]}{machine.boot}",
            fresh=f"{NAMES[at]}{machine.lives}",
            found=Epoch(machine.found),
        )
        value = self.records.values[record]
        try:
            ready = self._step(value, given, here)
        except SojournError:
            found = None
        else:
            same = ready.record is value
            after = record if same else self.record(ready.record)
            found = Stepped(after, ready.effects)
        self._stepped[key] = found
        return found

    def copied(self, record: int) -> int:
        """How a copied or restored record is read."""
        value = self.records.values[record]
        if value is None or not self.setting.marked:
            return record
        return self.record(msgspec.structs.replace(value, state="SUSPECT", reason="ledger_copied"))

    def waits(self, name: str, record: int) -> frozenset[tuple[str, str, str]]:
        """The answers that a machine with this record can still do something with."""
        known = self._waits.get((name, record))
        if known is None:
            known = self._waits[name, record] = frozenset(_waits(name, self.records.values[record]))
        return known

    def noted(self, number: int) -> tuple[str, str] | None:
        """The target that said that nothing is left, and of which move, if this was said."""
        said: Said = self.said.values[number]
        is_noted = isinstance(said.answer, Noted) and isinstance(said.message, Abort)
        return (said.to, said.message.move) if is_noted else None

    def slot(self, record: int) -> Any:
        value = self.records.values[record]
        return None if value is None else value.slot

    def asked(self, said: Said) -> Asked:
        """What the receiver is told of a message."""
        move = said.message.move
        return Asked(
            message=said.message,
            sender=MachineId(said.sender),
            landing=move,
            folder=move,
            workspace=move,
        )


def _waits(name: str, record: LedgerRecord | None) -> Iterator[tuple[str, str, str]]:
    if record is None or record.travels is None:
        return
    outgoing, slot = record.outgoing, record.slot
    if outgoing is not None and outgoing.ticket is None:
        yield from ((name, outgoing.move, kind) for kind in ("wanted", "prepared"))
    elif outgoing is not None:
        yield from ((name, outgoing.move, kind) for kind in ("committed", "wascancelled"))
    if slot is not None and slot.ticket is None:
        yield name, slot.move, "checked"
    for one in record.travels.cancelled:
        yield from ((name, one.move, kind) for kind in ("noted", "committed"))


def bits(said: int) -> Iterator[int]:
    """The numbers in a set."""
    while said:
        low = said & -said
        yield low.bit_length() - 1
        said ^= low
