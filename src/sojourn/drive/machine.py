"""The ports of one machine, as the drivers need them; `agent.py` puts them together."""

from collections.abc import Callable
from dataclasses import dataclass

from sojourn.core.mask import Mask
from sojourn.ids import CapsuleId
from sojourn.ports import (
    Inbox,
    Ledger,
    Lock,
    MachineKey,
    Queue,
    Randomness,
    Sandbox,
    Store,
    WallClock,
)
from sojourn.ports_workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What one machine has; `store_at` opens the capsule in a folder, `boot` is the boot's id.

    `workspace_at` takes the capsule's id, its folder and that of the workspace;
    `network_at` names the kind of network file system a folder is on, None for a local one;
    `is_other_folder` says whether the first folder still exists and is not the second;
    `mask` takes secret values out of what is about to be written.
    """

    ledger: Ledger
    lock: Lock
    inbox: Inbox
    queue: Queue
    key: MachineKey
    clock: WallClock
    randomness: Randomness
    boot: str
    store_at: Callable[[str], Store]
    sandbox_for: Callable[[CapsuleId], Sandbox]
    workspace_at: Callable[[CapsuleId, str, str], Workspace]
    network_at: Callable[[str], str | None]
    is_other_folder: Callable[[str, str], bool]
    mask: Mask
