"""One start of the machine's daemon: lock, sockets, key, app, worker, and a clean end."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from sojourn.agent import Machine
from sojourn.agent.links import book_of, certificate_of, identity_of, socket_of
from sojourn.agent.settling import settle_on
from sojourn.daemon.app import app_of
from sojourn.daemon.door import Door
from sojourn.daemon.house import House
from sojourn.daemon.meeting import Meeting
from sojourn.daemon.server import Server
from sojourn.daemon.sockets import far_socket, near_socket
from sojourn.daemon.worker import WorkerProcess
from sojourn.errors import HeldElsewhereError
from sojourn.ids import CapsuleId
from sojourn.peers.pins import admit, server_context
from sojourn.ports import HeldBy
from sojourn.ports_move import Receiver
from sojourn.store.disk import OsDisk
from sojourn.store.durable import Durable
from sojourn.store.lock import FileLock
from sojourn.store.system import OsClock

log = logging.getLogger(__name__)

LOCK: Final = CapsuleId("daemon.lock")
"""The name of the lock's file in the state folder."""

WORK: Final = ("work", "--watch", "--quiet", "--while-stdin")
"""The command of the worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a started daemon says of itself; `listen` is where it takes TLS, if it does."""

    socket: str
    boot: str
    listen: str


def lock_of(machine: Machine) -> FileLock:
    """The lock of the machine's daemon."""
    return FileLock(machine.home, command="sojourn serve", clock=OsClock())


def runs(machine: Machine) -> HeldBy | None:
    """The daemon that runs now, if one does."""
    return lock_of(machine).holder(LOCK)


async def serve(
    machine: Machine,
    *,
    receiver_for: Callable[[str], Awaitable[Receiver]] | None = None,
    listen: str = "",
    works: bool = True,
    begun: Callable[[Begun], None],
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT, SIGHUP or `stop`.

    `receiver_for` takes this start's nonce, and gives what answers moves (default: the machine).

    Raises: HeldElsewhereError `daemon_runs`; UsageError; StorageError when a durable write failed.
    """
    Durable(OsDisk()).make_folder(machine.home)
    os.chmod(machine.home, 0o700)
    boot = machine.ports.randomness.token(16).hex()
    with _locked(machine), near_socket(socket_of(machine)) as near:
        receiver = await (receiver_for(boot) if receiver_for else _receiver(machine, boot))
        house = _house(machine, receiver, boot, stop or asyncio.Event())
        server = Server(app_of(house))
        await server.listen(near)
        where = await _listen(server, house, listen) if listen else ""
        tasks = _tasks(machine, house.stop) if works else ()
        with _signals(house.stop):
            begun(Begun(socket=socket_of(machine), boot=boot, listen=where))
            await house.stop.wait()
        await server.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(OSError):
            os.unlink(socket_of(machine))
    if house.failed is not None:
        raise house.failed


def _tasks(machine: Machine, stop: asyncio.Event) -> tuple[asyncio.Task[None], ...]:
    """What the daemon does unasked: keep a worker going, and settle moves that are open."""
    command = (sys.executable, "-m", "sojourn", *WORK)
    worker = WorkerProcess(command, {**machine.environment, "SOJOURN_HOME": machine.home})
    settling = settle_on(machine, stop, lambda failure: log.info("%s", failure.message))
    return (
        asyncio.create_task(worker.run(stop), name="worker"),
        asyncio.create_task(_watched(settling), name="settling"),
    )


async def _watched(work: Awaitable[None]) -> None:
    """What goes wrong in the background is in the daemon's log."""
    try:
        await work
    except Exception:
        log.exception("settling moves ended")
        raise


async def _receiver(machine: Machine, boot: str) -> Receiver:
    """The machine's own, which has settled what its last start left."""
    receiver = machine.receiver(boot)
    await receiver.boot_up()
    return receiver


def _house(machine: Machine, receiver: Receiver, boot: str, stop: asyncio.Event) -> House:
    identity, certificate, book = (
        identity_of(machine),
        certificate_of(machine),
        book_of(machine),
    )
    return House(
        machine=machine,
        identity=identity,
        certificate=certificate,
        book=book,
        door=Door(identity=identity, boot=boot, book=book),
        receiver=receiver,
        boot=boot,
        stop=stop,
        meeting=Meeting(identity=identity, certificate=certificate, book=book, clock=OsClock()),
    )


async def _listen(server: Server, house: House, listen: str) -> str:
    """Take TLS; machines that are paired while it runs are let in at their next handshake."""
    context, admitted = server_context(house.certificate), set[str]()

    def fresh() -> None:
        admit(context, house.book.known(), admitted)

    fresh()
    made = far_socket(listen)
    host, port = made.getsockname()[:2]
    await server.listen(made, tls=context, fresh=fresh)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def _locked(machine: Machine) -> Generator[None]:
    """The daemon's lock; it goes with the process. Raises: HeldElsewhereError `daemon_runs`."""
    try:
        with lock_of(machine).acquire(LOCK):
            yield
    except HeldElsewhereError as failure:
        who = runs(machine)
        said = "another process" if who is None or not who.pid else f"pid {who.pid}"
        since = "" if who is None or not who.pid else f" since {who.since}"
        raise HeldElsewhereError(
            f"a daemon of this machine runs already: {said}{since}",
            code="daemon_runs",
            state="Nothing was started.",
            hint="Every command uses that one. To start it with other options, end it first "
            "(SIGTERM).",
            since=failure.since,
        ) from None


@contextmanager
def _signals(stop: asyncio.Event) -> Generator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
