"""Versions: may a capsule be read, may it be written (docs/format.md#versions)?

Lines are never re-encoded: a kind whose shape changes gets a new name in `event.KINDS`, and the
reader of the old one gives the new value. There is none in version 1.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from sojourn.format.failures import Code

FORMAT: Final = "sojourn.capsule"
READ_VERSION: Final = 1
WRITE_VERSION: Final = 1
FEATURES: Final[frozenset[str]] = frozenset()
"""The features that this version knows."""

Access: TypeAlias = Literal["write", "read"]


def refusal(*, name: str, read: int) -> tuple[Code, str] | None:
    """Why this version must not read a capsule, with what it needs; None when it may."""
    if name != FORMAT:
        return "format_unknown", f"`{name}`"
    if read > READ_VERSION:
        return "read_version_newer", f"version {read}, this is {READ_VERSION}"
    return None


def missing(required: Sequence[str]) -> tuple[Code, str] | None:
    """The required features that this version does not know; None when there is none."""
    unknown = sorted(set(required) - FEATURES)
    return ("feature_unknown", ", ".join(unknown)) if unknown else None


def access(*, write: int) -> Access:
    """Whether this version may write to a capsule that it may read."""
    return "write" if write <= WRITE_VERSION else "read"
