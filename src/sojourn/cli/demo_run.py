"""The run behind `sojourn demo`: the real command line as child processes, and a real SIGKILL."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Final

from sojourn.cli import demo_project
from sojourn.cli.demo_proofs import Killed, proofs_of
from sojourn.cli.settings import Settings
from sojourn.cli.shapes import DemoAnswer, ProofShape
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import SojournError, UsageError
from sojourn.format import layout

NAME: Final = "mender"
TASK: Final = "The tests of this project fail. Mend it."
PATIENCE_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.02


@dataclass(slots=True, kw_only=True)
class Demo:
    """One demo in its folder; `commands` are those that it ran, as a person would type them."""

    folder: Path
    voice: Voice
    commands: list[str] = field(default_factory=list[str])

    @property
    def capsule(self) -> Path:
        """The capsule's folder."""
        return self.folder / "capsule"

    @property
    def project(self) -> Path:
        """The workspace."""
        return self.folder / "project"

    @property
    def effects(self) -> Path:
        """One line for each run of the tests that was begun: call key and pid."""
        return self.folder / "counters" / "effects.txt"

    @property
    def model_calls(self) -> Path:
        """One JSON line for each call that the model got."""
        return self.folder / "counters" / "model-calls.jsonl"

    def lay_out(self) -> None:
        """Write the project and the model's script."""
        for part in (self.project, self.effects.parent):
            part.mkdir(parents=True)
        for file in resources.files(demo_project).iterdir():
            if file.name.endswith(".py.txt"):
                target = self.project / file.name.removesuffix(".txt")
                target.write_text(file.read_text("utf-8"), "utf-8")
        script = resources.files(demo_project).joinpath("demo.json").read_text("utf-8")
        if shutil.which("python3") is None:
            script = script.replace("python3 check.py", f"{sys.executable} check.py")
        (self.folder / "demo.json").write_text(script, "utf-8")

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start one command of sojourn, said first."""
        self.say_command("sojourn", *words)
        out = self._stream()
        return subprocess.Popen(
            [sys.executable, "-m", "sojourn", *words],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )

    def run(self, *words: str) -> None:
        """Run one command of sojourn to its end.

        Raises: SojournError `demo_failed` when it did not succeed.
        """
        code = self.start(*words).wait()
        if code != 0:
            raise self.failed(f"`sojourn {' '.join(words)}` answered with exit code {code}")

    def run_tests(self) -> bool:
        """Run the project's tests, without the agent."""
        self.say_command("python3", "-m", "unittest")
        done = subprocess.run(
            [sys.executable, "-B", "-m", "unittest", "-q"],
            cwd=self.project,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._stream(),
            stderr=self._stream(),
            check=False,
        )
        return done.returncode == 0

    def say_command(self, *words: str) -> None:
        """Show and keep a command as a person would type it."""
        typed = " ".join(f'"{word}"' if " " in word else word for word in words)
        self.commands.append(typed)
        self.voice.talk(Painted(f"$ {typed}", "bold"))

    def say(self, text: str) -> None:
        """A heading."""
        self.voice.talk("")
        self.voice.talk(Painted(text, "name"))

    def failed(self, what: str) -> SojournError:
        """The demo did not show what it is there to show."""
        return SojournError(
            f"the demo failed: {what}",
            code="demo_failed",
            state=f"Everything is as it was then, in {self.folder}.",
            hint=f"Look there:  SOJOURN_HOME={self.folder}/state sojourn log {NAME}",
        )

    def _stream(self) -> int | None:
        """Where the children speak: with --json only to stderr, with -q nowhere."""
        if self.voice.settings.quiet:
            return subprocess.DEVNULL
        return sys.stderr.fileno() if self.voice.settings.json else None

    def _environment(self) -> dict[str, str]:
        environment = dict(os.environ)
        environment.pop("SOJOURN_MODEL", None)
        environment["SOJOURN_HOME"] = str(self.folder / "state")
        if not self.voice.settings.colour:
            environment["NO_COLOR"] = "1"
        return environment


def run_demo(settings: Settings, keep: str | None) -> int:
    """Run the demo and tell what it showed; the exit code.

    Raises: SojournError `demo_failed`; UsageError `folder_not_empty`.
    """
    began = time.monotonic()
    demo = Demo(folder=_folder(keep), voice=Voice(settings))
    proofs = _play(demo)
    broken = [proof for proof in proofs if not proof.held]
    seconds = round(time.monotonic() - began, 1)
    if settings.json:
        answer = DemoAnswer(
            folder=str(demo.folder),
            seconds=seconds,
            commands=tuple(demo.commands),
            proofs=tuple(proofs),
        )
        demo.voice.answer(answer)
        return 1 if broken else 0
    _tell(demo, proofs, seconds)
    if broken:
        raise demo.failed(f"{broken[0].claim}: {broken[0].seen}")
    return 0


def _folder(keep: str | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="sojourn-demo-")).resolve()
    folder = Path(keep).resolve()
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{keep} is not empty",
            code="folder_not_empty",
            state="Nothing was done.",
            hint="Give --keep a folder that is new or empty.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _play(demo: Demo) -> list[ProofShape]:
    demo.lay_out()
    demo.say("1. A capsule for an agent that mends a small failing project")
    demo.run("init", "capsule", "-n", NAME, "-m", "scripted/demo.json", "--workspace", "project")
    demo.say("2. It works, until its process is killed in the middle of a call")
    killed = _kill_in_the_middle(demo)
    demo.say("3. What the log knows: everything but how that one call ended")
    demo.run("status", NAME)
    demo.say("4. It goes on where it was, and is careful with the call that may have happened")
    demo.run("resume", NAME)
    demo.say("5. The tests, run without the agent, and every byte of the capsule")
    passed = demo.run_tests()
    demo.run("verify", NAME)
    return proofs_of(demo.capsule, demo.effects, demo.model_calls, killed, tests_passed=passed)


def _kill_in_the_middle(demo: Demo) -> Killed:
    """Run the agent, wait until the call that hangs has begun, and kill the agent with SIGKILL."""
    agent = demo.start("run", NAME, TASK)
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while (hanging := _hanging(demo)) is None:
            if agent.poll() is not None:
                raise demo.failed(f"the agent ended by itself with exit code {agent.returncode}")
            if time.monotonic() > deadline:
                raise demo.failed("the call that hangs did not begin")
            time.sleep(LOOK_SECONDS)
    finally:
        agent.send_signal(signal.SIGKILL)
        status = agent.wait()
    call, pid = hanging
    if demo.voice.both:
        demo.voice.err.line()
    demo.say_command("kill", "-9", str(agent.pid))
    return Killed(call=call, pid=pid, status=status)


def _hanging(demo: Demo) -> tuple[str, int] | None:
    """Key and pid of the second run of the tests, once it runs and its intent is in the log."""
    lines = demo.effects.read_text().splitlines() if demo.effects.exists() else []
    if len(lines) < 2 or len(lines[1].split()) != 2:
        return None
    call, pid = lines[1].split()
    log = (demo.capsule / layout.TIMELINE).read_text("utf-8").splitlines()
    begun = any('"tool_intent"' in line and call in line for line in log)
    return (call, int(pid)) if begun else None


def _tell(demo: Demo, proofs: list[ProofShape], seconds: float) -> None:
    demo.say("What this shows")
    for proof in proofs:
        mark = Painted("✓ ", "good") if proof.held else Painted("✗ ", "bad")
        demo.voice.data(mark, proof.claim, Painted(f"  {proof.seen}", "dim"))
    demo.say(f"Where to look ({seconds} s, everything is in {demo.folder})")
    demo.voice.data(f"  cd {demo.folder} && export SOJOURN_HOME=$PWD/state")
    for words in (
        f"sojourn log {NAME} --oneline",
        f"sojourn context {NAME}",
        "cat counters/effects.txt counters/model-calls.jsonl",
        "less capsule/memory/timeline_events.jsonl",
    ):
        demo.voice.data(f"  {words}")
