"""Writes the numbers of the moves' model, and its traces, into docs/moving.md.

    .venv/bin/python tests/model/moving/count_moves.py [WORLD...]

of all worlds, or of those that are named. After a change of the machine that is meant.
tests/model/moving/test_moves.py compares the numbers.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from model.moving.mutants import MUTANTS
from model.moving.search import Search, Visited
from model.moving.settings import FAST, SLOW, UNPROMISED
from model.moving.world import Setting, Setup

MOVING = Path(__file__).resolve().parents[3] / "docs" / "moving.md"
BEGIN = "<!-- written by tests/model/moving/count_moves.py -->"
END = "<!-- until here -->"
TRACE = "<!-- the model's traces -->"

WORDS = {
    "moves": ("move", "moves"),
    "crashes": ("death", "deaths"),
    "cuts": ("power cut", "power cuts"),
    "events": ("event", "events"),
    "reds": ("red check", "red checks"),
    "losses": ("lost record", "lost records"),
    "backups": ("backup", "backups"),
    "restores": ("restore", "restores"),
    "copies": ("copied state folder", "copied state folders"),
}


def bounds(setting: Setting) -> str:
    """How much happens, in words."""
    counts = {name: count for name, count in setting.purse._asdict().items() if count}
    words = [f"{count} {WORDS[name][count > 1]}" for name, count in counts.items()]
    return f"{setting.machines} | {', '.join(words)}{'; astray' if setting.astray else ''}"


def row(setting: Setting, visited: Visited) -> str:
    """One line of the table."""
    star = "*" if setting.lean else ""
    numbers = f"{visited.worlds:,} | {visited.moves:,}"
    return f"| {setting.name}{star} | {bounds(setting)} | {numbers} |"


def table(rows: list[str]) -> str:
    """The whole table, and how many guards were taken out."""
    head = "| world | machines | at most | worlds | moves |"
    line = "| --- | --- | --- | ---: | ---: |"
    told = f"Guards taken out one at a time, or a few that stand for each other: {len(MUTANTS)}."
    return "\n".join([BEGIN, "", head, line, *rows, "", told, "", END])


def traces() -> str:
    """The shortest ways to what is not promised."""
    lines = [TRACE, ""]
    for setting in UNPROMISED:
        found = Search(Setup(setting), only={"one_holder"}).run().found
        if found is None:
            raise LookupError(f"{setting.name}: nothing was found")
        steps = (f"{number:3} {label}" for number, label in enumerate(found.trace, 1))
        lines += ["    " + one for one in (f"{setting.name}:", *steps)] + [""]
    return "\n".join([*lines, TRACE])


def written() -> str:
    """What docs/moving.md says now."""
    text = MOVING.read_text("utf-8")
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def written_traces() -> str:
    text = MOVING.read_text("utf-8")
    return text[text.index(TRACE) : text.rindex(TRACE) + len(TRACE)]


def main() -> None:
    rows = {line.split("| ")[1].strip(" *"): line for line in written().splitlines() if "|" in line}
    chosen = sys.argv[1:]
    for setting in (*FAST, *SLOW):
        if chosen and setting.name not in chosen:
            continue
        visited = Search(Setup(setting)).run()
        if visited.found is not None:
            sys.exit(f"{setting.name}: {visited.found}")
        rows[setting.name] = row(setting, visited)
        print(rows[setting.name], flush=True)
    kept = [rows[setting.name] for setting in (*FAST, *SLOW)]
    text = MOVING.read_text("utf-8").replace(written(), table(kept))
    MOVING.write_text(text.replace(written_traces(), traces()), "utf-8")


if __name__ == "__main__":
    main()
