"""The example of the README, run as a reader would run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def block(language: str) -> str:
    """The README's one block in this language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.S)
    return str(found)


def test_the_example_runs_and_runs_again(tmp_path: Path) -> None:
    (tmp_path / "cities.json").write_text(block("json"))
    (tmp_path / "cities.py").write_text(block("python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "cities.py"],
        cwd=tmp_path,
        env={"SOJOURN_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "About 717,710 people live in Oslo." in done.stdout
    assert "turn_ended" in done.stdout
    assert (tmp_path / "cities/manifest.json").exists()
