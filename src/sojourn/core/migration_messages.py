"""What two machines say to each other in a move, and what they may answer.

Every message names the capsule and the move, so that both sides mean the same one. Who sent it is
told by the link, which has checked the sender's key (docs/moving.md#messages).
"""

from typing import Literal, TypeAlias

import msgspec

from sojourn.core.migration_records import Ticket
from sojourn.format.parts import Count, Digest
from sojourn.ids import CapsuleId, Epoch, EventId, MachineId, MoveId, RequestId


class _Said(msgspec.Struct, frozen=True, kw_only=True, tag_field="message"):
    capsule: CapsuleId
    move: MoveId


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What would come: the digest of a manifest that lists every file, and the log's last event.

    The manifest itself is content `root`, sent before. `size` and `files` are those it lists.
    `log` is the timeline's length in bytes. `label` names the source's machine to the model when a
    person wants that. `final`: the source is frozen and this is the sealed manifest of the move.
    """

    root: Digest
    last: EventId
    name: str
    files: Count
    size: Count
    log: Count = 0
    label: str = ""
    final: bool


class Check(_Said, frozen=True, kw_only=True, tag="check"):
    """What stands against this move, and what is missing? No authority, nothing promised."""

    offer: Offer


class Propose(_Said, frozen=True, kw_only=True, tag="propose"):
    """The source is frozen and offers the capsule at this epoch."""

    epoch: Epoch
    offer: Offer


class Prepare(_Said, frozen=True, kw_only=True, tag="prepare"):
    """All was sent: check every fingerprint and get ready, inert."""


class Activate(_Said, frozen=True, kw_only=True, tag="activate"):
    """The source has written IN_DOUBT down: become the holder."""

    ticket: Ticket


class Resolve(_Said, frozen=True, kw_only=True, tag="resolve"):
    """The fencing question: did you activate this move? If not, never do."""

    epoch: Epoch
    ticket: Ticket


class Abort(_Said, frozen=True, kw_only=True, tag="abort"):
    """The source goes on itself; forget the move and never activate it."""

    epoch: Epoch


class Retired(_Said, frozen=True, kw_only=True, tag="retired"):
    """The source has written down that it is no holder any more."""


class Who(_Said, frozen=True, kw_only=True, tag="who"):
    """The highest epoch ever activated here? Whatever is prepared here is dropped first."""

    epoch: Epoch


class Forwarded(msgspec.Struct, frozen=True, kw_only=True):
    """A message that waited at the source; `request` makes it one message wherever it comes."""

    request: RequestId
    author: str
    text: str
    kind: Literal["message", "memory"] = "message"
    before: Digest | None = None


class Forward(_Said, frozen=True, kw_only=True, tag="forward"):
    """What waited in the inbox of a machine that the capsule has left."""

    items: tuple[Forwarded, ...]


Message: TypeAlias = (
    Check | Propose | Prepare | Activate | Resolve | Abort | Retired | Who | Forward
)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the prepare checklist; what is not `ok` stands against the move."""

    what: str
    ok: bool
    code: str = ""
    message: str = ""
    hint: str = ""


class Wanted(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="wanted"):
    """What the receiver lacks: contents by digest, from a byte on where a part is there already.

    `log` is how many bytes of the timeline are here, with the sha256 of these as `prefix`; what
    differs is sent from 0. `checklist` is how far the machine is fit for it.
    """

    contents: tuple[tuple[Digest, Count], ...]
    log: Count
    prefix: Digest
    checklist: tuple[Problem, ...] = ()


class Prepared(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="prepared"):
    """Everything is checked and ready; the promise."""

    ticket: Ticket
    checklist: tuple[Problem, ...] = ()


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="refused"):
    """No, with a stable code; nothing of the move stays here but the floor."""

    code: str
    message: str
    hint: str = ""
    floor: Epoch = Epoch(0)
    checklist: tuple[Problem, ...] = ()


class Committed(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="committed"):
    """The target is the holder by this move, or has been."""


class NotPrepared(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="not_prepared"
):
    """Nothing can be activated by this ticket now. It does not say that nothing was."""


class WasCancelled(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="cancelled"):
    """This move was never activated here and never will be; that is durable."""


class Unknown(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="unknown"):
    """This machine lost its memory since the promise: it cannot say, and a person must."""


class Noted(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="noted"):
    """Done."""


class Standing(msgspec.Struct, frozen=True, kw_only=True, tag_field="answer", tag="standing"):
    """Answer to `Who`: the highest epoch that was activated here, and the state now."""

    activated: Epoch
    state: str
    machine: MachineId


Answer: TypeAlias = (
    Wanted
    | Prepared
    | Refused
    | Committed
    | NotPrepared
    | WasCancelled
    | Unknown
    | Noted
    | Standing
)
