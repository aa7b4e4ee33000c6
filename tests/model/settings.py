"""The configurations that are searched, and their bounds."""

from collections.abc import Mapping
from typing import Final

from model.world import Purse, Setting
from sojourn.format.event import ReplayRule

DRIFTING: Final[tuple[Mapping[str, ReplayRule], ...]] = (
    {"tool": "safe"},
    {"tool": "report"},
    {"tool": "ask"},
    {},
)
"""What an upgrade may make of a tool's rule; in the last one the tool is gone."""

DECIDED: Final = ("resume retry", "resume skip", "resume done", "resume failed")

CRASH: Final = Setting(
    name="crash",
    replies=(("safe", "report", "ask", "keyed"), ("report",)),
    purse=Purse(deaths=1, slips=1),
    shows=("ended failed", "ended unknown", "dies", *DECIDED),
)

DEATHS: Final = Setting(
    name="two deaths",
    replies=(("ask", "keyed"),),
    purse=Purse(deaths=2),
    shows=DECIDED,
)

MESSAGES: Final = Setting(
    name="messages",
    replies=(("report",),),
    messages=("m0", "m1"),
    purse=Purse(deaths=1),
    shows=("sender dies", "rebuild queue", "ack"),
)

DUPLICATES: Final = Setting(
    name="duplicates",
    replies=(),
    messages=("m0", "m0", "m1"),
    purse=Purse(deaths=1),
    shows=("sender dies", "tidy"),
)

QUEUE: Final = Setting(
    name="queue",
    replies=(("safe",),),
    messages=("m0", "m1"),
    purse=Purse(losses=1),
    people=True,
    shows=("queue lost", "rebuild queue", "resume", "work"),
)

PAUSES: Final = Setting(
    name="pauses",
    replies=(("ask", "report"),),
    purse=Purse(deaths=1, pauses=1, visits=1),
    shows=("Ctrl-C", "Pause Next", "stop, ended unknown", "resume", *DECIDED),
)

STEERED: Final = Setting(
    name="steered",
    replies=(),
    messages=("m0", "m1"),
    purse=Purse(deaths=1, pauses=1),
    shows=("Ctrl-C", "stop, ended unknown", "resume"),
)

LEFT: Final = Setting(
    name="left",
    replies=(("ask", "report"),),
    purse=Purse(deaths=1, leaves=1),
    shows=("SIGTERM", "leave"),
)

UPGRADES: Final = Setting(
    name="upgrades",
    replies=(("tool",),),
    purse=Purse(deaths=1),
    rules=DRIFTING,
    shows=("ended failed", *DECIDED),
)

UPGRADED_TWICE: Final = Setting(
    name="upgraded twice",
    replies=(("tool",),),
    purse=Purse(deaths=2),
    rules=({"tool": "safe"}, {"tool": "ask"}),
    shows=DECIDED,
)

STALLS: Final = Setting(
    name="stalls",
    replies=(),
    purse=Purse(deaths=1, slips=7),
    bad_models=("unknown",),
    shows=("ended unknown", "resume"),
)

STALLED_TURNS: Final = Setting(
    name="stalled turns",
    replies=(),
    messages=("m0", "m1"),
    purse=Purse(slips=6),
    bad_models=("unknown",),
    limit=5,
    shows=("ended unknown",),
)

POISON: Final = Setting(
    name="poison",
    replies=(("safe", "keyed"),),
    purse=Purse(deaths=7),
    killer="safe",
    shows=("dies", "start keyed"),
)

LIMIT: Final = Setting(
    name="limit",
    replies=(("...",), ("keyed",)),
    messages=("m0", "m1"),
    purse=Purse(deaths=1),
    limit=2,
    shows=("start keyed",),
)

LOST_LOCK: Final = Setting(
    name="lost lock",
    replies=(("keyed", "report", "ask"),),
    purse=Purse(deaths=1, intrusions=1),
    locked=False,
    shows=("refused: stale_head", *DECIDED),
)

ONE_HOLD: Final = Setting(
    name="one hold",
    replies=(("keyed", "report"),),
    messages=("m0", "m1"),
    purse=Purse(intrusions=1, echoes=1),
    locked=False,
    shared=True,
    shows=("refused: turn_taken", "refused: call_not_open", "end delivered late", "heard"),
)

SLOW: Final = (
    Setting(
        name="crashes",
        replies=(("safe", "report", "ask", "keyed"),),
        purse=Purse(deaths=2, slips=1),
    ),
    Setting(
        name="every trouble",
        replies=(("ask",),),
        purse=Purse(deaths=1, slips=1, pauses=1, losses=1),
        people=True,
    ),
    Setting(
        name="steered in the middle of a call",
        replies=(("report",),),
        messages=("m0", "m1"),
        purse=Purse(deaths=1, pauses=1),
    ),
    Setting(
        name="people and messages",
        replies=(("report",),),
        messages=("m0", "m1"),
        purse=Purse(deaths=1, losses=1),
        people=True,
    ),
    Setting(
        name="upgrades at every death",
        replies=(("tool",),),
        purse=Purse(deaths=2),
        rules=DRIFTING,
    ),
    Setting(
        name="lock lost twice",
        replies=(("keyed", "report"),),
        purse=Purse(deaths=1, intrusions=2),
        locked=False,
    ),
)

FAST: Final = (
    CRASH,
    DEATHS,
    MESSAGES,
    DUPLICATES,
    QUEUE,
    PAUSES,
    STEERED,
    LEFT,
    UPGRADES,
    UPGRADED_TWICE,
    STALLS,
    STALLED_TURNS,
    POISON,
    LIMIT,
    LOST_LOCK,
    ONE_HOLD,
)
