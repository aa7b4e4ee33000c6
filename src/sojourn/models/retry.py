"""When a refused model call is tried again, and after which pause (docs/models.md#retries)."""

import math
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from sojourn.errors import CallError
from sojourn.models.limits import Limits
from sojourn.ports import Randomness, WallClock


def retry_after(headers: Mapping[str, str], *, now: str) -> float | None:
    """Seconds that the answer asks to wait, None when it does not say.

    A date is compared with the answer's own `Date`, so a wrong clock here does not matter; without
    one with `now` (RFC 3339).
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    until = _date(text)
    if until is None:
        return None
    since = _date(headers.get("date", "")) or datetime.fromisoformat(now)
    return max(0.0, (until - since).total_seconds())


def wanted(headers: Mapping[str, str]) -> bool | None:
    """What the provider itself says about trying again, None when it does not say."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower())


class Tries:
    """Counts the attempts of one call and says when the next may begin.

    What may have been answered already, with no word from the provider, is never sent again here;
    nor is anything once an event of the answer was passed on (`begun`).
    """

    def __init__(self, *, clock: WallClock, randomness: Randomness, limits: Limits) -> None:
        self._clock = clock
        self._randomness = randomness
        self._limits = limits
        self._start = clock.monotonic()
        self.attempt = 1
        self.begun = False
        self.over = False
        self.pause = 0.0

    def failed(self, failure: CallError) -> None:
        """Note the failure of this attempt and set the pause before the next.

        Raises: the failure, when there is to be no next attempt.
        """
        pause = None if self.begun else self._pause(failure)
        if pause is None:
            if self.attempt > 1:
                failure.state += f" It was tried {self.attempt} times."
            raise failure
        self.pause = pause
        self.attempt += 1

    def _pause(self, failure: CallError) -> float | None:
        unheard = failure.status is None and failure.may_have_happened
        if not failure.retry or unheard or self.attempt >= self._limits.attempts:
            return None
        pause = failure.retry_after
        if pause is None:
            pause = _backoff(self.attempt, self._limits, self._randomness)
        elif pause > self._limits.retry_after_seconds:
            return None
        end = self._clock.monotonic() - self._start + pause
        return pause if end <= self._limits.patience_seconds else None


def _backoff(attempt: int, limits: Limits, randomness: Randomness) -> float:
    """Doubling pauses, each between half of it and all of it, so that clients spread."""
    whole = min(limits.first_pause_seconds * 2 ** (attempt - 1), limits.longest_pause_seconds)
    part = int.from_bytes(randomness.token(4), "big") / 2**32
    return whole * (0.5 + part / 2)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
