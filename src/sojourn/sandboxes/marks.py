"""What a call's processes carry, so that they are known wherever they went.

Two variables of their environment; and, since a program can start others with an empty one, a value
of a resource limit that Linux has not enforced since 2.4, which every descendant inherits and
anybody may read (docs/tools.md#processes).
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from sojourn.errors import UsageError
from sojourn.format.environment import is_secret_name
from sojourn.ids import CallKey, CapsuleId

CAPSULE: Final = "SOJOURN_CAPSULE"
CALL: Final = "SOJOURN_CALL"

PASSED: Final = frozenset(
    [
        "COLORTERM",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
    ]
)
"""Variables that programs get from sojourn's own environment, and those that begin with LC_."""

_PLAIN: Final = 1 << 62
_BITS: Final = 31
_LIMIT_LINE: Final = re.compile(rb"^Max resident set +(\d+) ", re.MULTILINE)


def passed_environment(environment: Mapping[str, str], allow: Sequence[str] = ()) -> dict[str, str]:
    """The variables that programs may see, and a PATH in any case; `allow` names further ones.

    Raises: UsageError `secret_allowed` for a name that looks like a secret's.
    """
    for name in allow:
        if is_secret_name(name):
            raise UsageError(
                f"{name} looks like a secret, so no program gets it", code="secret_allowed"
            )
    names = PASSED | set(allow)
    passed = {
        name: value
        for name, value in environment.items()
        if name in names or (name.startswith("LC_") and not is_secret_name(name))
    }
    return {"PATH": os.defpath, **passed}


def marked_environment(capsule: CapsuleId, call: CallKey) -> dict[str, str]:
    """The two variables."""
    return {CAPSULE: capsule, CALL: call}


def mark_limit(pid: int, capsule: CapsuleId, call: CallKey) -> None:
    """Give a process that waits at its gate the limit's value; without it, less is found."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        _, hard = resource.prlimit(pid, resource.RLIMIT_RSS)
        value = _PLAIN | _tag(capsule) << _BITS | _tag(call)
        resource.prlimit(pid, resource.RLIMIT_RSS, (value, hard))


def is_marked(pid: int, capsule: CapsuleId, call: CallKey | None = None) -> bool:
    """Whether the process comes from a call of the capsule, or from that very call."""
    marks = {CAPSULE: capsule} if call is None else marked_environment(capsule, call)
    wanted = {f"{name}={value}".encode() for name, value in marks.items()}
    if wanted.issubset(_read(pid, "environ").split(b"\0")):
        return True
    found = _LIMIT_LINE.search(_read(pid, "limits"))
    if found is None:
        return False
    limit = int(found[1])
    of_capsule = limit >> _BITS == (_PLAIN >> _BITS | _tag(capsule))
    return of_capsule and (call is None or limit & (1 << _BITS) - 1 == _tag(call))


def _tag(id: str) -> int:
    return int.from_bytes(sha256(id.encode()).digest()[:4]) >> 1


def _read(pid: int, file: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        # Gone, or somebody else's.
        return b""
