"""Why the daemon does not do what was asked: a status of HTTP, a stable code, words."""

from sojourn.errors import (
    CallError,
    DecisionError,
    FencedError,
    FormatError,
    HeldElsewhereError,
    LimitError,
    MigrationError,
    NotFoundError,
    PeerError,
    SojournError,
    StorageError,
    UsageError,
)
from sojourn.peers.shapes import Fault

STATUS: dict[str, int] = {
    "unsigned": 401,
    "signature_wrong": 401,
    "not_paired": 403,
    "not_allowed": 403,
    "no_such_path": 404,
    "pairing_closed": 404,
    "stale_boot": 409,
    "replayed": 409,
    "too_slow": 408,
    "too_large": 413,
    "wrong_machine": 421,
    "malformed": 422,
    "busy": 503,
}


class Refused(Exception):
    """The request is not done, and the answer says why."""

    def __init__(self, code: str, message: str, *, state: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.status = STATUS[code]
        self.fault = Fault(code=code, message=message, state=state, hint=hint)


def fault_of(failure: SojournError) -> tuple[int, Fault]:
    """An error that sojourn has a name for, as an answer."""
    words = Fault(
        code=failure.code, message=failure.message, state=failure.state, hint=failure.hint
    )
    return _status(failure), words


def _status(failure: SojournError) -> int:
    match failure:
        case NotFoundError():
            return 404
        case UsageError() | FormatError() | PeerError():
            return 422
        case LimitError():
            return 413
        case HeldElsewhereError() | FencedError() | DecisionError() | MigrationError():
            return 409
        case StorageError() | CallError():
            return 503
        case _:
            return 500
