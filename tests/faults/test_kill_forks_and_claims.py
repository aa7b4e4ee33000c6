"""The real commands, killed at calls that write: run again, each completes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faults.test_kill_anywhere import KILLED, STRACE, calls_of, traced
from sojourn import Machine
from sojourn.core.ledger_record import LedgerRecord
from sojourn.format.capsule_kinds import Claimed, Forked, Restored

SYSCALLS = (
    "rename",
    "renameat",
    "mkdir",
    "mkdirat",
    "symlinkat",
    "unlinkat",
    "fsync",
    "fdatasync",
    "ftruncate",
    "syncfs",
)

FILES = {"one.txt": "1", "deep/two.txt": "2" * 5000}
"""What the snapshot of `box` holds, and a link to the first."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(STRACE is None, reason="strace is not installed"),
]


class World:
    """A folder with a capsule of another machine, `box`, and one held here, `mine`.

    `again` puts it back to what it was, as from a backup: so `mine` wants to be adopted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept = folder.with_name(f"{folder.name}-kept")

    def keep(self) -> None:
        shutil.copytree(self.folder, self._kept, symlinks=True)

    def again(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._kept, self.folder, symlinks=True)

    def environment(self, state: str = "state") -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "SOJOURN_HOME": str(self.folder / state),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
        }

    def sojourn(
        self, *words: str, state: str = "state", trace: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*trace, sys.executable, "-m", "sojourn", *words],
            cwd=self.folder,
            env=self.environment(state),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    @property
    def machine(self) -> Machine:
        return Machine(self.environment())

    def holders(self) -> list[LedgerRecord]:
        ledger = self.machine.ports.ledger
        records = [ledger.load(capsule) for capsule in ledger.capsules()]
        return [record for record in records if record is not None and record.state == "HOLDER"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("prepared"))
    for name, state in (("box", "elsewhere"), ("mine", "state")):
        made = world.sojourn("init", f"./{name}", "-n", name, "-m", "echo", state=state)
        assert made.returncode == 0, made.stderr
    (found,) = (world.folder / "elsewhere/workspaces").iterdir()
    for path, text in FILES.items():
        (found / path).parent.mkdir(exist_ok=True)
        (found / path).write_text(text)
    (found / "link").symlink_to("one.txt")
    taken = world.sojourn("snapshot", "take", "./box", state="elsewhere")
    assert taken.returncode == 0, taken.stderr
    sealed = world.sojourn("export", "./box", "-o", "box.tar", state="elsewhere")
    assert sealed.returncode == 0, sealed.stderr
    (world.folder / "work").mkdir()
    (world.folder / "work/notes").write_text("mine")
    world.keep()
    return world


COMMANDS = {
    "fork": ("fork", "./box", "./second"),
    "fork here": ("fork", "./box", "./second", "--workspace", "./work"),
    "claim": ("claim", "./box", "--yes"),
    "claim here": ("claim", "./box", "--yes", "--workspace", "./work"),
    "adopt": ("adopt", "--all", "--yes"),
    "import as new": ("import", "box.tar", "--as", "./second", "--as-new", "--yes"),
    "export at": ("export", "./box", "--at", "4", "-o", "then.tar"),
}


def kinds(world: World, folder: str, kind: type) -> int:
    look = world.machine.look(world.machine.find(str(world.folder / folder)))
    return sum(isinstance(event.body, kind) for event in look.events_of())


def check(world: World, name: str) -> None:
    """The command, run again, completes; what is held is held once and is sound."""
    again = world.sojourn(*COMMANDS[name])
    if name == "export at":
        check_exported(world, again)
        return
    if name.startswith(("fork", "import")) and again.returncode == 2:
        assert "[exists]" in again.stderr, again.stderr
    else:
        assert again.returncode == 0, again.stderr
    folder, kind = {
        "fork": ("second", Forked),
        "import": ("second", Forked),
        "claim": ("box", Claimed),
    }.get(name.split()[0], ("mine", Claimed))
    assert kinds(world, folder, kind) == 1
    assert kinds(world, folder, Restored) == (name != "adopt")
    assert (world.folder / "work/notes").read_text() == "mine"
    held = [record for record in world.holders() if record.folder.endswith(folder)]
    assert [record.claim for record in held] == [None]
    if name != "adopt":
        is_filled(Path(held[0].workspace), beside={"notes"} if "here" in name else set())
    workspaces = {path.name for path in (world.folder / "state/workspaces").iterdir()}
    mine = world.machine.find(str(world.folder / "mine")).capsule
    assert workspaces <= {mine, *(record.capsule for record in world.holders())}
    for record in world.holders():
        assert os.path.isdir(record.folder)
    assert world.sojourn("verify", f"./{folder}").returncode == 0
    assert not list(world.folder.glob(".sojourn-*"))


def check_exported(world: World, again: "subprocess.CompletedProcess[str]") -> None:
    """The archive is there and sound, nothing is beside it, and nobody holds more than before."""
    assert again.returncode == 0 or "[exists]" in again.stderr, again.stderr
    verified = world.sojourn("verify", "then.tar")
    assert verified.returncode == 0, verified.stderr
    assert {path.name for path in world.folder.iterdir()} == {
        *("box", "box.tar", "elsewhere", "mine", "state", "then.tar", "work")
    }
    assert world.holders() == []
    assert world.sojourn("verify", "./box").returncode == 0


def is_filled(workspace: Path, *, beside: set[str]) -> None:
    """It has the files of the snapshot, whole, and what was there, and no half-made file."""
    assert {path.name for path in workspace.iterdir()} == {"one.txt", "deep", "link"} | beside
    assert {path: (workspace / path).read_text() for path in FILES} == FILES
    assert os.readlink(workspace / "link") == "one.txt"


@pytest.mark.parametrize("syscall", SYSCALLS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_did_nothing_or_is_completed(
    name: str, syscall: str, prepared: World, tmp_path: Path
) -> None:
    log = tmp_path / "trace"
    prepared.again()
    ran = prepared.sojourn(*COMMANDS[name], trace=traced(syscall, kill_at=None, log=log))
    assert ran.returncode == 0, ran.stderr
    check(prepared, name)
    for number in range(1, calls_of(log, syscall) + 1):
        prepared.again()
        trace = traced(syscall, kill_at=number, log=tmp_path / "kill")
        killed = prepared.sojourn(*COMMANDS[name], trace=trace)
        assert killed.returncode in (-9, KILLED), (number, killed.stderr)
        check(prepared, name)
