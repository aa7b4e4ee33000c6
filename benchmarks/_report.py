"""What a benchmark prints: tables for people, then one JSON line per row."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured value, with what it is compared to and what it should be.

    `ratio` is value / `against`, paired within a repetition where both were measured in turn.
    `goal` bounds the ratio where there is one, else the value, from above; an `exact` goal is the
    value itself. A row without a goal has no `met`: it is there to compare with.
    """

    row: str
    value: float
    unit: str
    against: str | None = None
    ratio: float | None = None
    goal: float | None = None
    exact: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached, None without a goal."""
        if self.goal is None:
            return None
        if self.exact:
            return self.value == self.goal
        return (self.value if self.ratio is None else self.ratio) <= self.goal

    def line(self, bench: str) -> str:
        """Return the row as one line of JSON."""
        return json.dumps(
            {
                "bench": bench,
                "row": self.row,
                "value": _rounded(self.value),
                "unit": self.unit,
                "against": self.against,
                "ratio": None if self.ratio is None else _rounded(self.ratio),
                "goal": self.goal,
                "met": self.met,
            }
        )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}") if abs(value) < 10000 else float(round(value))


def put(text: str = "") -> None:
    """Print one line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Say on standard error what is going on."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def put_table(title: str, names: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a table: the first column to the left, the others to the right."""
    widths = [max(len(line[i]) for line in (names, *lines)) for i in range(len(names))]
    put()
    put(title)
    for line in (names, *lines):
        first, *others = line
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        put("  " + "  ".join(cells).rstrip())


def put_rows(bench: str, rows: Sequence[Row]) -> None:
    """Print every row as a line of JSON."""
    put()
    for row in rows:
        put(row.line(bench))
