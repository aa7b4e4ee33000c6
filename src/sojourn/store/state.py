"""Where a machine keeps what is its own, never a capsule's: the state folder and its parts.

Pure functions of the environment; nothing is made or looked at (docs/protocol.md#state-folder).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from sojourn.ids import CapsuleId


def state_root(env: Mapping[str, str], home: str, cwd: str) -> str:
    """`$SOJOURN_HOME`, else `$XDG_STATE_HOME/sojourn`, else `~/.local/state/sojourn`; absolute.

    A relative `$XDG_STATE_HOME` is ignored, as its specification says; an empty variable counts
    as none.
    """
    chosen = env.get("SOJOURN_HOME", "")
    if chosen:
        return os.path.normpath(os.path.join(cwd, chosen))
    folder = env.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(home, ".local", "state")
    return os.path.join(os.path.normpath(folder), "sojourn")


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The paths below one state folder, given absolute."""

    root: str

    @property
    def ledger(self) -> str:
        """Folder of one record a capsule."""
        return f"{self.root}/ledger"

    @property
    def inbox(self) -> str:
        """Folder of one folder of messages a capsule."""
        return f"{self.root}/inbox"

    @property
    def locks(self) -> str:
        """Folder of one lock file a capsule."""
        return f"{self.root}/locks"

    @property
    def capsules(self) -> str:
        """Where capsules lie that were not given another place."""
        return f"{self.root}/capsules"

    @property
    def workspaces(self) -> str:
        """Where workspaces lie that were not given another place."""
        return f"{self.root}/workspaces"

    @property
    def runs(self) -> str:
        """What the processes of runs leave for their successors."""
        return f"{self.root}/runs"

    @property
    def releases(self) -> str:
        """Folder of one file a capsule that somebody asks the process that runs it for."""
        return f"{self.root}/releases"

    @property
    def arriving(self) -> str:
        """What comes from other machines and is not live yet, one folder a capsule."""
        return f"{self.root}/arriving"

    @property
    def cache(self) -> str:
        """Contents that came from other machines, by their sha256; never authority."""
        return f"{self.root}/cache/sha256"

    @property
    def scripts(self) -> str:
        """Folder of one file a capsule: where the script of its model lies."""
        return f"{self.root}/scripts"

    @property
    def queue(self) -> str:
        """The file of the queue."""
        return f"{self.root}/queue.sqlite3"

    def working_index(self, capsule: CapsuleId, folder: str) -> str:
        """The file of a capsule's passages, made again when it is lost.

        A capsule whose id cannot be read has one by its folder.
        """
        name = capsule or f"at-{sha256(os.fsencode(folder)).hexdigest()[:32]}"
        return f"{self.root}/recall/{name}.sqlite3"

    def stats(self, capsule: CapsuleId) -> str:
        """What earlier readings of a capsule's workspace found; losing it loses nothing."""
        return f"{self.root}/stats/{capsule}"

    def workspace(self, capsule: CapsuleId) -> str:
        """The default workspace of a capsule."""
        return f"{self.workspaces}/{capsule}"
