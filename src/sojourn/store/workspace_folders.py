"""Folders of a workspace by their handles, never through a link that somebody put on the way."""

import os
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""A pipe that took a file's place keeps nobody waiting."""


def open_folder(name: str, *, inside: int | None = None) -> int:
    """A handle of a real folder; `inside` is the folder that a relative name is looked up in.

    Raises: OSError, also when the name is a link.
    """
    return os.open(name, FOLDER_FLAGS, dir_fd=inside)


class Reach:
    """Opens folders below one root, one after the other; near ones share the way.

    A handle is good until the next call.
    """

    def __init__(self, root: str, *, inside: int | None = None) -> None:
        self._chain: list[tuple[str, int]] = [("", open_folder(root, inside=inside))]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def root(self) -> int:
        """The root's handle."""
        return self._chain[0][1]

    def at(self, folder: str, *, make: bool = False) -> int:
        """The handle of `folder`, relative to the root, made with its parents when asked.

        Raises: OSError when it is none, or a link is on the way.
        """
        parts = folder.split("/") if folder else []
        shared = 0
        while shared < min(len(parts), len(self._chain) - 1):
            if self._chain[shared + 1][0] != parts[shared]:
                break
            shared += 1
        self._shorten(shared + 1)
        for part in parts[shared:]:
            inside = self._chain[-1][1]
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=inside)
            self._chain.append((part, open_folder(part, inside=inside)))
        return self._chain[-1][1]

    def stat(self, path: str) -> os.stat_result | None:
        """Of the path itself, never of what a link names; None when nothing is there."""
        folder, _, name = path.rpartition("/")
        try:
            return os.stat(name, dir_fd=self.at(folder), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            # A link on the way: what it leads to is not in the workspace.
            return None

    def again(self) -> None:
        """Look every folder up anew: some were removed or made."""
        self._shorten(1)

    def close(self) -> None:
        """Let go of every handle."""
        self._shorten(0)

    def _shorten(self, length: int) -> None:
        while len(self._chain) > length:
            os.close(self._chain.pop()[1])
