"""A rule of moves left out."""

from collections.abc import Callable

from msgspec.structs import replace

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration_values import Ready

Step = Callable[[LedgerRecord | None], Ready]


def go_on_in_doubt(sound: Step, cancel: Step) -> Step:
    """`sound`, but a source in doubt that asks again cancels as if it were not past any point."""

    def again(record: LedgerRecord | None) -> Ready:
        if record is None or record.state != "IN_DOUBT":
            return sound(record)
        return cancel(replace(record, state="FROZEN"))

    return again
