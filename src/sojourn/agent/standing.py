"""How a capsule stands, in one word (docs/cli.md#standings)."""

from sojourn.agent.look import Look
from sojourn.core.standings import Standing
from sojourn.core.tenure import MayLook


def standing_of(look: Look) -> Standing:
    """What a person would want to know first."""
    state = look.state
    if look.damages:
        return "damaged"
    if isinstance(look.admission, MayLook):
        match look.admission.code:
            case "frozen" | "in_doubt" | "moved_away" | "arriving":
                return look.admission.code
            case _:
                pass
    if look.held_by is not None:
        return "held" if state.turn is None else "running"
    if isinstance(look.admission, MayLook):
        return "look_only"
    if state.turn is None:
        return "waiting" if state.unseen or look.waiting else "resting"
    if state.question is not None or state.paused == "decision":
        return "decision"
    match state.paused:
        case None:
            return "interrupted"
        case "model":
            return "model_failed"
        case _:
            return "paused"
