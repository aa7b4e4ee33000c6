"""Writes the vectors of tests/vectors/format, format_values, archive and merge anew.

    .venv/bin/python tests/vectors/make_format.py

They are made byte by byte from docs/format.md, without sojourn, and always alike.
"""

# ruff: noqa: E402, F401 - each file of vectors adds its own when it is imported

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import format_chains
import format_files
import format_forks
import format_lines
import format_manifests
import format_merges
import format_pardons
import format_seals
import format_settled
import format_snapshots
import format_strict
import format_tails
from format_archives import ARCHIVES
from format_builder import ALL, vector
from format_values import VALUES


def texts() -> dict[str, str]:
    """Each vector's path in this folder, and its text."""
    made = {f"format/{scenario.name}.json": text(vector(scenario)) for scenario in ALL}
    made |= {f"format_values/{value.name}.json": text(value.stored()) for value in VALUES}
    made |= {f"archive/{name}.json": text(stored) for name, stored in ARCHIVES.items()}
    made |= {f"merge/{one.name}.json": text(one.stored()) for one in format_merges.PAIRS}
    if len(made) != len(ALL) + len(VALUES) + len(ARCHIVES) + len(format_merges.PAIRS):
        raise ValueError("two vectors have one name")
    return made


def text(stored: dict[str, Any]) -> str:
    return json.dumps(stored, indent=1) + "\n"


def main() -> None:
    made = texts()
    for folder in ("archive", "format", "format_values", "merge"):
        (HERE / folder).mkdir(exist_ok=True)
        for path in (HERE / folder).glob("*.json"):
            if path.relative_to(HERE).as_posix() not in made:
                path.unlink()
    for name, content in made.items():
        (HERE / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
