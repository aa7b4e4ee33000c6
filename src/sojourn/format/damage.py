"""What may be wrong with a log, and what is known of it before (docs/format.md#damage)."""

from dataclasses import dataclass
from typing import Final, Protocol

from sojourn.format.body import Head
from sojourn.format.failures import Code
from sojourn.ids import EventId

TEARABLE: Final[frozenset[Code]] = frozenset(
    (
        "line_too_long",
        "nul_bytes",
        "not_utf8",
        "bom",
        "too_deep",
        "not_json",
        "glued_lines",
        "number_out_of_range",
        "lone_surrogate",
        "duplicate_key",
        "line_malformed",
        "header_malformed",
        "body_altered",
        "chain_gap",
    )
)
"""What a crash of the machine can do to a line of the last append."""


class Digest(Protocol):
    """A running sha256, as hashlib has it."""

    def update(self, data: bytes, /) -> None: ...

    def copy(self) -> "Digest": ...

    def hexdigest(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What somebody knows of the log's first `length` bytes; None where nothing is known.

    `last` is the id of the event that ends there, `heads` those of all chains, sorted, `sha256`
    the digest of the bytes.
    """

    length: int
    last: EventId | None = None
    heads: tuple[Head, ...] | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What is wrong with a line: from 1, or 0 for the whole file; `offset`, `length` in bytes."""

    code: Code
    line: int
    offset: int
    length: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """The end of the log that a crash left unfinished: it is no damage, opening cuts it off."""

    line: int
    offset: int
    length: int
    reason: Code
