"""What is left when a command that writes files fails in the middle, found by looking there.

A failed write has an unknown outcome (docs/protocol.md#write-discipline), but most commands know
how to tell what became of it: whether the file, folder or log is there now.
"""

import os
from asyncio import CancelledError
from collections.abc import Callable, Generator
from contextlib import contextmanager

from sojourn.errors import StorageError
from sojourn.format import layout
from sojourn.store.durable import maker_of, storage_error


@contextmanager
def telling(state: Callable[[], str]) -> Generator[None]:
    """What the machine fails at inside, or Ctrl-C ends, is told with the state as it is then.

    Of Ctrl-C the state is a note on the exception, since that has no other place for it.
    """
    try:
        yield
    except StorageError as failure:
        failure.state = state()
        raise
    except OSError as failure:
        told = storage_error(failure, str(failure.filename or "a file"))
        told.state = state()
        raise told from failure
    except (KeyboardInterrupt, CancelledError) as failure:
        failure.add_note(state())
        raise


class Target:
    """A file or folder that shall come to be: what was there, and what is there now."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._before = _stamp(path)

    @property
    def changed(self) -> bool:
        """Whether something else is there than before."""
        return _stamp(self.path) != self._before

    @property
    def was_there(self) -> bool:
        """Whether something was there before."""
        return self._before is not None

    def left(self, called: str | None = None) -> str:
        """What this process left half-made for it and could not remove, as a sentence or empty.

        `called` is the name that it is the half-made form of, if not the target's own.
        """
        folder, name = os.path.split(self.path)
        ours = (called or name, os.getpid())
        try:
            found = sorted(one for one in os.listdir(folder) if maker_of(one) == ours)
        except OSError:
            return ""
        paths = ", ".join(os.path.join(folder, one) for one in found)
        return f" What was begun could not be removed: {paths}" if paths else ""


def of_export(target: Target) -> str:
    """The state after an export that failed."""
    if target.changed:
        return (
            f"{target.path} was written and read back, but this machine may not have noted it, and "
            "a power cut may still take it away. Check it with `sojourn verify`."
        )
    there = f", and {target.path} is as it was" if target.was_there else ""
    return (
        f"No archive was written{there}. The capsule stays here; a seal that its log has already "
        f"is used by the next export.{target.left()}"
    )


def of_import(target: Target | None, staged_in: Target) -> str:
    """The state after an import that failed; no `target` before it is known."""
    if target is not None and target.changed:
        return (
            f"The capsule is whole in {target.path}, but this machine may not have noted it. Look "
            "at it there, or remove that folder and import it again."
        )
    return f"Nothing was imported.{staged_in.left()}"


def of_fork(target: Target, workspace: str | None) -> str:
    """The state after a fork that failed; `workspace` is one that was there before."""
    if target.changed and os.path.lexists(os.path.join(target.path, layout.MANIFEST)):
        return (
            f"The fork is whole in {target.path}, but a power cut may still take it away. Check it "
            "with `sojourn verify`."
        )
    files = ""
    if workspace is not None:
        files = f" Files of the snapshot may be in {workspace} already; the same command goes on."
    return f"No fork was made, and the capsule is as it was.{files}{target.left()}"


def of_merge(log: Target) -> str:
    """The state after a merge that failed; `log` is the log of the capsule that takes in."""
    if log.changed:
        return (
            "The log was written anew. The same command finishes what is left to do, or finds that "
            "nothing is."
        )
    return (
        "The log is as it was: nothing was merged. Blobs that came already stay, and the same "
        "command goes on with them."
    )


def of_restore(target: Target) -> str:
    """The state after files were put into a folder and that failed."""
    if not target.changed and not target.was_there:
        return "No file was made."
    return (
        f"Files of the snapshot may be in {target.path}, and others lack. The same command makes "
        "those that lack."
    )


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
