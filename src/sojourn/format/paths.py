"""Which paths may stand in a capsule's files (docs/format.md#paths)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Final

MAX_PART = 255
MAX_PATH = 1024

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_UNPORTABLE = re.compile(r'[<>:"\\|?*]|[ .](?:/|$)')
_RESERVED = re.compile(
    r"(?:^|/)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.[^/]*)?(?:/|$)", re.IGNORECASE
)

_RESERVED_NAMES = "(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])"
_PART = "[A-Za-z0-9_-]{1}([A-Za-z0-9._-]{0,253}[A-Za-z0-9_-])?"
OWN: Final = re.compile(
    r"\A(?!manifest\.json\Z|memory/timeline_events\.jsonl\Z|artifacts/blobs/)"
    rf"(?!.{{1025}})(?!(.*/)?{_RESERVED_NAMES}(\.[^/]*)?(/|\Z)){_PART}(/{_PART})*\Z"
)
"""Paths of a capsule's own files: names that every system reads alike."""


def unsafe(path: str) -> str | None:
    """Why a path may not be used at all, or None.

    A string that is not valid Unicode is unsafe, too.
    """
    try:
        data = path.encode()
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if len(data) > MAX_PATH:
        return f"it is longer than {MAX_PATH} bytes"
    if _CONTROL.search(path):
        return "it holds a control character"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "a part of it is empty, `.` or `..`"
        if len(part.encode()) > MAX_PART:
            return f"a part of it is longer than {MAX_PART} bytes"
    return None


def unportable(path: str) -> str | None:
    """Why a safe path would not work on every system, or None; looks at this path alone."""
    if unicodedata.normalize("NFC", path) != path:
        return "it is not in NFC"
    if _UNPORTABLE.search(path):
        return "it holds a character that Windows refuses"
    if _RESERVED.search(path):
        return "a part of it is reserved on Windows"
    return None


def may_be_listed(path: str) -> bool:
    """Whether a path may name a file of a capsule itself, beside manifest, log and blobs."""
    return OWN.search(path) is not None


def flagged(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths of a workspace that would not work on every system, sorted.

    Those that differ from another only in case are among them.
    """
    known = sorted(paths, key=str.encode)
    folded = Counter(path.casefold() for path in known)
    return tuple(path for path in known if unportable(path) or folded[path.casefold()] > 1)
