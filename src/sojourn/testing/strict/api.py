"""What a strict server needs to know of an API; each API's package has one class that tells."""

from collections.abc import Mapping
from typing import Protocol

from sojourn.testing.strict.faults import FailKind
from sojourn.testing.strict.refusal import Refusal, Refused, Rule
from sojourn.testing.strict.reply import Reply, Wire


class Api(Protocol):
    """One API: what it refuses, and how its answers look."""

    @property
    def name(self) -> str:
        """`anthropic` or `openai`."""
        ...

    @property
    def max_bytes(self) -> int:
        """The bytes of the largest body it takes."""
        ...

    def check(self, payload: object) -> Refusal | None:
        """What is wrong with a body, if anything."""
        ...

    def check_headers(
        self, headers: Mapping[str, str], keys: frozenset[str] | None
    ) -> Refusal | None:
        """What is wrong with the headers; `keys` are those accepted, None for any."""
        ...

    def unknown_model(self, model: str) -> Refusal:
        """The answer to a model that does not exist."""
        ...

    def in_words(self, refused: Refused) -> Refusal:
        """A refusal in this API's words."""
        ...

    def refusal_body(self, refusal: Refusal, seed: str) -> bytes:
        """The body of a refusal."""
        ...

    def failure(self, kind: FailKind, seed: str) -> tuple[int, bytes]:
        """Status and body of a failure on demand."""
        ...

    def error_event(self, kind: FailKind) -> bytes:
        """The event by which a stream says that it failed."""
        ...

    def whole(self, reply: Reply, wire: Wire) -> bytes:
        """The reply as one JSON body."""
        ...

    def events(self, reply: Reply, wire: Wire) -> list[bytes]:
        """The reply as server-sent events, one item each."""
        ...


def bearer(headers: Mapping[str, str]) -> str:
    """The key of an Authorization header, or an empty text."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether the body is declared as JSON."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def bad_method(method: str) -> Refused:
    """The path is known, and takes POST alone."""
    return Refused(Rule.BAD_METHOD, f"Method {method} is not allowed: use POST.", status=405)
