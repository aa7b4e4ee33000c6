"""What the model is told by the runtime, word for word (docs/rendering.md)."""

from typing import Final

import msgspec
from msgspec.structs import replace

from sojourn.format.parts import ContentPart, TextPart
from sojourn.ids import EventId


class Notice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the runtime tells the model; `attached` are words of people that belong to it."""

    event: EventId
    text: str
    attached: tuple[ContentPart, ...] = ()

    def says_again(self, last: object) -> bool:
        """Whether it says just what was said right before it."""
        return isinstance(last, Notice) and replace(last, event=self.event) == self


UNSYNCED: Final = (
    "The machine was started again since the last shell command. Files that the command wrote "
    "and did not sync may be missing or older than its output says; check before you rely on them."
)
SETTLED: Final = "The earlier call of {tool} whose outcome was unknown is now settled: {decision}."
TWO_EDITS: Final = (
    "The working memory was edited in two places, neither knowing of the other. Both texts are "
    "kept in it. These are the earlier one and the later one:"
)
MOVED: Final = (
    "You were moved to another machine. The files of your workspace came along; installed "
    "programs, running processes and addresses of this machine may differ from before."
)
MOVED_TO: Final = (
    "You were moved to another machine, {label}. The files of your workspace came along; installed "
    "programs, running processes and addresses of this machine may differ from before."
)
MOVED_LACKS: Final = (
    "What these earlier calls did to files may not have come along; look before you rely on a file:"
)
NOT_ALONG: Final = "These paths did not come along: {names}"
UNKNOWN_CALLS: Final = (
    "These calls were under way when you were moved. Nobody knows whether they were done:"
)
GONE: Final = "[The content of this {what} is gone: it was redacted, or lost.]"
HAND_EDIT: Final = "The working memory was edited by hand. It now reads:"


def gone(what: str) -> tuple[TextPart, ...]:
    """What stands for a content that is not there any more."""
    return (TextPart(text=GONE.format(what=what)),)
