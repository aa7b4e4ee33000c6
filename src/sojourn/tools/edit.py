"""The tool `edit`: one text in a file of the workspace for another."""

import os
from collections.abc import Generator
from hashlib import sha256
from typing import Annotated, Final

from msgspec import Meta

from sojourn.errors import UsageError
from sojourn.ids import BlobId
from sojourn.ports import ToolContext, ToolResult
from sojourn.tools.beneath import Spot, spot
from sojourn.tools.declare import tool
from sojourn.tools.output import text_result, without_surrogates
from sojourn.tools.replace import replace_file

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a file that can be edited."""

_PLACES_NAMED: Final = 10


class EditRefused(UsageError):
    """The edit is not clear enough to be made; nothing was changed."""

    default_code = "edit_refused"


@tool(replay="report", verify_with=("read",), name="edit")
def edit_file(
    path: Annotated[str, Meta(description="Path relative to the workspace.")],
    old: Annotated[str, Meta(description="The exact text to replace, with its indentation.")],
    new: Annotated[str, Meta(description="What stands there afterwards.")],
    context: ToolContext,
    everywhere: Annotated[
        bool, Meta(description="Replace every occurrence instead of the only one.")
    ] = False,
) -> ToolResult:
    """Replace a text in a file of the workspace.

    `old` must occur exactly once, unless `everywhere` is true; give more lines around it where it
    is not unique. The file keeps its line ends.
    """
    with spot(context.workspace, path) as found:
        seen = found.stat()
        data = _read(found)
        before = BlobId(sha256(data).hexdigest())
        changed, lines = edited(data, old, new, everywhere=everywhere, shown=found.shown)
        change = replace_file(found, changed, key=context.key, before=before, seen=seen)
    places = ", ".join(map(str, lines[:_PLACES_NAMED]))
    more = ", ..." if len(lines) > _PLACES_NAMED else ""
    times = "once" if len(lines) == 1 else f"{len(lines)} times"
    text = f"{change.path}: replaced {times}, at line {places}{more}"
    return text_result(text, files=(change,))


def edited(
    data: bytes, old: str, new: str, *, everywhere: bool, shown: str
) -> tuple[bytes, list[int]]:
    """The file's new bytes, and the lines of the old ones at which something was replaced.

    Works on bytes, so whatever is not UTF-8 stays as it is.

    Raises: EditRefused.
    """
    old, new = without_surrogates(old), without_surrogates(new)
    if not old:
        raise EditRefused("`old` is empty; to make or replace a whole file use write")
    if old == new:
        raise EditRefused("`old` and `new` are the same text")
    wanted, places = _places(data, old)
    if not places:
        raise EditRefused(
            f"{shown}: `old` does not occur in it; read the file again", code="absent"
        )
    if everywhere:
        places = list(_found(data, wanted, step=len(wanted)))
    lines = [data.count(b"\n", 0, place) + 1 for place in places]
    if len(places) > 1 and not everywhere:
        named = ", ".join(map(str, lines[:_PLACES_NAMED]))
        raise EditRefused(
            f"{shown}: `old` occurs {len(places)} times, at lines {named}; give more of the text"
            " around it, or everywhere=true",
            code="ambiguous",
        )
    made = _with_line_ends(new, like=wanted if b"\n" in wanted else data)
    return data.replace(wanted, made), lines


def _places(data: bytes, old: str) -> tuple[bytes, list[int]]:
    """`old` as the file has it, and where: as given, else with the file's line ends."""
    exact = old.encode()
    plain = exact.replace(b"\r\n", b"\n")
    for wanted in (exact, plain, plain.replace(b"\n", b"\r\n")):
        if places := list(_found(data, wanted)):
            return wanted, places
    return exact, []


def _found(data: bytes, wanted: bytes, step: int = 1) -> Generator[int]:
    """Every place, overlapping ones too: of `aa` in `aaa` it is not clear which is meant."""
    place = data.find(wanted)
    while place >= 0:
        yield place
        place = data.find(wanted, place + step)


def _with_line_ends(new: str, *, like: bytes) -> bytes:
    """The text with line ends of the kind that most lines of `like` have."""
    plain = new.encode().replace(b"\r\n", b"\n")
    windows = like.count(b"\r\n")
    if windows * 2 > like.count(b"\n"):
        return plain.replace(b"\n", b"\r\n")
    return plain if b"\n" in like else new.encode()


def _read(found: Spot) -> bytes:
    with os.fdopen(found.open_file(), "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise EditRefused(f"{found.shown}: larger than {LARGEST:,} bytes; use shell", code="large")
    if b"\x00" in data:
        raise EditRefused(f"{found.shown}: a binary file; only text can be edited", code="binary")
    return data
