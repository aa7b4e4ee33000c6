"""The words for how a capsule stands (docs/cli.md#standings)."""

from typing import Literal, TypeAlias

Standing: TypeAlias = Literal[
    "running",
    "held",
    "frozen",
    "in_doubt",
    "moved_away",
    "arriving",
    "look_only",
    "damaged",
    "decision",
    "model_failed",
    "paused",
    "interrupted",
    "waiting",
    "resting",
]
