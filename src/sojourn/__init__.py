"""An AI agent's whole state in a folder of plain files, run durably from it.

    from sojourn import Agent, tool

Names are loaded when they are first used, so `import sojourn` costs nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.agent import Agent, Machine, Report
    from sojourn.ports import ToolContext, ToolResult
    from sojourn.tools.declare import tool

__version__ = "0.1.0"

__all__ = ["Agent", "Machine", "Report", "ToolContext", "ToolResult", "tool"]

_WHERE = {
    "Agent": "sojourn.agent",
    "Machine": "sojourn.agent",
    "Report": "sojourn.agent",
    "ToolContext": "sojourn.ports",
    "ToolResult": "sojourn.ports",
    "tool": "sojourn.tools.declare",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'sojourn' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)
