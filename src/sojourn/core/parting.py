"""What a fork ends that its parent left open.

docs/format.md#identity and docs/protocol.md#fork are the specification.
"""

from typing import Final

from sojourn.core.turn_state import TurnState
from sojourn.format.event import (
    AnyBody,
    Failure,
    Issuer,
    ModelOutcome,
    ToolOutcome,
    TurnEnded,
)

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
