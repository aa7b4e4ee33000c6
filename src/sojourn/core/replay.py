"""What may be done with a call that may have happened (docs/replay.md)."""

from typing import Final, Literal, TypeAlias, assert_never

from sojourn.format.event import ReplayRule

STRICTNESS: Final[dict[ReplayRule, int]] = {
    "safe": 0,
    "keyed": 1,
    "probe": 2,
    "report": 3,
    "ask": 4,
}
"""The replay rules in their order of strictness."""

INTERRUPTED: Final = "The process that made this call died before it wrote down how it ended."
FORGOTTEN: Final = INTERRUPTED + " The tool does not exist here any more."
TOO_OFTEN: Final = INTERRUPTED + " So did those before it; the call is not run again by itself."

AfterCrash: TypeAlias = Literal["again", "tell", "ask"]
"""Run it again with the same key; tell the model that it may have happened; ask a person."""


def stricter(a: ReplayRule, b: ReplayRule) -> ReplayRule:
    """The one of both that allows less."""
    return a if STRICTNESS[a] >= STRICTNESS[b] else b


def after_crash(*, recorded: ReplayRule | None, today: ReplayRule | None) -> AfterCrash:
    """What to do with a started call without an outcome.

    `recorded` is the rule in its intent, `today` the tool's current one (None: the tool is gone,
    which counts as `report`). The stricter of both decides (docs/replay.md#table).
    """
    rule = stricter(recorded or "report", today or "report")
    match rule:
        case "safe" | "keyed":
            return "again"
        case "probe" | "report":
            return "tell"
        case "ask":
            return "ask"
        case _:
            assert_never(rule)
