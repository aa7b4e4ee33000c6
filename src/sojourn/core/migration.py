"""The move of a capsule from machine to machine, decided in one place for both sides.

docs/moving.md is the specification; tests/model steps this very function through every world that
three machines can reach. Nothing here looks anywhere, and no decision uses a clock.
"""

from typing import Final, assert_never

from sojourn.core import migration_fence as fence
from sojourn.core import migration_source as source
from sojourn.core import migration_target as target
from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration_values import (
    Again,
    Answered,
    Asked,
    Begin,
    Booted,
    Cancel,
    Checked,
    Decided,
    Disowned,
    Expired,
    Given,
    Here,
    Lost,
    Ready,
    Woke,
)

_LOOKED_AT: Final = (Begin, Decided, Asked, Checked, Disowned)
"""What is answered also by a copied record, which writes nothing; the rest is none of its."""


def step(record: LedgerRecord | None, given: Given, here: Here) -> Ready:
    """What this machine writes down and does about `given`.

    The record is saved, durably, before the effects are done. Where nothing changes it is the very
    one that came in. `record` is None where there is none, or none that can be read.

    Raises: MigrationError or LimitError for what a person asked for and cannot be; nothing changed.
    """
    if record is not None and record.copied and not isinstance(given, _LOOKED_AT):
        return Ready(record=record)
    match given:
        case Begin():
            return source.begin(record, given, here)
        case Answered():
            return source.answered(record, given, here)
        case Lost():
            return source.lost(record, given)
        case Cancel():
            return source.cancel(record)
        case Woke():
            return source.woke(record)
        case Again():
            return source.again(record)
        case Decided():
            return source.decided(record, given, here)
        case Asked():
            return target.asked(record, given, here)
        case Checked():
            return target.checked(record, given, here)
        case Booted():
            return target.booted(record)
        case Expired():
            return target.expired(record, given)
        case Disowned():
            return fence.disowned(record, given, here)
    assert_never(given)
