"""What a log says is gone for good or lost: the one reading of it (docs/format.md#pardons)."""

from dataclasses import dataclass
from typing import Final

from sojourn.ids import BlobId, EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """What `redacted` and `repaired` events name.

    The bodies of `events` and the blobs `redacted` are gone for good, and nothing brings them back;
    a blob of `lost` was not there when that was recorded, and may come back.
    """

    events: frozenset[EventId] = frozenset()
    redacted: frozenset[BlobId] = frozenset()
    lost: frozenset[BlobId] = frozenset()

    def __or__(self, other: "Gone") -> "Gone":
        return Gone(
            events=self.events | other.events,
            redacted=self.redacted | other.redacted,
            lost=self.lost | other.lost,
        )

    def __contains__(self, blob: object) -> bool:
        """Whether the blob's absence is accounted for."""
        return blob in self.redacted or blob in self.lost

    def why(self, blob: BlobId) -> str:
        """What became of a blob that is not there, for people."""
        return REDACTED if blob in self.redacted else LOST


REDACTED: Final = "its content was redacted"
LOST: Final = "its content was lost, and recorded as lost"
NOTHING: Final = Gone()
"""A log in which nothing is gone."""
