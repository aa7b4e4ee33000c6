"""Changes of typed documents as they stand in a tool's outcome (docs/format.md#documents)."""

import re

from sojourn.errors import FormatError
from sojourn.format import canon, layout
from sojourn.format.event import DocumentChange
from sojourn.format.failures import say

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_SCHEMA = re.compile(r"[a-z][a-z0-9_./-]{0,63}")


def check(change: DocumentChange, *, line: int | None = None) -> None:
    """Pass when the change is one; a value in a blob is left to `value`.

    Raises: FormatError `document_malformed`.
    """
    if not _NAME.fullmatch(change.name):
        raise _error(f"the name {change.name!r}", line)
    if not _SCHEMA.fullmatch(change.schema):
        raise _error(f"the schema {change.schema!r}", line)
    if change.version < 1:
        raise _error(f"version {change.version}", line)
    if isinstance(change.value, str):
        value(change.value, line=line)


def value(text: str, *, line: int | None = None) -> canon.JSON:
    """The value of a document's JSON source text.

    Raises: FormatError `document_malformed`.
    """
    try:
        return canon.load(text.encode(), what=layout.TIMELINE, line=line)
    except (FormatError, UnicodeEncodeError) as error:
        raise _error(str(error), line) from None


def _error(detail: str, line: int | None) -> FormatError:
    code = "document_malformed"
    return FormatError(say(code, detail), code=code, file=layout.TIMELINE, line=line)
