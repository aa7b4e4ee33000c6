"""Copies of a capsule that another machine took over, with a state folder of its own."""

import shutil
from pathlib import Path

from agent.carried import claimed
from agent.stage import Stage
from sojourn.agent.scripts import remember


def elsewhere(stage: Stage, folder: Path) -> Stage:
    """The capsule copied to `folder` and claimed there, while the other may still run it."""
    folder.mkdir()
    shutil.copytree(stage.capsule, folder / "capsule")
    other = Stage(folder, stage.steps, tools=stage.tools)
    place = other.machine.find(str(other.capsule))
    claimed(other.machine, place, forced=True, workspace=str(folder / "workspace"))
    remember(other.machine.state, place.capsule, other.model)
    return other
