"""A machine in miniature: namespaces of its own for network, processes, mounts and its name.

It has an sshd, a state folder and the machine's daemon, which also listens by TLS. Two cables lead
out of it: `lan` to the switch, which is bad, and `out` to the counter, which is good.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from machines.switch import Switch, tap

Role: TypeAlias = Literal["daemon", "worker", "mover", "pipe"]

HERE = Path(__file__).parent
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
TLS_PORT = 7477

INIT = """
import os, socket, sys, time
socket.sethostname(sys.argv[1])
while True:
    try:
        os.wait()
    except ChildProcessError:
        time.sleep(0.02)
"""

APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--uts")

SERVER = """\
Port 22
ListenAddress {address}
HostKey {keys}/host_key
AuthorizedKeysFile {keys}/client_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
ForceCommand {folder}/serve.sh
"""

CLIENT = """\
Host *
  IdentityFile {keys}/client_key
  IdentitiesOnly yes
  UserKnownHostsFile {keys}/known_hosts
  BatchMode yes
  LogLevel ERROR
"""


def why_not() -> str:
    """Why there can be no machines in miniature here; empty when there can."""
    if os.getuid() != 0:
        return "network namespaces need root"
    lacking = [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]
    lacking += [] if SSHD else ["sshd"]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    tried = subprocess.run(
        ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--uts", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no namespaces here: {tried.stderr.strip()}" if tried.returncode else ""


def until(found: Callable[[], Any], seconds: float, what: str, *, pause: float = 0.02) -> Any:
    """What `found` returns as soon as that is true; RuntimeError after `seconds`."""
    end = time.monotonic() + seconds
    while not (answer := found()):
        if time.monotonic() > end:
            raise RuntimeError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(pause)
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """Its one answer. Raises: RuntimeError when there is none."""
        try:
            return json.loads(self.out)
        except ValueError:
            raise RuntimeError(f"no JSON, exit {self.code}: {self.out}{self.err}") from None


@dataclass
class Host:
    """`number` is 1 to 3; `keys` are those of ssh, which all machines share."""

    name: str
    number: int
    folder: Path
    keys: Path
    counter: str = ""
    faulty: bool = False
    _init: int = 0
    _inside: str = ""
    _programs: "list[subprocess.Popen[bytes]]" = field(
        default_factory=list["subprocess.Popen[bytes]"]
    )

    @property
    def net(self) -> str:
        """The name of its network namespace."""
        return f"sj{os.getpid()}{self.name}"

    @property
    def address(self) -> str:
        return f"10.214.0.{self.number}"

    @property
    def outside(self) -> str:
        """The counter's address on the cable that leads out of this host."""
        return f"{_subnet()}.{4 * self.number + 1}"

    @property
    def home(self) -> Path:
        return self.folder / "state"

    def cable(self, switch: Switch) -> None:
        """Make its network, which outlives a crash."""
        mine, theirs = f"sjo{os.getpid()}{self.name}", f"sjl{os.getpid()}{self.name}"
        ip("netns", "add", self.net)
        switch.plug(self.name, tap(theirs))
        ip("link", "set", theirs, "netns", self.net, "name", "lan")
        ip("link", "add", mine, "type", "veth", "peer", "name", "out", "netns", self.net)
        ip("addr", "add", f"{self.outside}/30", "dev", mine)
        ip("link", "set", mine, "up")
        within = ("-n", self.net)
        ip(*within, "addr", "add", f"{self.address}/24", "dev", "lan")
        ip(*within, "addr", "add", f"{_subnet()}.{4 * self.number + 2}/30", "dev", "out")
        for device in ("lo", "lan", "out"):
            ip(*within, "link", "set", device, "up")

    def write(self) -> None:
        """Its folders and the configuration of its sshd and ssh."""
        for made in (self.folder, self.folder / "home"):
            made.mkdir()
        names = {"address": self.address, "keys": self.keys, "folder": self.folder}
        (self.folder / "sshd_config").write_text(SERVER.format(**names))
        (self.folder / "ssh_config").write_text(CLIENT.format(**names))
        script = self.folder / "serve.sh"
        lines = [f"export {name}={shlex.quote(text)}" for name, text in self._environment().items()]
        run = f"exec {shlex.quote(sys.executable)} -m sojourn serve --stdio"
        script.write_text("\n".join(["#!/bin/sh", *lines, run, ""]))
        script.chmod(0o755)

    def boot(self) -> None:
        """Power on: init and sshd; the daemon is another matter."""
        made = subprocess.Popen(
            ["ip", "netns", "exec", self.net, *APART, sys.executable, "-S", "-c", INIT, self.name],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._programs = [made]
        children = Path(f"/proc/{made.pid}/task/{made.pid}/children")
        self._init = int(until(children.read_text, 10, "a first process").split()[0])
        until(lambda: _is_python(self._init), 10, "the first process to begin")
        self._inside = os.readlink(f"/proc/{self._init}/ns/pid")
        self._begin([str(SSHD), "-D", "-e", "-f", str(self.folder / "sshd_config")], "sshd.log")

    def crash(self) -> None:
        """Every process of it is killed at once."""
        os.kill(self._init, signal.SIGKILL)
        until(self._dead, 30, f"the processes of {self.name} to end")
        for program in self._programs:
            if program.stdin is not None:
                program.stdin.close()
        self._programs = []

    def _dead(self) -> bool:
        """Whether all have ended; a stopped one keeps the others waiting, so all are woken."""
        return not [program for program in self._programs if not ended(program)]

    def serve(self) -> None:
        """Its daemon runs on return, and listens by TLS; one that ssh had started is replaced."""
        log = self.folder / "daemon.log"
        for _ in range(20):
            self.end("daemon", signal.SIGTERM)
            begun = log.stat().st_size if log.exists() else 0
            program = self._begin(
                [*SOJOURN, "serve", "--json", "--listen", f"{self.address}:{TLS_PORT}"],
                "daemon.log",
            )
            until(
                # Called before the loop goes on.
                lambda: _said(log, begun) or program.poll() is not None,  # noqa: B023
                60,
                "the daemon to serve",
            )
            if program.poll() is None:
                return
        raise RuntimeError(f"the daemon of {self.name} does not start: {log.read_text()[-2000:]}")

    def end(self, role: Role, number: int) -> None:
        """End its daemon, worker or mover by a signal, and wait until it is gone."""
        for pid in self.pids(role):
            _kill(pid, number)
            # Called before the loop goes on.
            until(lambda: not _alive(pid), 60, f"{role} {pid} to end")  # noqa: B023

    def pids(self, role: Role | None = None) -> list[int]:
        """Processes of this host by what they do, as this process knows their numbers."""
        return [pid for pid, found in self._all() if role is None or found == role]

    def run(self, *words: str, seconds: float = 120, said: str = "") -> Done:
        """A sojourn command on this host, to its end."""
        done = subprocess.run(
            self.within([*SOJOURN, *words]),
            env=self._environment(),
            cwd=self.folder,
            input=said,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    def start(self, *words: str, name: str) -> "subprocess.Popen[bytes]":
        """A sojourn command on this host; what it says goes to `<name>.out` and `<name>.err`."""
        with (
            (self.folder / f"{name}.out").open("wb") as out,
            (self.folder / f"{name}.err").open("wb") as err,
        ):
            program = subprocess.Popen(
                self.within([*SOJOURN, *words]),
                env=self._environment(),
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
            )
        self._programs.append(program)
        return program

    def within(self, command: list[str]) -> list[str]:
        """The same command, as a process of this host."""
        return ["nsenter", "-t", str(self._init), "-n", "-p", "-m", "-u", "--", *command]

    def _begin(self, command: list[str], log: str) -> "subprocess.Popen[bytes]":
        with (self.folder / log).open("ab") as file:
            program = subprocess.Popen(
                self.within(command),
                env=self._environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self._programs.append(program)
        return program

    def _environment(self) -> Mapping[str, str]:
        return {
            "PATH": f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin:/usr/sbin",
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(HERE / "far_tools"),
            "SOJOURN_HOME": str(self.home),
            "SOJOURN_SSH": f"ssh -F {self.folder / 'ssh_config'}",
            "COUNTER": self.counter,
            "FAULT": "1" if self.faulty else "",
        }

    def _all(self) -> Iterator[tuple[int, Role]]:
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                if os.readlink(f"/proc/{name}/ns/pid") != self._inside:
                    continue
                words = Path(f"/proc/{name}/cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            role = _role(words)
            if role is not None:
                yield int(name), role


SOJOURN = (sys.executable, "-m", "sojourn")


def _subnet() -> str:
    """One for each process, since these addresses are this machine's own, too."""
    pid = os.getpid()
    return f"10.{64 + pid % 128}.{pid // 128 % 256}"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def ended(program: "subprocess.Popen[bytes]") -> bool:
    """Whether it has; nsenter stops itself along with its program, so it is woken."""
    if program.poll() is None:
        program.send_signal(signal.SIGCONT)
    return program.poll() is not None


def _role(words: list[str]) -> Role | None:
    if "sojourn" not in words or "-m" not in words:
        return None
    after = words[words.index("sojourn") + 1 :]
    match after[:1]:
        case ["serve"]:
            return "pipe" if "--stdio" in after else "daemon"
        case ["work"]:
            return "worker"
        case ["move"]:
            return "mover"
        case _:
            return None


def _said(log: Path, begun: int) -> bool:
    """Whether the daemon has said since then that it serves."""
    return re.search(rb'"boot":"\w', log.read_bytes()[begun:]) is not None


def _is_python(pid: int) -> bool:
    return b"python" in Path(f"/proc/{pid}/cmdline").read_bytes()


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
