"""Which tools an agent has: by name, each once, and the built-in ones."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from sojourn.errors import UsageError
from sojourn.ports import Tool
from sojourn.tools.ask import ask_person
from sojourn.tools.declare import DeclaredTool, checked_name, tool
from sojourn.tools.edit import edit_file
from sojourn.tools.list import list_files
from sojourn.tools.memory import keep_notes
from sojourn.tools.read import read_file
from sojourn.tools.recall import recall_events
from sojourn.tools.search import search_files
from sojourn.tools.shell import run_shell
from sojourn.tools.todo import todo_list
from sojourn.tools.write import write_file


class RuleWarning(UserWarning):
    """A tool without a declared rule is treated as one that must not run twice."""


def built_in() -> tuple[Tool, ...]:
    """Every tool that comes with sojourn, sorted by name (docs/tools.md)."""
    return (
        ask_person,
        edit_file,
        list_files,
        keep_notes,
        read_file,
        recall_events,
        search_files,
        run_shell,
        todo_list,
        write_file,
    )


def toolbox(tools: Iterable[Tool | Callable[..., object]]) -> Mapping[str, Tool]:
    """The tools by name, in the order given; a plain function becomes a tool without a rule.

    Warns: RuleWarning for each without a declared rule.
    Raises: UsageError `tool_name` for a name that not every provider takes, `tool_twice`.
    """
    box: dict[str, Tool] = {}
    for given in tools:
        made = (
            cast("Tool", given)
            if hasattr(given, "spec")
            else tool(cast("Callable[..., object]", given))
        )
        name = checked_name(made.spec.name)
        if name in box:
            raise UsageError(f"two tools are named {name!r}", code="tool_twice")
        if isinstance(made, DeclaredTool) and not made.declared:
            warnings.warn(
                f"tool {name!r} declares no replay rule: after a crash in the middle of it, it is"
                " not run again; declare one with @tool(replay=...)",
                RuleWarning,
                stacklevel=2,
            )
        box[name] = made
    return box
