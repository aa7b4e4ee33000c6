"""Which names of a workspace no snapshot shall hold: the ignore files of its folders.

The syntax is that of .gitignore, as the package pathspec reads it (docs/format.md#snapshots).
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sojourn.store.workspace_folders import FILE_FLAGS

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

OWN: Final = ".sojournignore"
GIT: Final = ".gitignore"
INCLUDE: Final = "#include .gitignore"
"""The line of the workspace's own ignore file by which files of git count too."""

LONGEST: Final = 1 << 20
"""Bytes of an ignore file; of a longer one only whole lines up to here count."""


class Rules:
    """The rules of one folder and those above it; deeper ones go first."""

    def __init__(self, above: "Rules | None", prefix: str, lines: list[str], *, git: bool) -> None:
        self._above = above
        self._skip = len(prefix)
        self._spec = _spec(lines)
        self.git = git

    def ignores(self, path: str, *, folder: bool) -> bool:
        """Whether a path, relative to the workspace, is to be left out."""
        rules: Rules | None = self
        while rules is not None:
            name = path[rules._skip :] + ("/" if folder else "")
            found = rules._spec.check_file(name).include
            if found is not None:
                return found
            rules = rules._above
        return False


def rules_of(
    above: Rules | None, prefix: str, names: Iterable[str], handle: int
) -> tuple[Rules | None, bool]:
    """The rules in the folder `prefix` (ending in `/`, or empty), whose ignore files are `names`.

    And whether the folder has rules of its own.
    """
    there = set(names)
    own = _lines(handle, OWN) if OWN in there else []
    if prefix:
        git = above is not None and above.git
    else:
        git = INCLUDE in (line.strip() for line in own)
    lines = [*(_lines(handle, GIT) if git and GIT in there else []), *own]
    if not lines:
        return above, False
    return Rules(above, prefix, lines, git=git), True


def _lines(handle: int, name: str) -> list[str]:
    """The lines of an ignore file; a link or whatever else is no file has none, as git has it."""
    try:
        file = os.open(name, FILE_FLAGS, dir_fd=handle)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return []
        data = os.pread(file, LONGEST + 1, 0)
    except OSError:
        return []
    finally:
        os.close(file)
    if len(data) > LONGEST:
        data = data[: data.rfind(b"\n", 0, LONGEST) + 1]
    return data.decode("utf-8", "surrogateescape").splitlines()


def _spec(lines: list[str]) -> "GitIgnoreSpec":
    """The rules of some lines; a line that is none is passed over, as git does."""
    from pathspec import GitIgnoreSpec

    with suppress(ValueError):
        return GitIgnoreSpec.from_lines(lines)
    good: list[str] = []
    for line in lines:
        with suppress(ValueError):
            GitIgnoreSpec.from_lines([line])
            good.append(line)
    return GitIgnoreSpec.from_lines(good)
