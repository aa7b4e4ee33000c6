"""The tool `list`: what is in a folder of the workspace."""

import os
import stat
from typing import Annotated, Final

from msgspec import Meta

from sojourn.ports import ToolContext, ToolResult
from sojourn.tools.beneath import kind_of, spot
from sojourn.tools.declare import tool
from sojourn.tools.output import text_result
from sojourn.tools.walk import NEVER_ENTERED, Entry, printable, walk

DEEPEST: Final = 10
SHOWN: Final = 1000
"""Entries that one answer names."""


@tool(replay="safe", name="list")
def list_files(
    context: ToolContext,
    path: Annotated[str, Meta(description="Folder, relative to the workspace.")] = ".",
    depth: Annotated[int, Meta(ge=1, le=DEEPEST, description="How many levels.")] = 1,
    hidden: Annotated[bool, Meta(description="Also names that begin with a dot.")] = False,
) -> ToolResult:
    """List a folder of the workspace, sorted, one path a line with its size in bytes.

    Folders end in `/`, links show where they lead and are not followed, `.git` is never entered.
    """
    lines: list[str] = []
    with spot(context.workspace, path) as found:
        entries = walk(found, depth=depth, hidden=hidden)
        for entry in entries:
            if len(lines) == SHOWN:
                lines.append(f"[more than {SHOWN:,} entries; list a folder of it, or less depth]")
                break
            lines.append(_line(entry, depth))
        entries.close()
        shown = found.shown
    return text_result("\n".join(lines) or f"[{shown}: nothing, hidden names aside]")


def _line(entry: Entry, depth: int) -> str:
    path = printable(entry.path)
    if entry.left_out:
        return f"[{path}: {entry.left_out:,} entries more, not looked at]"
    if stat.S_ISDIR(entry.mode):
        unopened = entry.depth < depth and entry.name in NEVER_ENTERED
        return f"{path}/" + (" [not entered]" if unopened else "")
    if stat.S_ISLNK(entry.mode):
        return f"{path} -> {printable(_target(entry))}"
    if stat.S_ISREG(entry.mode):
        return f"{path} {entry.size}"
    return f"{path} [{kind_of(entry.mode)}]"


def _target(entry: Entry) -> str:
    try:
        return os.readlink(entry.name, dir_fd=entry.folder)
    except OSError:
        return "?"
