"""Every benchmark runs, in its smallest form, and prints rows of the one agreed shape."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

BENCHMARKS: Final = Path(__file__).resolve().parent.parent / "benchmarks"

SHAPE: Final[Mapping[str, tuple[type, ...]]] = {
    "bench": (str,),
    "row": (str,),
    "value": (int, float),
    "unit": (str,),
    "against": (str, type(None)),
    "ratio": (int, float, type(None)),
    "goal": (int, float, type(None)),
    "met": (bool, type(None)),
}

SMALLEST: Final[Mapping[str, tuple[str, str]]] = {
    "merge": ("--events 2000 --rounds 1 --no-git", "disjoint, sojourn"),
    "move": ("--megabytes 12 --rounds 1 --moves 1", "frozen 12 MB against 10 MB"),
    "recall": ("--quick", "in other words: both"),
    "scan": ("--quick", "scan "),
    "snapshot": ("--small 20 --megabytes 1 --rounds 1 --no-peers --pause 0", "sojourn first"),
    "steps": ("--sizes 5 --repetitions 1 --only sojourn --no-syncs", "step median sojourn 5"),
    "verify": ("--events 1000 --rounds 1 --megabytes 2", "look"),
}
"""Of each benchmark the options that make it small, and how a row begins that must be there."""

NEEDS: Final[Mapping[str, tuple[str, ...]]] = {"move": ("sshd", "ssh", "rsync", "zstd", "tar")}
"""Programs without which a benchmark cannot run at all."""


def names() -> list[str]:
    """What `make bench` runs."""
    return sorted(path.stem for path in BENCHMARKS.glob("[a-z]*.py"))


def rows_of(name: str, options: str) -> list[dict[str, object]]:
    script = BENCHMARKS / f"{name}.py"
    ran = subprocess.run(
        [sys.executable, str(script), *options.split()],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={key: value for key, value in os.environ.items() if not key.startswith("SOJOURN")},
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    assert lines == ran.stdout.splitlines()[-len(lines) :], "the rows are what comes last"
    return [json.loads(line) for line in lines]


def check_row(row: Mapping[str, object], bench: str) -> None:
    assert list(row) == list(SHAPE)
    for key, kinds in SHAPE.items():
        assert type(row[key]) in kinds, (key, row)
    assert row["bench"] == bench
    assert (row["against"] is None) == (row["ratio"] is None), row
    assert (row["goal"] is None) == (row["met"] is None), row


def test_a_small_run_of_every_benchmark_is_known() -> None:
    assert names() == sorted(SMALLEST)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALLEST))
def test_a_benchmark_runs_and_its_rows_have_the_agreed_shape(name: str) -> None:
    options, wanted = SMALLEST[name]
    path = f"{os.environ['PATH']}{os.pathsep}/usr/sbin"
    lacking = [one for one in NEEDS.get(name, ()) if shutil.which(one, path=path) is None]
    if lacking:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    rows = rows_of(name, options)
    for row in rows:
        check_row(row, name)
    titles = [str(row["row"]) for row in rows]
    assert len(set(titles)) == len(titles)
    assert any(title.startswith(wanted) for title in titles), titles
