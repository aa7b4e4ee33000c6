"""A merge that is killed before any of its writes leaves a sound capsule, and is done by again."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.elsewhere import elsewhere
from agent.stage import Stage

SCRIPT = Path(__file__).parent / "kill_merge.py"


def killed_everywhere(root: Path, *options: str) -> dict[str, Any]:
    """Prepare two copies with turns, blobs and edited notes, and kill the merge of them."""
    here = root / "world" / "here"
    here.mkdir(parents=True)
    stage = Stage(here, [{"text": "well"}] * 4)
    stage.run("first")
    other = elsewhere(stage, root / "world" / "there")
    for one, name in ((stage, "here"), (other, "there")):
        (one.capsule / "memory/working_memory.md").write_text(f"notes of {name}\n")
        one.run(name * 5000)
    (root / "world").rename(root / "template")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(root), *options],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_wherever_a_merge_is_killed_the_capsule_is_sound_and_merges_again(tmp_path: Path) -> None:
    found = killed_everywhere(tmp_path)
    assert found["faults"] == []
    assert found["operations"] > 40


@pytest.mark.slow
def test_a_merge_that_names_the_old_log_while_it_goes_is_found_out(tmp_path: Path) -> None:
    assert killed_everywhere(tmp_path, "--fault")["faults"]
