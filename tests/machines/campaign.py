"""Moves among three machines with trouble in the middle of them, and what became of each.

Run as `python -m machines.campaign --moves 500 --seed 1` with `tests` on the path.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from machines import judge
from machines.host import Host, until, why_not
from machines.host import ended as has_ended
from machines.trouble import ALL, Scene
from machines.world import CAPSULE, World, three_machines

MOVER_SECONDS = 150.0
SETTLE_SECONDS = 120.0
ASK_SECONDS = 4.0
WORK_SECONDS = 60.0
MOMENTS = ("FROZEN", "IN_DOUBT", "RETIRED")

FAULTY: Mapping[str, Any] = {
    "troubles": ("mover killed",),
    "moments": ("IN_DOUBT",),
    "faulty": True,
}
"""Where a rule of moves is left out, and what shows it soonest."""


class Broken(Exception):
    """Something that must never be was."""


@dataclass
class Campaign:
    """One seed, three machines, one agent; `say` gets a line a move."""

    world: World
    dice: Random
    say: Callable[[str], None]
    troubles: Sequence[str] = tuple(ALL)
    moments: Sequence[str] = MOMENTS
    tally: Tally[str] = field(default_factory=Tally[str])
    frozen: list[int] = field(default_factory=list[int])
    asked: list[str] = field(default_factory=list[str])
    _deaths: bool = False

    def move(self, number: int) -> None:
        """One move with its trouble, settled and judged. Raises: Broken, RuntimeError."""
        began, world, dice = time.monotonic(), self.world, self.dice
        source = world.hosts[world.holders()[0]]
        target = world.hosts[dice.choice([name for name in world.hosts if name != source.name])]
        way = dice.choice(("ssh", "tls"))
        where = target.name if way == "tls" else f"ssh://root@{target.address}"
        world.switch.delay = dice.choice((0.0, 0.002, 0.02))
        world.switch.jitter = world.switch.delay / 2
        world.switch.loss = dice.choice((0.0, 0.0, 0.01, 0.03))
        troubles = [dice.choice(self.troubles)]
        if dice.random() < 0.2:
            troubles.append(dice.choice(self.troubles))
        mover = source.start("move", CAPSULE, where, "--grace", "3", "--json", name="mover")
        if dice.random() < 0.3:
            self._send(source, f"message-{number}")
        scene = Scene(source=source, target=target, switch=world.switch, dice=dice)
        for name in troubles:
            self._wait_for_moment(source, mover)
            ALL[name](scene)
            self.tally[name] += 1
        what = f"{number:4} {source.name}->{target.name} {way} {', '.join(troubles):32}"
        try:
            self._end(source, mover, target.name, what, began)
        except (Broken, RuntimeError):
            self.say(f"{what} broken after {time.monotonic() - began:.1f} s")
            raise

    def _end(
        self,
        source: Host,
        mover: "subprocess.Popen[bytes]",
        target: str,
        what: str,
        began: float,
    ) -> None:
        """What becomes of the move."""
        outcome = self._outcome(source, mover)
        self._deaths |= outcome == "killed" or "killed" in what or "crashed" in what
        ended = time.monotonic()
        self._heal()
        holder = self._settle()
        settled = time.monotonic()
        self._works(holder)
        self._judge()
        self.tally[outcome.partition(" ")[0]] += 1
        self.tally["moves"] += 1
        self.tally["arrived"] += holder == target
        now = time.monotonic()
        times = (ended - began, settled - ended, now - settled)
        self.say(f"{what} {outcome:10} now {holder} {' + '.join(f'{one:.1f}' for one in times)} s")

    def finish(self) -> None:
        """Let the agent rest, and look at every byte. Raises: Broken."""
        world = self.world
        world.counter.enough = True
        holder = world.holders()[0]
        host = world.hosts[holder]
        until(lambda: world.rests(holder), WORK_SECONDS, "the agent to rest", pause=0.2)
        log, calls = world.log(holder), world.counter.calls
        record = world.record(holder) or {}
        diary = (Path(record["workspace"]) / "diary.txt").read_text()
        faults = [*judge.of_the_log(log, calls, ("begin", *self.asked))]
        faults += judge.of_the_workspace(log, diary)
        for host in world.hosts.values():
            host.serve()
        faults += [*judge.of_the_ledgers(world), *judge.of_the_staging(world)]
        for name, host in world.hosts.items():
            folder = (world.record(name) or {}).get("folder")
            if folder:
                answer = host.run("verify", folder, "--json")
                if not answer.json().get("sound"):
                    faults.append(f"{name}: {answer.out}{answer.err}")
        _raise(faults)
        self.tally["calls"] = len(calls)
        self.tally["epochs that called"] = len({call.epoch for call in calls})
        self.tally["events"] = len(log)
        self.tally["messages"] = len(self.asked)
        self.tally["unknown outcomes"] = sum(
            event["header"]["kind"] == "tool_outcome" and event["body"]["status"] == "unknown"
            for event in log
        )
        self.tally["frames lost"] = world.switch.lost
        self.tally["frames passed"] = world.switch.passed

    def _send(self, host: Host, request: str) -> None:
        """A message to whoever runs the agent; what is accepted must be read once."""
        done = host.run("send", CAPSULE, "What is new?", "--request", request)
        if done.code == 0:
            self.asked.append(request)
        else:
            self.tally["messages refused"] += 1

    def _wait_for_moment(self, source: Host, mover: "subprocess.Popen[bytes]") -> None:
        """Until the move has come to some moment, or some time has passed."""
        if self.moments == MOMENTS and self.dice.random() < 0.4:
            time.sleep(self.dice.uniform(0, 3))
            return
        moment, end = self.dice.choice(self.moments), time.monotonic() + 20
        while mover.poll() is None and time.monotonic() < end:
            record = self.world.record(source.name)
            if record is not None and record["state"] == moment:
                time.sleep(self.dice.choice((0.0, 0.0, self.dice.uniform(0, 0.1))))
                return
            time.sleep(0.001)

    def _outcome(self, source: Host, mover: "subprocess.Popen[bytes]") -> str:
        def is_over() -> bool:
            _raise(list(judge.never(self.world)))
            return has_ended(mover)

        try:
            until(is_over, MOVER_SECONDS, "the mover to end")
        except RuntimeError as late:
            raise Broken(f"{late}: {_said(source, 'mover.err')}") from None
        said = _said(source, "mover.out")
        try:
            answer = json.loads(said)
        except ValueError:
            return "killed"
        if "outcome" not in answer:
            self.tally[f"error {answer['error']['code']}"] += 1
            return f"refused ({answer['error']['code']})"
        if answer["outcome"] == "moved":
            self.frozen.append(answer["frozen_milliseconds"])
        elif answer["reason"]:
            self.tally[f"reason {answer['reason']['code']}"] += 1
            return f"{answer['outcome']} ({answer['reason']['code']})"
        return answer["outcome"]

    def _heal(self) -> None:
        """Every machine is up, and its daemon listens."""
        self.world.switch.cut.clear()
        for host in self.world.hosts.values():
            listens = [pid for pid in host.pids("daemon") if _listens(pid)]
            if not listens:
                host.serve()

    def _settle(self) -> str:
        """The one holder, once nothing is open anywhere. Raises: Broken."""
        world = self.world
        end = time.monotonic() + SETTLE_SECONDS
        ask = time.monotonic() + ASK_SECONDS
        while faults := self._open():
            _raise(list(judge.never(world)))
            if time.monotonic() > end:
                raise Broken("; ".join(faults))
            if time.monotonic() > ask:
                ask = time.monotonic() + ASK_SECONDS
                self._resume()
            time.sleep(0.05)
        return world.holders()[0]

    def _open(self) -> list[str]:
        """What is not settled; what the dead left lying there goes when the daemon next starts."""
        faults = list(judge.of_the_ledgers(self.world))
        left = list(judge.of_the_staging(self.world))
        if not self._deaths:
            return faults + left
        if left and not faults:
            self.tally["staging left until the next start"] += 1
        return faults

    def _resume(self) -> None:
        """What a person would do who sees a move that does not go on."""
        for name, state in self.world.states().items():
            match state:
                case "FROZEN":
                    self._by_hand(name, "abort")
                case "IN_DOUBT":
                    self._by_hand(name, "resume")
                case _:
                    pass

    def _by_hand(self, name: str, what: str) -> None:
        self.tally[f"{what} by hand"] += 1
        answer = self.world.hosts[name].run("move", what, CAPSULE, "--json").json()
        for capsule in answer.get("capsules", ()):
            for failure in capsule["failures"]:
                self.tally[f"{what} by hand: {failure['code']}"] += 1
        if "error" in answer:
            self.tally[f"{what} by hand: {answer['error']['code']}"] += 1

    def _works(self, holder: str) -> None:
        """The agent goes on at the holder; one whose turn came to its limit is told to.

        Raises: RuntimeError.
        """
        calls = self.world.counter.calls
        begun = len(calls)

        def called() -> bool:
            if self.world.rests(holder):
                self._send(self.world.hosts[holder], f"go-on-{begun}")
            return any(call.host == holder for call in calls[begun:])

        until(called, WORK_SECONDS, f"a call from {holder}", pause=0.1)

    def _judge(self) -> None:
        _raise(list(judge.of_the_world(list(self.world.counter.calls))))


def _raise(faults: list[str]) -> None:
    if faults:
        raise Broken("; ".join(faults[:10]))


def _said(host: Host, name: str) -> str:
    return (host.folder / name).read_text()


def _listens(pid: int) -> bool:
    try:
        return b"--listen" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def run(
    folder: Path,
    *,
    moves: int,
    seed: int,
    seconds: float = float("inf"),
    say: Callable[[str], None] = print,
    troubles: Sequence[str] = tuple(ALL),
    moments: Sequence[str] = MOMENTS,
    faulty: bool = False,
) -> Campaign:
    """A whole campaign in a folder of its own. Raises: Broken, RuntimeError."""
    folder.mkdir(exist_ok=True)
    say(f"seed {seed}")
    dice, end = Random(seed), time.monotonic() + seconds
    with three_machines(folder, dice, faulty=faulty) as world:
        campaign = Campaign(world=world, dice=dice, say=say, troubles=troubles, moments=moments)
        for number in range(1, moves + 1):
            if time.monotonic() > end:
                break
            campaign.move(number)
        campaign.finish()
    return campaign


def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("--moves", type=int, default=500)
    words.add_argument("--seed", type=int, default=None)
    words.add_argument("--faulty", action="store_true", help="leave a rule out")
    words.add_argument("--seconds", type=float, default=float("inf"))
    given = words.parse_args()
    if why := why_not():
        print(f"not run: {why}")
        return 1
    seed = Random().randrange(1 << 32) if given.seed is None else given.seed
    folder = Path(tempfile.mkdtemp(prefix="sojourn-machines-"))
    try:
        campaign = run(
            folder,
            moves=given.moves,
            seed=seed,
            seconds=given.seconds,
            **(FAULTY if given.faulty else {}),
        )
    except (Broken, RuntimeError, OSError) as failure:
        print(f"BROKEN, seed {seed}: {failure}\neverything is left in {folder}")
        return 1
    shutil.rmtree(folder)
    for name, count in sorted(campaign.tally.items()):
        print(f"{count:8} {name}")
    frozen = sorted(campaign.frozen)
    if frozen:
        print(f"{frozen[len(frozen) // 2]:8} ms frozen, median; {frozen[-1]} ms at most")
    return 0


if __name__ == "__main__":
    sys.exit(main())
