"""Three machines that know each other, a counter outside, and one agent that never rests."""

import json
import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from machines.counter import Counter
from machines.host import TLS_PORT, Host, ip, until
from machines.switch import Switch

NAMES = ("a", "b", "c")
CAPSULE = "box"
LINE_BYTES = 100_000
IDLE = (b'"kind":"sealed"', b'"kind":"activated"', b'"kind":"snapshot"')
BALLAST = 8
BALLAST_BYTES = 60_000

SCRIPT: Mapping[str, object] = {
    "steps": [
        {
            "name": "act",
            "text": "I do both.",
            "calls": [{"tool": "launch"}, {"tool": "charge"}],
            "if_result": [{"matches": "enough", "go": "rest"}],
            "next": "act",
        },
        {"name": "rest", "text": "That is all.", "next": "act"},
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The hosts by name; `capsule` is the id of the one capsule."""

    hosts: Mapping[str, Host]
    switch: Switch
    counter: Counter
    capsule: str

    def record(self, host: str) -> dict[str, Any] | None:
        """The host's ledger record of the capsule, as it is on the disk."""
        path = self.hosts[host].home / "ledger" / f"{self.capsule}.json"
        try:
            return json.loads(path.read_text())["record"]
        except FileNotFoundError:
            return None

    def states(self) -> dict[str, str]:
        """The state of each host's record."""
        records = {name: self.record(name) for name in self.hosts}
        return {name: record["state"] if record else "NONE" for name, record in records.items()}

    def holders(self) -> list[str]:
        return [name for name, state in self.states().items() if state == "HOLDER"]

    def two_hold(self) -> bool:
        """Whether two hosts hold the capsule at one moment: both did at two looks."""
        first = self.holders()
        return len(first) > 1 and first == self.holders()

    def log(self, host: str) -> list[dict[str, Any]]:
        """The whole lines of the log in the folder that the host's record names."""
        record = self.record(host)
        if record is None or not record["folder"]:
            return []
        data = (Path(record["folder"]) / "memory/timeline_events.jsonl").read_bytes()
        return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]

    def rests(self, host: str) -> bool:
        """Whether the host's log ends with the end of a turn, and with what needs no agent."""
        record = self.record(host)
        if record is None or not record["folder"]:
            return False
        with (Path(record["folder"]) / "memory/timeline_events.jsonl").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LINE_BYTES))
            lines = log.read().split(b"\n")
        busy = (line for line in reversed(lines[:-1]) if not any(kind in line for kind in IDLE))
        return b'"kind":"turn_ended"' in next(busy, b"")


@contextmanager
def three_machines(folder: Path, dice: Random, *, faulty: bool = False) -> Generator[World]:
    """They are up, paired with each other, and the agent works on one of them.

    With `faulty` a rule of moves is left out on all of them (`far_tools/faulty.py`).
    """
    switch = Switch(Random(dice.random()))
    keys = folder / "keys"
    keys.mkdir()
    hosts = {
        name: Host(name=name, number=number, folder=folder / name, keys=keys, faulty=faulty)
        for number, name in enumerate(NAMES, start=1)
    }
    _make_keys(keys, hosts)
    with ExitStack() as stack:
        stack.callback(switch.end)
        for host in hosts.values():
            stack.callback(_remove, host)
            host.cable(switch)
        switch.start()
        counter = Counter({name: host.outside for name, host in hosts.items()})
        counter.start()
        stack.callback(counter.end)
        for host in hosts.values():
            host.counter = f"{host.outside}:{counter.ports[host.name]}"
            host.write()
            host.boot()
            stack.callback(host.crash)
            host.serve()
        for first, second in (("a", "b"), ("b", "c"), ("a", "c")):
            pair(hosts[first], hosts[second])
        capsule = _begin(hosts, folder / "agent.json")
        yield World(hosts=hosts, switch=switch, counter=counter, capsule=capsule)


def pair(waits: Host, goes: Host) -> None:
    """`sojourn pair` on both, by two persons who compare what they see."""
    common = ("pair", "--json")
    first = waits.start(
        *(*common, "--as", goes.name, "--name", waits.name, "--address", _url(waits)), name="pair"
    )
    until(lambda: "waiting for" in _text(waits, "pair.err"), 60, "a machine that waits")
    second = goes.start(
        *(*common, _url(waits), "--as", waits.name, "--name", goes.name, "--address", _url(goes)),
        name="pair",
    )
    codes = [
        # Called before the loop goes on.
        until(lambda: _code(_text(host, "pair.err")), 60, "a code to compare")  # noqa: B023
        for host in (waits, goes)
    ]
    if codes[0] != codes[1]:
        raise RuntimeError(f"two codes: {codes}")
    for program in (first, second):
        program.communicate(b"yes\n", timeout=60)
        if program.returncode:
            raise RuntimeError(_text(waits, "pair.err") + _text(goes, "pair.err"))


def _url(host: Host) -> str:
    return f"https://{host.address}:{TLS_PORT}"


def _text(host: Host, name: str) -> str:
    path = host.folder / name
    return path.read_text() if path.exists() else ""


def _code(said: str) -> str:
    """The code on the screen, once the question stands below it."""
    lines = [line for line in said.splitlines() if "code  " in line]
    return lines[-1].partition("code  ")[2].split("(")[0].strip() if "Type yes" in said else ""


def _make_keys(keys: Path, hosts: Mapping[str, Host]) -> None:
    for name in ("host_key", "client_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True
        )
    public = " ".join((keys / "host_key.pub").read_text().split()[:2])
    lines = [f"{host.address} {public}\n" for host in hosts.values()]
    (keys / "known_hosts").write_text("".join(lines))
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)


def _remove(host: Host) -> None:
    ip("netns", "del", host.net)


def _begin(hosts: Mapping[str, Host], script: Path) -> str:
    """Make the capsule on the first host; every host knows where the script lies."""
    script.write_text(json.dumps(SCRIPT))
    home = hosts[NAMES[0]]
    made = home.run("init", "-n", CAPSULE, "-m", f"scripted/{script}", "--json").json()["capsule"]
    for number in range(BALLAST):
        (Path(made["workspace"]) / f"ballast{number}").write_bytes(
            Random(number).randbytes(BALLAST_BYTES)
        )
    for host in hosts.values():
        (host.home / "scripts").mkdir(parents=True, exist_ok=True)
        (host.home / "scripts" / made["id"]).write_text(str(script))
    sent = home.run("send", CAPSULE, "Begin.", "--request", "begin")
    if sent.code:
        raise RuntimeError(sent.err)
    return made["id"]
