"""Two machines on this one, each behind an sshd of its own on loopback, with keys of its own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _env import clean_environment

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")

SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/client_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
ForceCommand {folder}/run.sh
"""

CLIENT = """\
Host *
  IdentityFile {folder}/client_key
  IdentitiesOnly yes
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  BatchMode yes
  LogLevel ERROR
"""


@dataclass(kw_only=True)
class Side:
    """One machine: a state folder, and an sshd that runs what it is told for that state folder."""

    folder: Path
    port: int = 0
    program: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "state"

    @property
    def address(self) -> str:
        user = os.environ.get("USER") or "root"
        return f"ssh://{user if os.getuid() else 'root'}@127.0.0.1:{self.port}"

    def start(self, keys: Path) -> None:
        """Write its configuration and start its sshd. Raises: RuntimeError."""
        self.folder.mkdir(parents=True)
        for name in ("host_key", "client_key", "client_key.pub"):
            shutil.copy(keys / name, self.folder / name)
        with socket.socket() as made:
            made.bind(("127.0.0.1", 0))
            self.port = made.getsockname()[1]
        (self.folder / "sshd_config").write_text(SERVER.format(port=self.port, folder=self.folder))
        (self.folder / "ssh_config").write_text(CLIENT.format(folder=self.folder))
        self.environment = clean_environment() | {
            "SOJOURN_HOME": str(self.home),
            "SOJOURN_SSH": " ".join(self.ssh()[:-1]).replace(f" -p {self.port}", ""),
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        }
        script = self.folder / "run.sh"
        names = ("SOJOURN_HOME", "SOJOURN_SSH", "PATH")
        exports = [f"export {name}={shlex.quote(self.environment[name])}" for name in names]
        lines = ["#!/bin/sh", *exports, 'exec sh -c "$SSH_ORIGINAL_COMMAND"', ""]
        script.write_text("\n".join(lines))
        script.chmod(0o755)
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with (self.folder / "sshd.log").open("wb") as log:
            self.program = subprocess.Popen(
                [str(SSHD), "-D", "-e", "-f", str(self.folder / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        end = time.monotonic() + 20
        while b"listening" not in (self.folder / "sshd.log").read_bytes():
            if time.monotonic() > end:
                raise RuntimeError((self.folder / "sshd.log").read_text())
            time.sleep(0.05)

    def ssh(self) -> list[str]:
        """The command that reaches this side's sshd; the last word is the host."""
        config = str(self.folder / "ssh_config")
        return ["ssh", "-F", config, "-p", str(self.port), "127.0.0.1"]

    def sojourn(self, *words: str) -> dict[str, Any]:
        """The answer of a command on this side. Raises: RuntimeError when it failed."""
        done = subprocess.run(
            [sys.executable, "-m", "sojourn", *words, "--json"],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout[-600:]}{done.stderr[-600:]}")
        return json.loads(done.stdout)

    def end(self) -> None:
        """End its daemon and its sshd."""
        try:
            pid = json.loads((self.home / "daemon.lock").read_text())["pid"]
            os.kill(pid, signal.SIGTERM)
        except (OSError, ValueError, KeyError):
            pass
        if self.program is not None:
            self.program.terminate()
            self.program.wait(30)


@contextmanager
def two_sides(folder: Path) -> Generator[tuple[Side, Side]]:
    """Both started, and ended afterwards. Raises: RuntimeError."""
    if SSHD is None:
        raise RuntimeError("there is no sshd here: install openssh-server")
    keys = folder / "keys"
    keys.mkdir(parents=True)
    for name in ("host_key", "client_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True
        )
    sides = (Side(folder=folder / "here"), Side(folder=folder / "there"))
    try:
        for side in sides:
            side.start(keys)
        yield sides
    finally:
        for side in sides:
            side.end()
