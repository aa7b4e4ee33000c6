"""A real sshd on loopback with keys and configuration of its own, and a client that knows it."""

import getpass
import os
import select
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daemon.daemons import environment

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
RUN = Path("/run/sshd")

SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/client_key.pub
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
ForceCommand {command}
"""

CLIENT = """\
Host *
  IdentityFile {folder}/client_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  BatchMode yes
  LogLevel ERROR
"""


@dataclass
class Sshd:
    """Where it listens, and the value of SOJOURN_SSH for who shall reach it."""

    address: str
    ssh: str
    program: "subprocess.Popen[str]"


@contextmanager
def sshd(folder: Path, home: Path, *, command: str = "") -> Generator[Sshd]:
    """It runs `sojourn serve --stdio` for the state folder `home`, or `command`."""
    assert SSHD is not None
    folder.mkdir()
    for name in ("host_key", "client_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    forced = folder / "serve.sh"
    forced.write_text(command or _serve(home))
    forced.chmod(0o755)
    if os.getuid() == 0:
        RUN.mkdir(mode=0o755, exist_ok=True)
    port = _free_port()
    config = folder / "sshd_config"
    config.write_text(SERVER.format(port=port, folder=folder, command=forced))
    host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (folder / "ssh_config").write_text(CLIENT.format(folder=folder))
    with subprocess.Popen(
        [SSHD, "-D", "-e", "-f", str(config)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            _listens(program)
            yield Sshd(
                address=f"ssh://{getpass.getuser()}@127.0.0.1:{port}",
                ssh=f"ssh -F {folder / 'ssh_config'}",
                program=program,
            )
        finally:
            program.terminate()
            program.wait(30)


def _serve(home: Path) -> str:
    lines = ["#!/bin/sh"]
    for name, text in environment(home).items():
        lines.append(f"export {name}={shlex.quote(text)}")
    lines.append(f"exec {shlex.quote(sys.executable)} -m sojourn serve --stdio")
    return "\n".join([*lines, ""])


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def _listens(program: "subprocess.Popen[str]") -> None:
    assert program.stderr is not None
    said = ""
    while "Server listening" not in said:
        assert select.select([program.stderr], [], [], 30)[0], said
        line = program.stderr.readline()
        assert line, said
        said += line
