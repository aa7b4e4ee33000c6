"""How often a step syncs, counted by the kernel's own account of the process."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

STRACE = shutil.which("strace")
PROGRAM = """
import asyncio, sys
from sojourn import Agent, tool

@tool(replay="safe")
async def act() -> str:
    "Acts."
    return "acted " * 150

async def main():
    async with Agent.open("./capsule", model="scripted/script.json", tools=[act]) as agent:
        await agent.run("go", max_model_calls=int(sys.argv[1]) + 1)

asyncio.run(main())
"""

pytestmark = pytest.mark.skipif(STRACE is None, reason="strace is not installed")


def syncs(folder: Path, steps: int) -> int:
    """Syncs of a whole process that runs this many steps of one model and one tool call."""
    folder.mkdir()
    call = {"tool": "act", "args": {}}
    acting = [{"name": f"s{n}", "text": "x" * 900 + str(n), "calls": [call]} for n in range(steps)]
    script = {"steps": [*acting, {"text": "Done."}]}
    (folder / "script.json").write_text(json.dumps(script))
    log = folder / "trace"
    subprocess.run(
        [
            str(STRACE),
            "-f",
            "-o",
            str(log),
            "-e",
            "trace=fsync,fdatasync,syncfs,sync_file_range",
            sys.executable,
            "-c",
            PROGRAM,
            str(steps),
        ],
        cwd=folder,
        env={"SOJOURN_HOME": str(folder / "state"), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
    )
    return len(re.findall(r"(?:fsync|fdatasync|syncfs|sync_file_range)\(", log.read_text()))


def test_a_step_of_one_model_call_and_one_tool_call_costs_two_syncs(tmp_path: Path) -> None:
    few, many = 3, 13
    more = syncs(tmp_path / "many", many) - syncs(tmp_path / "few", few)
    assert more == 2 * (many - few)
