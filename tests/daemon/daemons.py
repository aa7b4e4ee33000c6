"""Daemons for tests: one in this process with a receiver that keeps contents in memory, or a real
process; and machines in folders of their own.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from cli.running import schema
from sojourn.agent import Machine
from sojourn.agent.links import book_of, certificate_of, identity_of, socket_of
from sojourn.core.migration_messages import (
    Answer,
    Check,
    Message,
    Noted,
    Offer,
    Wanted,
)
from sojourn.daemon.serve import Begun, serve
from sojourn.errors import MigrationError, SojournError
from sojourn.format.parts import Digest
from sojourn.ids import BlobId, CapsuleId, EventId, MachineId, MoveId
from sojourn.peers.book import Known
from sojourn.peers.shapes import RIGHTS, Right
from sojourn.ports_move import Piece

CAPSULE, MOVE = CapsuleId("c" * 64), MoveId("0" * 32)


def machine(folder: Path) -> Machine:
    """A machine whose state folder is `folder`."""
    return Machine({"SOJOURN_HOME": str(folder), "PATH": os.environ["PATH"]})


def check(*, name: str = "box", move: MoveId = MOVE) -> Check:
    offer = Offer(
        root=Digest("1" * 64), last=EventId("2" * 64), name=name, files=1, size=1, final=False
    )
    return Check(capsule=CAPSULE, move=move, offer=offer)


def piece(data: bytes, *, offset: int = 0, size: int | None = None) -> Piece:
    whole = offset + len(data) if size is None else size
    return Piece(digest=BlobId(sha256(data).hexdigest()), size=whole, offset=offset, data=data)


@dataclass
class Fake:
    """A `Receiver` that keeps in memory what comes; `trouble` is raised instead of an answer."""

    said: list[tuple[Message, MachineId, str]] = field(default_factory=list)
    contents: dict[BlobId, bytes] = field(default_factory=dict)
    takes: int = 0
    trouble: SojournError | None = None
    unwanted: bool = False
    answer_with: Answer = field(default_factory=Noted)
    kept: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, message: Message, *, sender: MachineId, address: str) -> Answer:
        if self.trouble is not None:
            raise self.trouble
        self.said.append((message, sender, address))
        if isinstance(message, Check):
            missing = tuple((Digest(name), 0) for name in ("a" * 64, "b" * 64))
            return Wanted(contents=missing, log=0, prefix=Digest("3" * 64))
        return self.answer_with

    async def take(
        self, capsule: CapsuleId, move: MoveId, pieces: AsyncIterator[Piece], *, sender: MachineId
    ) -> None:
        del sender
        self.takes += 1
        if self.unwanted or (capsule, move) != (CAPSULE, MOVE):
            raise MigrationError("nothing was asked for", code="not_wanted")
        async for part in pieces:
            have = self.contents.get(part.digest, b"")
            assert len(have) == part.offset
            self.contents[part.digest] = have + part.data
            self.kept.set()


@dataclass
class Running:
    """A daemon in this process."""

    machine: Machine
    begun: Begun
    fake: Fake

    @property
    def near(self) -> str:
        return f"unix://{socket_of(self.machine)}"

    @property
    def far(self) -> str:
        return f"https://{self.begun.listen}"


@asynccontextmanager
async def running(
    folder: Path, *, listen: str = "", fake: Fake | None = None
) -> AsyncGenerator[Running]:
    """A daemon for the machine in `folder`, which is stopped at the end."""
    here, stop = machine(folder), asyncio.Event()
    receiver = fake or Fake()

    async def given(_boot: str) -> Fake:
        return receiver

    begun: asyncio.Future[Begun] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(
        serve(
            here,
            receiver_for=given,
            listen=listen,
            works=False,
            begun=begun.set_result,
            stop=stop,
        )
    )
    await asyncio.wait((task, begun), return_when=asyncio.FIRST_COMPLETED)
    if not begun.done():
        await task
    try:
        yield Running(here, begun.result(), receiver)
    finally:
        stop.set()
        await task


def acquaint(
    here: Machine,
    other: Machine,
    *,
    name: str,
    address: str = "",
    rights: Iterable[Right] = RIGHTS,
    capsules: tuple[str, ...] = (),
    certificate: bool = True,
) -> Known:
    """Let `here` know `other`, as a pairing would."""
    from base64 import b64encode

    identity = identity_of(other)
    known = Known(
        name=name,
        machine=identity.machine,
        key=b64encode(identity.public).decode(),
        address=address,
        certificate=b64encode(certificate_of(other).der).decode() if certificate else "",
        rights=tuple(rights),
        capsules=capsules,
    )
    book_of(here).add(known)
    return known


def environment(folder: Path) -> dict[str, str]:
    """For real processes whose state folder is `folder`."""
    bin_folder = Path(sys.executable).parent
    return {
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder.parent),
        "SOJOURN_HOME": str(folder),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


def sojourn(
    folder: Path, *words: str, text: str = "", extra: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the machine in `folder`."""
    return subprocess.run(
        [sys.executable, "-m", "sojourn", *words],
        env={**environment(folder), **(extra or {})},
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def answered(done: "subprocess.CompletedProcess[str]") -> dict[str, object]:
    """What a command said with --json."""
    return json.loads(done.stdout.splitlines()[-1])


@dataclass
class Process:
    """A daemon in a process of its own."""

    folder: Path
    program: "subprocess.Popen[str]"
    said: dict[str, str]

    @property
    def near(self) -> str:
        return f"unix://{self.said['socket']}"

    @property
    def far(self) -> str:
        return f"https://{self.said['listen']}"

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; the exit code."""
        self.program.send_signal(number)
        return self.program.wait(60)


@contextmanager
def process(folder: Path, *options: str) -> Generator[Process]:
    """`sojourn serve` for the machine in `folder`, ended at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "sojourn", "serve", "--json", *options],
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        line = program.stdout.readline()
        try:
            assert line, program.stderr and program.stderr.read()
            schema("serve").validate(json.loads(line))
            yield Process(folder, program, json.loads(line))
        finally:
            if program.poll() is None:
                program.terminate()
                program.wait(60)


def end_daemon(folder: Path) -> None:
    """End the daemon that commands started for the machine in `folder`."""
    from sojourn.daemon.serve import LOCK, lock_of

    found = lock_of(machine(folder)).holder(LOCK)
    if found is None:
        return
    handle = os.pidfd_open(found.pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        import select

        select.select([handle], [], [], 60)
    finally:
        os.close(handle)
