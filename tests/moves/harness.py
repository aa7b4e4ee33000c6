"""A move of a small agent in the middle of its turn, in which anything may fail at any place.

Two machines on the real file system. Below each lies a disk that dies at a chosen operation, and
between them a link that loses, repeats, delays and alters what it carries. After each run both
machines start again, and `judge` says what must hold.
"""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.stage import Stage
from moves.mortal import FastClock, MortalDisk
from sojourn import Machine
from sojourn.agent import Place
from sojourn.agent.moves import move
from sojourn.agent.scripts import remember
from sojourn.core.migration_messages import Answer, Message
from sojourn.drive.receiving import MoveReceiver
from sojourn.drive.settling import pending, settle
from sojourn.errors import (
    HeldElsewhereError,
    MigrationError,
    PeerError,
    SojournError,
    StorageError,
)
from sojourn.format.event import ToolOutcome
from sojourn.ids import CapsuleId, MachineId, MoveId
from sojourn.ports_move import Piece
from sojourn.testing.disk import Died


@dataclass
class Fault:
    """What the link does to the messages of one kind, the first time each is said.

    `before`: it is lost; `after`: its answer is lost; `twice`; `late`: it is lost and comes after
    all is over. `alter` changes a byte of the content number `alter`, `cut` ends a stream after so
    many bytes.
    """

    kind: str = ""
    how: str = ""
    alter: int = -1
    cut: int = -1


@dataclass
class Two:
    """Both machines; `a` has the capsule at first."""

    folder: Path
    capsule: CapsuleId
    disks: dict[str, MortalDisk] = field(default_factory=dict[str, MortalDisk])
    boots: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})
    receivers: dict[str, MoveReceiver] = field(default_factory=dict[str, MoveReceiver])
    machines: dict[str, Machine] = field(default_factory=dict[str, Machine])
    said: list[tuple[str, str, Message]] = field(default_factory=list[tuple[str, str, Message]])

    def machine(self, name: str) -> Machine:
        """The machine as its current process knows it."""
        if name not in self.machines:
            home = str(self.folder / f"state-{name}")
            environment = {"PATH": os.environ["PATH"], "SOJOURN_HOME": home}
            disk = self.disks.setdefault(name, MortalDisk())
            made = self.machines[name] = Machine(environment, disk=disk)
            made.__dict__["ports"] = replace(made.ports, clock=FastClock())
        return self.machines[name]

    async def receiver(self, name: str) -> MoveReceiver:
        if name not in self.receivers:
            made = self.machine(name).receiver(f"{name} {self.boots[name]}")
            await made.boot_up()
            self.receivers[name] = made
        return self.receivers[name]

    def restart(self, name: str) -> None:
        """Its process is gone, and the next one is there: nothing but the disk is left.

        What it asked for counts no more, as its number says; here that process is still there.
        """
        for path in (self.folder / f"state-{name}").glob("releases/*"):
            path.write_text(re.sub(r'"start":"[^"]*"', '"start":"gone"', path.read_text()))
        self.boots[name] += 1
        self.disks[name] = MortalDisk()
        self.machines.pop(name, None)
        self.receivers.pop(name, None)

    def place(self, name: str) -> Place:
        record = self.machine(name).ports.ledger.load(self.capsule)
        assert record is not None
        return self.machine(name).find(record.folder)

    def state(self, name: str) -> str:
        record = self.machine(name).ports.ledger.load(self.capsule)
        return "NONE" if record is None else record.state


class Link:
    """The `Peer` from one machine to another, which fails as `fault` says."""

    def __init__(self, two: Two, source: str, target: str, fault: Fault | None = None) -> None:
        self.two = two
        self.source = source
        self.target = target
        self.fault = fault or Fault()
        self.address = f"link:{target}"
        self.late: list[Message] = []
        self.deaf = False
        self._failed: set[str] = set()
        self._contents = 0
        self._bytes = 0

    @property
    def machine(self) -> MachineId:
        return MachineId((self.two.folder / f"id-{self.target}").read_text())

    @property
    def sender(self) -> MachineId:
        return MachineId((self.two.folder / f"id-{self.source}").read_text())

    async def ask(self, message: Message) -> Answer:
        kind = str(type(message).__struct_config__.tag)
        if self.deaf and "activate" in self._failed:
            raise PeerError("nobody answers any more")
        self.two.said.append((self.source, self.target, message))
        how = self.fault.how if kind == self.fault.kind and kind not in self._failed else ""
        self._failed.add(kind)
        if how in ("before", "late"):
            self.late += [message] if how == "late" else []
            raise PeerError("lost", may_have_arrived=True)
        answer = await self.deliver(message)
        if how == "twice":
            answer = await self.deliver(message)
        if how == "after":
            raise PeerError("the answer is lost", may_have_arrived=True)
        return answer

    async def deliver(self, message: Message) -> Answer:
        """The other machine reads it; when that machine dies there is no answer."""
        try:
            receiver = await self.two.receiver(self.target)
            return await receiver.answer(message, sender=self.sender, address="")
        except (Died, StorageError) as death:
            self.two.restart(self.target)
            raise PeerError("it died", may_have_arrived=True) from death

    async def send(self, capsule: CapsuleId, move: MoveId, pieces: AsyncIterable[Piece]) -> None:
        try:
            receiver = await self.two.receiver(self.target)
            await receiver.take(capsule, move, self._carried(pieces), sender=self.sender)
        except (MigrationError, StorageError) as error:
            raise PeerError(error.message, code=error.code) from error
        except Died as death:
            self.two.restart(self.target)
            raise PeerError("it died", may_have_arrived=True) from death

    async def _carried(self, pieces: AsyncIterable[Piece]) -> AsyncIterator[Piece]:
        async for piece in pieces:
            self._contents += 1
            data = piece.data
            if self._contents - 1 == self.fault.alter and data:
                data = bytes((data[0] ^ 1,)) + data[1:]
            left = self.fault.cut - self._bytes
            if self.fault.cut >= 0 and len(data) > left >= 0:
                self.fault.cut = -1
                if left:
                    yield replace(piece, data=data[:left])
                raise MigrationError("the link was cut")
            self._bytes += len(data)
            yield replace(piece, data=data)

    async def aclose(self) -> None:
        pass


def prepared(folder: Path) -> Path:
    """A capsule whose agent stands in the middle of a turn, to be copied for each run.

    One unsafe call is done; the next reply asks for another one. Both write outside the workspace.
    """
    folder.mkdir()
    outside = folder / "outside.txt"
    steps = [
        {"name": n, "calls": [{"tool": "shell", "args": {"command": f"echo {n} >> {outside}"}}]}
        for n in ("one", "two")
    ]
    stage = Stage(folder, [*steps, {"name": "end", "text": "Done."}])
    home = {"PATH": os.environ["PATH"], "SOJOURN_HOME": str(folder / "state-a")}
    machine = Machine(home)
    work = folder / "state-a" / "workspaces"

    async def run() -> CapsuleId:
        place = await machine.create(None, name="agent", model=stage.model)
        assert place.workspace is not None
        Path(place.workspace, "deep").mkdir()
        Path(place.workspace, "deep", "file.txt").write_text("work" * 5000)
        Path(place.workspace, "run.sh").write_text("true\n")

        async with machine.hold(place) as agent:

            class Watching:
                def event(self, event: Any) -> None:
                    if isinstance(event.body, ToolOutcome):
                        agent.leave()

                def delta(self, delta: Any) -> None: ...
                def output(self, tool: str, data: bytes) -> None: ...
                def note(self, text: str) -> None: ...

            agent._observer = Watching()  # pyright: ignore[reportPrivateUsage]
            await agent.run("go")
        return place.capsule

    capsule = asyncio.run(run())
    assert work.is_dir()
    for name in "ab":
        there = Machine({**home, "SOJOURN_HOME": str(folder / f"state-{name}")})
        (folder / f"id-{name}").write_text(there.ports.key.machine())
        remember(there.state, capsule, stage.model)
    (folder / "capsule-id").write_text(capsule)
    assert outside.read_text() == "one\n"
    return folder


def two_in(template: Path) -> Two:
    """The machines of the template as they were at first.

    They stay under their paths, which ledger and script name; a copy beside is put back.
    """
    kept = template.with_name(f"{template.name}-kept")
    if not kept.exists():
        shutil.copytree(template, kept, symlinks=True)
    restored(kept, template)
    return Two(template, CapsuleId((template / "capsule-id").read_text()))


def restored(kept: Path, template: Path) -> None:
    """Put the copy back; the ledger's stamps are made anew, since a copied one is noticed."""
    for name in ("state-a", "state-b", "outside.txt", "ledger.jsonl"):
        path = template / name
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        source = kept / name
        if source.is_dir():
            shutil.copytree(source, path, symlinks=True)
        elif source.exists():
            shutil.copy(source, path)
    ledger = Machine({"PATH": "", "SOJOURN_HOME": str(template / "state-a")}).ports.ledger
    for capsule in ledger.capsules():
        record = ledger.load(capsule)
        assert record is not None
        ledger.save(replace_state(record))


def replace_state(record: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(record, state="HOLDER", reason="")


async def attempt(two: Two, link: Link, source: str = "a") -> str:
    """Try to move; what came of it in a word. A source that dies starts again."""

    class Quiet:
        def phase(self, phase: str) -> None: ...
        def sent(self, size: int) -> None: ...

    try:
        machine = two.machine(source)
        moved = await move(machine, two.place(source), link, watcher=Quiet())
        return moved.outcome
    except (Died, StorageError):
        two.restart(source)
        return "died"
    except (SojournError, OSError) as error:
        return getattr(error, "code", "os_error")


async def recovered(two: Two, *, tries: int = 3) -> None:
    """Both machines start again, the link is sound, and what is open is settled."""
    for name in "ab":
        two.restart(name)
    for name in "ab":
        await two.receiver(name)
    for _ in range(tries):
        for source, target in (("a", "b"), ("b", "a")):
            ports = two.machine(source).ports
            record = ports.ledger.load(two.capsule)
            if record is None or not (pending(ports, record) or record.state == "FROZEN"):
                continue
            try:
                await settle(ports, Link(two, source, target), two.capsule, record.folder)
            except MigrationError as error:
                assert error.code == "target_forgot", error
            except HeldElsewhereError as error:  # pragma: no cover
                raise AssertionError("somebody holds it who is gone") from error


def judge(two: Two, *, moved: bool | None = None) -> str:
    """What must hold after any trouble; the name of the machine that has the capsule.

    Raises: AssertionError.
    """
    holders = [name for name in "ab" if two.state(name) == "HOLDER"]
    assert len(holders) == 1, {name: two.state(name) for name in "ab"}
    (holder,) = holders
    other = "b" if holder == "a" else "a"
    assert two.state(other) in ("NONE", "RETIRED")
    if moved is not None:
        assert holder == ("b" if moved else "a")
    before = log_of(two, "a")
    asyncio.run(finish(two, holder))
    assert log_of(two, holder).startswith(before)
    for name in "ab":
        arriving = Path(two.machine(name).state.arriving)
        assert not arriving.exists() or not any(arriving.iterdir()), f"staging of {name}"
        home = Path(two.machine(name).home)
        # A request that was half-made is swept by the next one.
        leftovers = [one for one in home.rglob(".sojourn-*") if one.parent.name != "releases"]
        assert not leftovers, leftovers
        if name == holder or two.state(name) == "RETIRED":
            found = [str(one) for one in two.machine(name).verify(two.place(name))]
            assert found == [], found
    capsules = Path(two.machine(other).state.capsules)
    if two.state(other) == "NONE":
        assert not capsules.exists() or not any(capsules.iterdir())
    assert (two.folder / "outside.txt").read_text() == "one\ntwo\n"
    work = two.place(holder).workspace
    assert work is not None
    assert Path(work, "deep", "file.txt").read_text() == "work" * 5000
    return holder


def log_of(two: Two, name: str) -> bytes:
    record = two.machine(name).ports.ledger.load(two.capsule)
    assert record is not None
    return Path(record.folder, "memory/timeline_events.jsonl").read_bytes()


async def finish(two: Two, name: str) -> None:
    """The agent ends its turn at the machine that has it."""
    home = {"PATH": os.environ["PATH"], "SOJOURN_HOME": str(two.folder / f"state-{name}")}
    machine = Machine(home)
    async with machine.hold(machine.find(two.place(name).folder)) as agent:
        report = await agent.resume()
    assert (report.reason, report.text) == ("rest", "Done."), report


Spoil = Callable[[Two], None]
