"""What a driver tells whoever watches; nothing it says is needed for correctness."""

from typing import Protocol

from sojourn.format.event import Event
from sojourn.render import Delta


class Observer(Protocol):
    """Somebody who watches a run; must return at once and never raise."""

    def event(self, event: Event) -> None:
        """The event is durable."""
        ...

    def delta(self, delta: Delta) -> None:
        """A piece of a reply as it comes; not durable yet."""
        ...

    def output(self, tool: str, data: bytes) -> None:
        """A piece of a tool's output as it comes."""
        ...

    def note(self, text: str) -> None:
        """One line about what the runtime did, for people."""
        ...


class Unwatched:
    """An observer that looks away."""

    def event(self, event: Event) -> None:
        """See `Observer`."""

    def delta(self, delta: Delta) -> None:
        """See `Observer`."""

    def output(self, tool: str, data: bytes) -> None:
        """See `Observer`."""

    def note(self, text: str) -> None:
        """See `Observer`."""
