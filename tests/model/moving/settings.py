"""The configurations of moves that are searched, and their bounds."""

from typing import Final

from model.moving.world import Purse, Setting

DIRECT: Final = Setting(
    name="one move",
    purse=Purse(moves=1),
    machines=2,
    shows=(
        "A cancels",
        "B drops",
        "A hears committed to activate",
        "A hears wascancelled to resolve",
    ),
)

CRASH: Final = Setting(
    name="one death",
    purse=Purse(moves=1, crashes=1, events=1),
    machines=2,
    shows=("B hears activate 0, dies between rename and sync", "A starts", "A appends"),
)

CUT: Final = Setting(
    name="death, then power",
    purse=Purse(moves=1, crashes=1, cuts=1),
    machines=2,
    shows=("B loses power",),
)

TWO: Final = Setting(
    name="two moves",
    purse=Purse(moves=2),
    lean=True,
    shows=("B begins 1 to C", "B begins 1 to A", "A hears committed to resolve"),
)

TWO_CRASHES: Final = Setting(
    name="two moves, one death", purse=Purse(moves=2, crashes=1), lean=True
)

CHECKS: Final = Setting(
    name="red checks",
    purse=Purse(moves=2, events=2, reds=1),
    machines=2,
    lean=True,
    shows=("B checked 0: red",),
)

LOSS: Final = Setting(
    name="lost record",
    purse=Purse(moves=1, crashes=1, losses=1),
    machines=2,
    lean=True,
    shows=("B hears resolve 0", "B disowns 0", "B is adopted", "A is adopted"),
)

ASTRAY: Final = Setting(
    name="messages astray",
    purse=Purse(moves=1),
    astray=True,
    lean=True,
    shows=("C hears resolve 0",),
)

COPY: Final = Setting(
    name="copied home",
    purse=Purse(moves=1, copies=1),
    machines=2,
    shows=("A is copied to another host", "C starts"),
)

BACKUP: Final = Setting(
    name="restored, and noticed",
    purse=Purse(moves=1, backups=1, restores=1),
    machines=2,
    settles=False,
    shows=("A is restored", "B is restored"),
)

AGAIN_AND_AGAIN: Final = Setting(name="three moves", purse=Purse(moves=3), lean=True)
TROUBLED: Final = Setting(
    name="two moves, death and power", purse=Purse(moves=2, crashes=1, cuts=1), lean=True
)
DEATHS: Final = Setting(
    name="one move, two deaths, power",
    purse=Purse(moves=1, crashes=2, cuts=1),
    machines=2,
)
THERE_AND_BACK: Final = Setting(
    name="there and back, two deaths",
    purse=Purse(moves=2, crashes=2),
    machines=2,
    lean=True,
)
FORGETFUL: Final = Setting(
    name="lost record, all that was said",
    purse=Purse(moves=1, losses=1, events=1),
    machines=2,
    shows=("B loses its record", "B hears resolve 0", "B disowns 0"),
)

UNNOTICED: Final = Setting(
    name="restored",
    purse=Purse(moves=1, backups=1, restores=1),
    machines=2,
    marked=False,
    settles=False,
)
"""What no two machines can promise: here the search must find two holders."""

CLONED: Final = Setting(
    name="copied",
    purse=Purse(moves=1, copies=1),
    machines=2,
    marked=False,
    settles=False,
)
"""The same for a state folder whose copy cannot be told from it."""

FAST: Final = (DIRECT, CRASH, CUT, TWO, CHECKS, LOSS, ASTRAY, COPY, BACKUP)
SLOW: Final = (
    TWO_CRASHES,
    AGAIN_AND_AGAIN,
    TROUBLED,
    DEATHS,
    THERE_AND_BACK,
    FORGETFUL,
)
UNPROMISED: Final = (UNNOTICED, CLONED)
