"""What the tests of forks, claims and adopting share: other machines, and both verifiers."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent.stage import Stage
from sojourn import Machine
from sojourn.agent import Place
from sojourn.agent.forking import fork
from sojourn.agent.taking_over import claim
from sojourn.drive.claim import ClaimedCapsule
from sojourn.drive.fork import ForkedCapsule
from sojourn.format.event import Event

TALK = [{"name": name, "text": name} for name in ("One.", "Two.", "Three.", "Four.")]
ALONE = Path(__file__).resolve().parent.parent.parent / "docs/verify_capsule.py"


def alone(folder: str | Path) -> str:
    """What the page's own verifier says of the capsule."""
    command = [sys.executable, str(ALONE), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def forked(stage: Stage, place: Place, *args: Any, **options: Any) -> ForkedCapsule:
    return asyncio.run(fork(stage.machine, place, *args, **options))


def claimed(machine: Machine, place: Place, **options: Any) -> ClaimedCapsule:
    taken = asyncio.run(claim(machine, place, agreed=lambda _: True, **options))
    assert taken is not None
    return taken


def events_in(machine: Machine, folder: str | Path) -> list[Event]:
    return list(machine.look(machine.find(str(folder))).events_of())


def sound(machine: Machine, folder: str | Path) -> None:
    """Both verifiers find nothing."""
    place = machine.find(str(folder))
    assert [str(found) for found in machine.verify(place)] == []
    assert alone(folder) == "sound"


def run_in(stage: Stage, machine: Machine, folder: str | Path, text: str = "go on") -> str:
    async def inside() -> str:
        place = machine.find(str(folder))
        async with machine.hold(place, tools=stage.tools, model=stage.model) as agent:
            return (await agent.run(text)).text

    return asyncio.run(inside())


def elsewhere(stage: Stage) -> Machine:
    """Another machine: another state folder."""
    home = str(stage.folder / "state-elsewhere")
    return Machine({"PATH": os.environ["PATH"], "SOJOURN_HOME": home})


def tree(folder: str | Path) -> dict[str, bytes]:
    paths = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def without_queue(files: dict[str, bytes]) -> dict[str, bytes]:
    """The queue's own files change when it is read."""
    return {name: data for name, data in files.items() if "queue" not in name}


def restored_state(stage: Stage) -> None:
    """The state folder is put back from a copy of it."""
    home = Path(stage.machine.home)
    shutil.copytree(home, stage.folder / "backup", symlinks=True)
    shutil.rmtree(home)
    shutil.copytree(stage.folder / "backup", home, symlinks=True)


def taken_over(stage: Stage) -> None:
    """Another machine claimed it in the same folder."""
    machine = elsewhere(stage)
    claimed(machine, machine.find(str(stage.capsule)))
