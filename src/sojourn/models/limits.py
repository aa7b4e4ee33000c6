"""Every limit of this room, in one place (docs/models.md#limits)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a model call waits, how often it is tried, and how much it reads.

    Seconds, bytes and characters; there is no limit on a whole answer's time.
    """

    connect_seconds: float = 10.0
    idle_seconds: float = 300.0
    """The longest silence between two pieces of an answer, and before its first."""
    tail_seconds: float = 3.0
    """How long a connection may stay open after a finished answer, to be used again."""
    keep_alive_seconds: float = 3.0
    """Shorter than what servers keep: a connection they are about to close is not used."""
    refusal_seconds: float = 10.0

    attempts: int = 5
    patience_seconds: float = 120.0
    """No new attempt begins when its pause would end later than this after the first one began."""
    retry_after_seconds: float = 60.0
    """A longer Retry-After is reported, not waited for."""
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 8.0

    event_bytes: int = 16 * 1024 * 1024
    stream_bytes: int = 256 * 1024 * 1024
    refusal_bytes: int = 64 * 1024
    message_characters: int = 1000


LIMITS = Limits()
SCRIPT_BYTES = 4 * 1024 * 1024
POLL_SECONDS = 0.02
"""How often a script looks for the file that it waits for."""
PROBE_SECONDS = 0.3
"""How long a look for a local model server may take."""
