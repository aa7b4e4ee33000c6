"""What a fork ends that its parent left open, and what a workspace may lack of what was done.

docs/format.md#identity and docs/protocol.md#fork are the specification.
"""

from typing import Final

from sojourn.core.turn_state import TurnState
from sojourn.format.capsule_kinds import Snapshotted
from sojourn.format.event import (
    AnyBody,
    Event,
    Failure,
    Issuer,
    ModelOutcome,
    ToolIntent,
    ToolOutcome,
    TurnEnded,
)
from sojourn.ids import CallKey, EventId

FORKED: Final = "forked"
"""The failure's code of a call that was open in the parent."""

MAY_HAVE_HAPPENED: Final = (
    "This agent was forked from another while the call was open there. It may have happened, but "
    "nothing of it is known here, and it is not made again by itself."
)
_NOBODY: Final = Issuer(provider="", api="", scope="", model="")


def set_aside(state: TurnState) -> tuple[AnyBody, ...]:
    """The events that put a fork to rest: outcomes of open calls, and the end of the open turn.

    A call that was asked for and never begun needs none: it did not happen, and never will.
    """
    if state.turn is None:
        return ()
    failure = Failure(code=FORKED, message=MAY_HAVE_HAPPENED)
    bodies: list[AnyBody] = []
    if state.model is not None:
        bodies.append(
            ModelOutcome(
                turn=state.turn,
                call=state.model,
                status="unknown",
                issuer=state.model_issuer or _NOBODY,
                failure=failure,
            )
        )
    bodies += (
        ToolOutcome(turn=state.turn, call=call.key, status="unknown", failure=failure)
        for call in state.calls
        if call.state == "started"
    )
    return (*bodies, TurnEnded(turn=state.turn, reason="set_aside", failure=failure))


class Traces:
    """The fold of what a workspace that is made anew from a log may lack.

    `snapshot` is the last snapshot event, `calls` are those begun since that may have changed
    something.
    """

    def __init__(self) -> None:
        self.snapshot: EventId | None = None
        self._calls: dict[CallKey, None] = {}

    @property
    def calls(self) -> tuple[CallKey, ...]:
        """In the order in which they were first begun."""
        return tuple(self._calls)

    def apply(self, event: Event) -> None:
        """Take in the log's next event."""
        body = event.body
        if isinstance(body, Snapshotted):
            self.snapshot = event.id
            self._calls.clear()
        elif isinstance(body, ToolIntent) and body.replay != "safe":
            self._calls[body.call] = None
