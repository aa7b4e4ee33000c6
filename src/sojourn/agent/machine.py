"""This install: its state folder, key, ledger, inbox, queue, and the capsules it knows.

Models, tools and the sandbox are loaded when they are first needed: looking needs none of them.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path

from sojourn.agent.agent import Agent
from sojourn.agent.look import Look, look_at
from sojourn.agent.places import (
    Place,
    check_apart,
    check_name,
    find_place,
    is_capsule,
    is_other_folder,
    known_places,
    last_used,
    place_at,
    record_of,
    reference,
    use,
)
from sojourn.agent.report import Accepted
from sojourn.agent.scripts import located, remember, written_name
from sojourn.agent.sending import accept
from sojourn.agent.words import SYSTEM_PROMPT
from sojourn.agent.workspace import landing_in, workspace_in
from sojourn.core.ledger_record import first_record
from sojourn.core.mask import Mask, secret_values
from sojourn.drive.create import new_capsule
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer, Unwatched
from sojourn.drive.opening import hold_capsule
from sojourn.drive.receiving import MoveReceiver
from sojourn.errors import CallError, SojournError, UsageError
from sojourn.format.event import Configured
from sojourn.format.failures import Finding, finding
from sojourn.format.timeline_read import Known
from sojourn.ids import CapsuleId, RequestId
from sojourn.keys.machine import FileMachineKey
from sojourn.ports import Job, Message, Model, Sandbox, Tool
from sojourn.queues.sqlite import SqliteQueue
from sojourn.store.create import create_capsule
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import Durable
from sojourn.store.files import FolderFiles
from sojourn.store.folder import FolderStore
from sojourn.store.inbox import FolderInbox
from sojourn.store.ledger import FileLedger
from sojourn.store.lock import FileLock
from sojourn.store.making import FolderMaker
from sojourn.store.merging import FolderMerger
from sojourn.store.mounts import network_type
from sojourn.store.release import FileRelease
from sojourn.store.rewriting import FolderRewriter
from sojourn.store.state import StateFolder, state_root
from sojourn.store.system import OsClock, OsRandomness, boot_id, host_digest

MODEL_VARIABLE = "SOJOURN_MODEL"


class Machine:
    """One install that can hold capsules; making it touches nothing on disk.

    `environment` gives state folder, keys and the default model (default: the process's own);
    `disk` is the file system below everything that must be durable (default: the real one).
    """

    def __init__(
        self, environment: Mapping[str, str] | None = None, *, disk: Disk | None = None
    ) -> None:
        self._disk = disk or OsDisk()
        self.environment = dict(os.environ if environment is None else environment)
        home = os.path.expanduser("~")
        root = state_root(self.environment, home, os.getcwd())
        self.state = StateFolder(root=root)
        self._queue_was_missing = not os.path.exists(self.state.queue)

    @property
    def home(self) -> str:
        """The state folder's path."""
        return self.state.root

    @cached_property
    def worker(self) -> str:
        """This process as the queue's jobs name it."""
        return f"{os.getpid()}-{self.ports.randomness.token(8).hex()}"

    @cached_property
    def ports(self) -> Ports:
        """The machine's ports; the state folder is made when something is first written."""
        disk, clock, host = self._disk, OsClock(), host_digest()
        return Ports(
            ledger=FileLedger(self.state.ledger, disk=disk, host=host),
            lock=FileLock(self.state.locks, command=_command(), clock=clock, disk=disk),
            inbox=FolderInbox(self.state.inbox, disk=disk),
            queue=self._queue,
            landing=landing_in(self.state, disk),
            release=FileRelease(self.state.releases, boot=boot_id(), disk=disk),
            key=FileMachineKey(self.state.root, files=Durable(disk), host=host),
            maker=FolderMaker(disk),
            clock=clock,
            randomness=OsRandomness(),
            boot=boot_id(),
            store_at=lambda folder: FolderStore(folder, disk=disk),
            merger_at=lambda folder, other: FolderMerger(folder, other, disk=disk),
            rewriter_at=lambda folder: FolderRewriter(folder, disk=disk),
            sandbox_for=self._sandbox,
            workspace_at=partial(workspace_in, self.state, disk=disk),
            network_at=network_type,
            is_other_folder=is_other_folder,
            mask=Mask(secret_values(self.environment)),
        )

    @cached_property
    def _queue(self) -> SqliteQueue:
        return SqliteQueue(self.state.queue, clock=OsClock())

    def _sandbox(self, capsule: CapsuleId) -> Sandbox:
        from sojourn.sandboxes.host import HostSandbox

        return HostSandbox(
            capsule=capsule,
            runs=Path(self.state.runs),
            boot=boot_id(),
            environment=self.environment,
        )

    def find(self, where: str | None) -> Place:
        """The capsule that `where` names (docs/cli.md#naming).

        Raises: NotFoundError, UsageError.
        """
        return find_place(self.ports, where, last_used=last_used(self.state))

    def live(self, place: Place) -> Place:
        """The capsule that this machine runs under the same id, where `place` may be a copy."""
        record = record_of(self.ports, place.capsule) if place.capsule else None
        if record is None or not is_capsule(record.folder):
            return place
        live = place_at(self.ports, record.folder)
        return live if live.capsule == place.capsule else place

    def places(self) -> tuple[Place, ...]:
        """Every capsule that this machine knows."""
        return known_places(self.ports)

    def reference(self, place: Place, known: Sequence[Place] | None = None) -> str:
        """How to name the capsule in a shell, from this folder, so that it is found again.

        Its name where that means this one alone, else its path; `known` saves reading `places()`.
        """
        try:
            return reference(place, self.places() if known is None else known)
        except (OSError, SojournError):
            return reference(place, ())

    async def create(
        self,
        folder: str | None = None,
        *,
        name: str | None = None,
        model: str | None = None,
        system: str | None = None,
        workspace: str | None = None,
        tools: Sequence[Tool | Callable[..., object]] = (),
    ) -> Place:
        """Make a capsule with all its files, held by this machine.

        Default folder `<state>/capsules/<name>`, default workspace `<state>/workspaces/<id>`.

        Raises: UsageError when something is there already, or one folder lies inside the other.
        """
        name = check_name(
            name or (os.path.basename(os.path.realpath(folder)) if folder else "agent")
        )
        target = os.path.realpath(folder or os.path.join(self.state.capsules, name))
        if is_capsule(target):
            raise UsageError(
                f"{target} holds a capsule already",
                code="exists",
                state="Nothing was changed.",
                hint=f"Run it with `sojourn run {self.reference(place_at(self.ports, target))}`, "
                "or choose another name or folder.",
            )
        if workspace is not None:
            if not os.path.isdir(workspace):
                raise UsageError(
                    f"the workspace {workspace} is not a folder",
                    code="no_workspace",
                    state="Nothing was made.",
                    hint="Make the folder first, or leave --workspace out.",
                )
            check_apart(target, workspace)
        if model is not None:
            self._check_model(model)
        chosen = model or self.environment.get(MODEL_VARIABLE, "")
        specs = tuple(tool.spec for tool in _toolbox(tools).values())
        configured = Configured(
            model=written_name(chosen),
            system=system or SYSTEM_PROMPT,
            tools=specs,
        )
        made = new_capsule(self.ports, name=name, configured=configured)
        live = os.path.realpath(workspace or self.state.workspace(made.capsule))
        check_apart(target, live)
        record = first_record(
            capsule=made.capsule, incarnation=made.incarnation, folder=target, workspace=live
        )
        os.makedirs(live, exist_ok=True)
        with self.ports.lock.acquire(made.capsule):
            self.ports.ledger.save(record)
            create_capsule(target, made.files)
        remember(self.state, made.capsule, chosen)
        return place_at(self.ports, target)

    async def send(
        self, place: Place, text: str, *, request: str | None = None, author: str = "user"
    ) -> Accepted:
        """Accept a message for the agent, durable on return, and wake the queue.

        Raises: UsageError `request_reused` when the id is known with other content.
        """
        chosen = RequestId(request or self.ports.randomness.token(16).hex())
        message = Message(request=chosen, author=author, text=self.ports.mask.text(text))
        return accept(self.ports, self.live(place), message, named=request is not None)

    def look(self, place: Place) -> Look:
        """Read and fold the whole capsule; takes no lock and changes nothing."""
        return look_at(self.ports, place)

    @asynccontextmanager
    async def hold(
        self,
        place: Place,
        *,
        tools: Sequence[Tool | Callable[..., object]] = (),
        model: str | None = None,
        ask: Callable[[str], Awaitable[str]] | None = None,
        observer: Observer | None = None,
    ) -> AsyncGenerator[Agent]:
        """Hold the capsule to run its agent here.

        Raises: HeldElsewhereError, FormatError, StorageError as docs/protocol.md#holding says.
        """
        watching = observer or Unwatched()
        async with hold_capsule(self.ports, place.folder, observer=watching) as hold:
            agent = Agent(
                machine=self,
                place=place,
                hold=hold,
                tools=_toolbox(tools),
                model_name=model,
                ask=ask,
                observer=watching,
            )
            use(self.state, place.capsule)
            try:
                yield agent
            finally:
                await agent.aclose()

    def model(self, name: str) -> Model:
        """The model of that name, ready to be asked; no connection is made yet.

        Raises: NotFoundError `provider_unknown`; CallError `key_missing`; UsageError.
        """
        from sojourn.models.choose import open_model

        return open_model(
            name,
            environment=self.environment,
            clock=self.ports.clock,
            randomness=self.ports.randomness,
        )

    def model_of(self, place: Place, recorded: str) -> Model:
        """The model that the capsule's log names; a script is found where this machine knows it.

        Raises: NotFoundError `script_missing` too, and as `model` does.
        """
        return self.model(located(self.state, place, recorded))

    def model_named(self, place: Place, name: str) -> tuple[Model, str]:
        """The model that a person named from here, and its name as the capsule is to hold it.

        Raises: as `model` does.
        """
        model = self.model(name)
        remember(self.state, place.capsule, name)
        return model, written_name(name)

    def _check_model(self, name: str) -> None:
        """Refuse a model that can never be asked; a key may still be missing."""
        try:
            self.model(name)
        except CallError:
            return

    def no_model(self) -> UsageError:
        """The error of an agent that has no model, with what could be used here."""
        from sojourn.models.choose import keys_seen

        seen = ", ".join(keys_seen(self.environment)) or "none"
        return UsageError(
            "this agent has no model yet",
            code="no_model",
            state=f"Keys seen in the environment: {seen}.",
            hint="Name one with -m PROVIDER/NAME, or set SOJOURN_MODEL; `sojourn demo` needs none.",
        )

    def rested(self, place: Place) -> None:
        """The turn rests and the log says so: its job is done, unless more was sent meanwhile.

        Only under the capsule's lock, so nobody else can be at work on the job.
        """
        job = self.ports.queue.lease(place.capsule, self.worker, is_free=lambda _: True)
        if job is not None and not self.ports.inbox.items(place.capsule):
            self.ports.queue.ack(job)

    def verify(self, place: Place) -> Iterator[Finding]:
        """Check every byte of the capsule against what was written, in the order of the files."""
        from sojourn.format.verify import verify

        record = record_of(self.ports, place.capsule) if place.capsule else None
        known = None
        if record is not None and record.folder == place.folder and record.tip.length:
            known = Known(length=record.tip.length, last=record.tip.last)
        left = self.ports.lock.left(place.capsule) if place.capsule else None
        same_boot = left is None or left.boot == self.ports.boot
        files = FolderFiles(place.folder)
        for path in files.odd():
            yield finding("path_unsafe", path, None, "it is not a regular file")
        yield from verify(files, known=known, same_boot=same_boot)

    def receiver(self, boot: str) -> MoveReceiver:
        """What answers other machines that move a capsule here; `boot` is new at each start.

        `boot_up` of it is awaited before its first answer.
        """
        from sojourn.agent.moves import receiver

        return receiver(self, boot)

    def jobs(self) -> tuple[Job, ...]:
        """The queue's jobs, rebuilt first from ledger and inboxes."""
        self._rebuild_queue()
        return self.ports.queue.jobs()

    async def work(
        self,
        *,
        watch: bool,
        observer_for: Callable[[Place], Observer],
        stop: asyncio.Event,
        failed: Callable[[Place, SojournError], None],
        places: Sequence[Place] = (),
    ) -> int:
        """Run turns whose worker is gone, until idle or `stop` (`watch`); returns their number."""
        from sojourn.agent.working import work

        self._rebuild_queue()
        return await work(
            self, watch=watch, observer_for=observer_for, stop=stop, failed=failed, places=places
        )

    def _rebuild_queue(self) -> None:
        """One job for each waiting capsule and, when the queue was lost, for each open turn."""
        from sojourn.agent.working import rebuild_queue

        lost = self._queue_was_missing or bool(self._queue.set_aside)
        rebuild_queue(self, lost=lost)
        self._queue_was_missing = False


def _toolbox(tools: Sequence[Tool | Callable[..., object]]) -> Mapping[str, Tool]:
    """The built-in tools and these."""
    from sojourn.tools.toolbox import built_in, toolbox

    return toolbox((*built_in(), *tools))


def _command() -> str:
    """What the lock says about this process, without arguments that people typed."""
    return os.path.basename(sys.argv[0] or "python") + " " + " ".join(sys.argv[1:2])
