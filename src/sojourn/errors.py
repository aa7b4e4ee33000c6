"""Every error of sojourn: what happened, what state things are in now, what to do next.

Imports nothing. `code` is the failure's stable name (docs/cli.md#errors), `exit_code` what the
command line answers with. The docstring of each class says whose fault it is, whether anything
changed on disk, and whether to try again.
"""

from typing import ClassVar, Final

EXIT_CODES: Final[dict[int, str]] = {
    0: "done",
    1: "failed",
    2: "wrong use: unknown command, option or value",
    3: "not found: no such capsule, event, file or model",
    4: "verification failed: bytes are not what was written",
    5: "held elsewhere, or fenced by a newer epoch",
    6: "not ready: something the run needs is missing here",
    7: "a person must decide",
    8: "the other side did not answer or refused",
    9: "a limit was reached",
    10: "the model or its provider failed",
    75: "temporary: the same command may succeed later",
    130: "interrupted; the state is saved",
}
"""The one table of exit codes."""


class SojournError(Exception):
    """Something sojourn knows how to name; subclasses say who acts.

    `message` says what happened, `state` what things are like now, `hint` what to do next.
    `file` and `line` (from 1) name a place where there is one.
    """

    exit_code: ClassVar[int] = 1
    default_code: ClassVar[str] = "failed"
    default_state: ClassVar[str] = ""
    default_hint: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        state: str = "",
        hint: str = "",
        file: str | None = None,
        line: int | None = None,
        exit_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.state = state or self.default_state
        self.hint = hint or self.default_hint
        self.file = file
        self.line = line
        self.exit = self.exit_code if exit_code is None else exit_code


class FormatError(SojournError):
    """Bytes are not what the format allows, or not what was once written.

    The fault of whoever changed the bytes. Nothing was changed by the reader; trying again is
    useless until the named place is mended. `code` is a name of docs/format.md#failures.
    """

    exit_code = 4
    default_code = "malformed"
    default_state = "Nothing was changed."
    default_hint = "`sojourn verify` names every file and line that is wrong."


class StorageError(SojournError):
    """A durable write failed: disk full, input/output error, read-only file system.

    The machine's fault. The hold is dropped and what is on disk is the truth; try again when there
    is room.
    """

    exit_code = 75
    default_code = "storage_failed"


class FencedError(SojournError):
    """A newer epoch or another head exists: stop, never try again in this process.

    Nothing was written.
    """

    exit_code = 5
    default_code = "fenced"


class HeldElsewhereError(SojournError):
    """Another process or machine holds the capsule; looking is allowed, running is not.

    Nothing was changed. Try again when the holder is gone, or send a message instead. `since` is
    the time within the message, in RFC 3339, that people are shown in their own way.
    """

    exit_code = 5
    default_code = "held_elsewhere"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        state: str = "",
        hint: str = "",
        since: str = "",
    ) -> None:
        super().__init__(message, code=code, state=state, hint=hint)
        self.since = since


class MigrationError(SojournError):
    """A move did not happen; the message says which side holds the capsule."""

    exit_code = 8
    default_code = "move_failed"


class PeerError(SojournError):
    """Another machine could not be reached, answered nothing, or is not the one that it should be.

    `may_have_arrived`: the other side may have read the message and acted on it.
    """

    exit_code = 8
    default_code = "peer_unreachable"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        state: str = "",
        hint: str = "",
        may_have_arrived: bool = False,
    ) -> None:
        super().__init__(message, code=code, state=state, hint=hint)
        self.may_have_arrived = may_have_arrived


class CallError(SojournError):
    """A model or tool call failed; the failure is an outcome in the log.

    `retry` says whether the same request may succeed later, `retry_after` in seconds when the other
    side said so, `may_have_happened` whether the other side may have done the work.
    """

    exit_code = 10
    default_code = "call_failed"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        state: str = "",
        hint: str = "",
        retry: bool = False,
        retry_after: float | None = None,
        may_have_happened: bool = False,
        status: int | None = None,
    ) -> None:
        super().__init__(message, code=code, state=state, hint=hint)
        self.retry = retry
        self.retry_after = retry_after
        self.may_have_happened = may_have_happened
        self.status = status


class LimitError(SojournError):
    """A named limit would be passed; nothing was written."""

    exit_code = 9
    default_code = "limit"


class DecisionError(SojournError):
    """A person must decide before the turn can go on; the log holds the question."""

    exit_code = 7
    default_code = "decision_needed"


class NotFoundError(SojournError):
    """What was named does not exist; nothing was changed."""

    exit_code = 3
    default_code = "not_found"


class UsageError(SojournError):
    """The caller asked for something that has no meaning; nothing was changed."""

    exit_code = 2
    default_code = "usage"


class StoppedError(SojournError):
    """A person stopped the work before it was done; what was durable stays, the rest is undone."""

    exit_code = 130
    default_code = "stopped"
