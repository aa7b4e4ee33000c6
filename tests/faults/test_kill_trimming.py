"""The commands `redact` and `repair`, killed at calls that write: run again, each completes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.test_kill_anywhere import KILLED, STRACE, calls_of, traced

SYSCALLS = ("rename", "fsync", "unlink")
SECRET = b"hunter2"
LOG = "box/memory/timeline_events.jsonl"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(STRACE is None, reason="strace is not installed"),
]

COMMANDS = {
    "redact": ("redact", "./box", "5", "--reason", "a password", "--yes"),
    "repair": ("repair", "./box"),
}


class World:
    """A folder with a capsule that holds a secret, and, for repair, a destroyed line."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        self.folder, self.name = folder, name
        self.sojourn("init", "./box", "-n", "box", "-m", "echo")
        said = self.sojourn("run", "./box", f"{SECRET.decode()} " * 4000)
        assert said.returncode == 0, said.stderr
        if name == "repair":
            lines = (folder / LOG).read_bytes().split(b"\n")
            self.lost, lines[4] = lines[4], bytes(len(lines[4]))
            (folder / LOG).write_bytes(b"\n".join(lines))

    def sojourn(self, *words: str, trace: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*trace, sys.executable, "-m", "sojourn", *words],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "SOJOURN_HOME": str(self.folder / "state"),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONHASHSEED": "0",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def command(self, trace: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return self.sojourn(*COMMANDS[self.name], trace=trace)

    def check(self) -> None:
        """Whatever was left, the command comes to its end, and the agent runs on."""
        again = self.command()
        done = self.name == "redact" and "gone already" in again.stderr
        assert again.returncode == 0 or done, again.stderr
        verified = self.sojourn("verify", "./box")
        assert verified.returncode == 0, verified.stdout
        ran = self.sojourn("run", "./box", "go on")
        assert ran.returncode == 0, ran.stderr
        held = b"".join(
            path.read_bytes() for path in self.folder.glob("box/**/*") if path.is_file()
        )
        if self.name == "redact":
            # The echo of the message is an event of its own.
            assert held.count(b'"author":"user","parts":[{"text":{') == 0
        else:
            assert bytes(len(self.lost)) in held
        assert not list(self.folder.glob("box/**/.sojourn-*"))


@pytest.mark.parametrize("syscall", SYSCALLS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_did_nothing_or_is_completed(
    name: str, syscall: str, tmp_path: Path
) -> None:
    log = tmp_path / "trace"
    whole = World(tmp_path / "whole", name)
    ran = whole.command(traced(syscall, kill_at=None, log=log))
    assert ran.returncode == 0, ran.stderr
    whole.check()
    for number in range(1, calls_of(log, syscall) + 1):
        world = World(tmp_path / f"world-{number}", name)
        killed = world.command(traced(syscall, kill_at=number, log=tmp_path / "kill"))
        assert killed.returncode in (-9, KILLED), (number, killed.stderr)
        world.check()
