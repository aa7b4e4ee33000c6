"""Writes the numbers of the model check into docs/protocol.md.

    .venv/bin/python tests/model/count_worlds.py

After a change of the machine that is meant. tests/model/test_search.py compares the numbers.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from model.mutants import MUTANTS
from model.search import Search, Visited
from model.settings import FAST, SLOW
from model.world import Setting, Setup

PROTOCOL = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"
BEGIN = "<!-- written by tests/model/count_worlds.py -->"
END = "<!-- until here -->"

WORDS = {
    "deaths": ("death", "deaths"),
    "slips": ("bad end", "bad ends"),
    "pauses": ("Ctrl-C", "Ctrl-C"),
    "leaves": ("SIGTERM", "SIGTERM"),
    "visits": ("needless visit", "needless visits"),
    "losses": ("lost queue", "lost queues"),
    "intrusions": ("second runner", "second runners"),
    "echoes": ("late or repeated end", "late or repeated ends"),
}


def bounds(setting: Setting) -> str:
    """How much happens, in words."""
    replies = "; ".join(", ".join(reply) for reply in setting.replies) or "rests"
    counts = {name: count for name, count in setting.purse._asdict().items() if count}
    troubles = [f"{count} {WORDS[name][count > 1]}" for name, count in counts.items()]
    messages = len(setting.messages)
    heard = f"{messages} message{'s' * (messages > 1)}"
    variants = [f"{len(setting.rules)} sets of rules"] if len(setting.rules) > 1 else []
    return f"{replies} | {', '.join([heard, *troubles, *variants])}"


def row(setting: Setting, visited: Visited) -> str:
    """One line of the table."""
    worlds, moves, logs = visited.worlds, visited.moves, len(visited.logs)
    return f"| {setting.name} | {bounds(setting)} | {worlds:,} | {moves:,} | {logs:,} |"


def table(rows: list[str]) -> str:
    """The whole table, and how many guards were taken out."""
    head = "| world | calls of each reply | at most | worlds | moves | logs |"
    line = "| --- | --- | --- | ---: | ---: | ---: |"
    told = f"Guards taken out one at a time, each of them missed: {len(MUTANTS)}."
    return "\n".join([BEGIN, "", head, line, *rows, "", told, "", END])


def written() -> str:
    """What docs/protocol.md says now."""
    text = PROTOCOL.read_text("utf-8")
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def main() -> None:
    rows: list[str] = []
    for setting in (*FAST, *SLOW):
        visited = Search(Setup(setting)).run()
        if visited.found is not None:
            sys.exit(f"{setting.name}: {visited.found}")
        rows.append(row(setting, visited))
        print(rows[-1], flush=True)
    text = PROTOCOL.read_text("utf-8")
    PROTOCOL.write_text(text.replace(written(), table(rows)), "utf-8")


if __name__ == "__main__":
    main()
