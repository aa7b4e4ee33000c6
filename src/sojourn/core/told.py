"""What the runtime tells the model in notices, word for word (docs/rendering.md)."""

from typing import Final

UNSYNCED: Final = (
    "The machine was started again since the last shell command. Files that the command wrote "
    "and did not sync may be missing or older than its output says; check before you rely on them."
)
SETTLED: Final = "The earlier call of {tool} whose outcome was unknown is now settled: {decision}."
TWO_EDITS: Final = (
    "The working memory was edited in two places, neither knowing of the other. Both texts are "
    "kept in it. These are the earlier one and the later one:"
)
GONE: Final = "[The content of this {what} is gone: it was redacted, or lost.]"
HAND_EDIT: Final = "The working memory was edited by hand. It now reads:"
