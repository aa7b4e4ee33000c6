"""Numbers and times as people say them, and rows of words as a table."""

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from sojourn.cli.clean import clean
from sojourn.cli.voice import Channel, Painted

STEPS: Final = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (31 * 86_400, 86_400, "d"))
"""Below how many seconds a unit is used, its length in seconds, its name."""

WIDEST_AGO: Final = len("59 min ago")
"""How many columns `ago` fills at most; a date is as long."""


def ago(time: str | None, now: datetime | None = None) -> str:
    """How long ago an RFC 3339 time was: `3 min ago`, and a date for what is older than a month."""
    if time is None:
        return "never"
    try:
        then = datetime.fromisoformat(time)
    except ValueError:
        return clean(time)
    now = now or datetime.now(UTC)
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    seconds = (now - then).total_seconds()
    if seconds < 1:
        return "now" if seconds > -60 else f"{then:%Y-%m-%d}"
    for below, length, unit in STEPS:
        if seconds < below:
            return f"{int(seconds / length)} {unit} ago"
    return f"{then:%Y-%m-%d}"


def clock_time(time: str) -> str:
    """An RFC 3339 time in the person's own time zone, to the second."""
    try:
        return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return clean(time)


def took(milliseconds: float) -> str:
    """A duration: `12 ms`, `3.4 s`, `2 min 5 s`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def size(count: int) -> str:
    """A number of bytes: `512 B`, `3.1 MB`."""
    amount, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{count} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def counted(count: int, one: str, many: str = "") -> str:
    """A number and its noun: `1 event`, `1,200 events`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


Row = Sequence[str | Painted]


def table(channel: Channel, head: Sequence[str], rows: Sequence[Row]) -> None:
    """Rows under a heading, in columns; a terminal gets them fitted to its width."""
    if channel.terminal:
        _rich_table(channel, head, rows)
        return
    shown = [list(head), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(cells(row[at]) for row in shown) for at in range(len(head))]
    for row in shown:
        padded = (text + " " * (widths[at] - cells(text)) for at, text in enumerate(row))
        channel.line("  ".join(padded).rstrip())


def _text(cell: str | Painted) -> str:
    """The cell's text on one line."""
    text = cell if isinstance(cell, str) else cell.text
    return clean(text).replace("\n", "\\n").replace("\t", "\\t")


def _rich_table(channel: Channel, head: Sequence[str], rows: Sequence[Row]) -> None:
    """The table as rich draws it: columns shrink, wide letters are measured."""
    from io import StringIO
    from shutil import get_terminal_size

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in head:
        drawn.add_column(name, no_wrap=True, overflow="ellipsis")
    styles = {"good": "green", "bad": "red", "warn": "yellow", "name": "cyan", "plain": ""}
    styles |= {"alarm": "bold yellow"}
    for row in rows:
        shown: list[Text] = []
        for cell in row:
            style = "" if isinstance(cell, str) else styles.get(cell.style, cell.style)
            shown.append(Text(_text(cell), style=style))
        drawn.add_row(*shown)
    paper = StringIO()
    colours = "standard" if channel.colour else None
    console = Console(
        file=paper,
        width=get_terminal_size().columns,
        force_terminal=channel.colour,
        no_color=not channel.colour,
        color_system=colours,
    )
    console.print(drawn)
    for line in paper.getvalue().splitlines():
        channel.raw(line.rstrip() + "\n")
