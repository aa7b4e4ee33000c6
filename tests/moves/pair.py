"""Two machines in one process, a capsule that moves between them, and a peer that is a call."""

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.stage import Stage
from sojourn import Machine
from sojourn.agent import Place
from sojourn.agent.moves import move, receiver
from sojourn.agent.scripts import remember
from sojourn.core.migration_messages import Answer, Message
from sojourn.drive.moving import Moved
from sojourn.drive.receiving import MoveReceiver
from sojourn.ids import CapsuleId, MachineId, MoveId
from sojourn.ports_move import Piece


class Silent:
    """Is told of everything and keeps the phases."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.bytes = 0

    def phase(self, phase: str) -> None:
        self.phases.append(phase)

    def sent(self, size: int) -> None:
        self.bytes += size


class DirectPeer:
    """The other machine, asked by a call."""

    def __init__(self, there: "Side", sender: MachineId) -> None:
        self.there = there
        self.sender = sender
        self.address = f"direct:{there.name}"
        self.asked: list[Message] = []

    @property
    def machine(self) -> MachineId:
        return self.there.machine.ports.key.machine()

    async def ask(self, message: Message) -> Answer:
        self.asked.append(message)
        return await self.there.receiver.answer(message, sender=self.sender, address="")

    async def send(self, capsule: CapsuleId, move: MoveId, pieces: AsyncIterable[Piece]) -> None:
        async def given() -> AsyncIterator[Piece]:
            async for piece in pieces:
                yield piece

        await self.there.receiver.take(capsule, move, given(), sender=self.sender)

    async def aclose(self) -> None:
        pass


@dataclass
class Side:
    """One machine: its state folder, and the daemon that others speak to."""

    name: str
    folder: Path
    model: str
    boots: int = 0
    _receiver: MoveReceiver | None = None

    @property
    def machine(self) -> Machine:
        home = str(self.folder / f"state-{self.name}")
        return Machine({"PATH": os.environ["PATH"], "SOJOURN_HOME": home})

    @property
    def receiver(self) -> MoveReceiver:
        if self._receiver is None:
            self._receiver = receiver(self.machine, f"{self.name} {self.boots}")
        return self._receiver

    def restart(self) -> None:
        """The daemon dies and another one starts."""
        self.boots += 1
        self._receiver = None
        asyncio.run(self.receiver.boot_up())

    def place(self, capsule: CapsuleId) -> Place:
        record = self.machine.ports.ledger.load(capsule)
        assert record is not None
        return self.machine.find(record.folder)


@dataclass
class Pair:
    """A capsule on machine `a`, and an empty machine `b`; `c` for who needs a third."""

    folder: Path
    steps: Sequence[dict[str, Any]]
    tools: Sequence[Any] = ()
    sides: dict[str, Side] = field(default_factory=dict[str, Side])

    def __post_init__(self) -> None:
        self.stage = Stage(self.folder, self.steps, self.tools)
        for name in "abc":
            self.sides[name] = Side(name, self.folder, self.stage.model)
        a = self.sides["a"].machine
        (self.folder / "w").mkdir(exist_ok=True)
        place = asyncio.run(
            a.create(None, name="agent", model=self.stage.model, workspace=str(self.folder / "w"))
        )
        self.capsule = place.capsule
        for name in "bc":
            remember(self.sides[name].machine.state, self.capsule, self.stage.model)

    def run(
        self, name: str, text: str | None = "go", act: Callable[[Any], Any] | None = None
    ) -> Any:
        """Run the agent on a machine."""
        side = self.sides[name]

        async def inside() -> Any:
            machine = side.machine
            async with machine.hold(side.place(self.capsule), tools=self.tools) as agent:
                return await (agent.run(text) if act is None else act(agent))

        return asyncio.run(inside())

    def move(self, source: str, target: str, **options: Any) -> Moved:
        return asyncio.run(self.moving(source, target, **options))

    async def moving(self, source: str, target: str, **options: Any) -> Moved:
        a, b = self.sides[source], self.sides[target]
        machine = a.machine
        peer = options.pop("peer", None) or DirectPeer(b, machine.ports.key.machine())
        options.setdefault("watcher", Silent())
        return await move(machine, a.place(self.capsule), peer, **options)

    def states(self) -> dict[str, str]:
        found = {}
        for name, side in self.sides.items():
            record = side.machine.ports.ledger.load(self.capsule)
            found[name] = "NONE" if record is None else record.state
        return found
