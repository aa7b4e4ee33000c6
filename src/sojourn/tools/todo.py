"""The tool `todo`: the agent's list of things to do, a typed document of the log."""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from sojourn.errors import UsageError
from sojourn.format.event import DocumentChange
from sojourn.ports import ToolContext, ToolResult
from sojourn.tools.declare import tool
from sojourn.tools.output import text_result

NAME: Final = "todo"
SCHEMA: Final = "sojourn.todo/1"
LARGEST: Final = 12 * 1024
"""Bytes of the list as JSON, so that it stays in its event and in one answer."""

State: TypeAlias = Literal["open", "doing", "done"]
MARKS: Final[dict[State, str]] = {"open": "[ ]", "doing": "[>]", "done": "[x]"}


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do."""

    text: Annotated[str, Meta(min_length=1, max_length=500)]
    state: State = "open"


@tool(replay="safe", name="todo")
async def todo_list(
    context: ToolContext,
    items: Annotated[
        tuple[Item, ...] | None,
        Meta(description="The whole new list, in order; leave out to read the list."),
    ] = None,
) -> ToolResult:
    """Keep a list of what is to be done in a longer task, and read it.

    Give the whole list each time. Mark one item `doing` while you work on it, and `done` at once
    when it is.
    """
    present = context.documents.get(NAME)
    if items is None:
        return text_result(_told(_items(present)))
    version = 1 if present is None else present.version + 1
    value = msgspec.json.encode(items, order="sorted").decode()
    if len(value.encode()) > LARGEST:
        raise UsageError(
            f"the list is larger than {LARGEST:,} bytes; leave out what is done", code="too_large"
        )
    change = DocumentChange(name=NAME, schema=SCHEMA, version=version, value=value)
    return text_result(_told(items), documents=(change,))


def _items(present: DocumentChange | None) -> tuple[Item, ...]:
    if present is None:
        return ()
    if present.schema != SCHEMA or not isinstance(present.value, str):
        raise UsageError(
            f"the list is kept as {present.schema!r}, which this version does not read; giving"
            " a new list replaces it",
            code="unknown_schema",
        )
    return msgspec.json.decode(present.value, type=tuple[Item, ...])


def _told(items: tuple[Item, ...]) -> str:
    done = sum(item.state == "done" for item in items)
    lines = [f"{MARKS[item.state]} {item.text}" for item in items]
    return "\n".join([f"{done} of {len(items)} done", *lines])
