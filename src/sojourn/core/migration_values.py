"""What the machine of a move is told, and what it asks for (docs/moving.md#machine).

A value of `Given` is one thing that happened. A value of `Effect` is one thing that the driver does
after the record is durable.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration_messages import Answer, Message, Offer, Problem, Wanted
from sojourn.core.migration_records import Slot, Tombstone
from sojourn.ids import CapsuleId, Epoch, MachineId, MoveId


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Where a step is taken: this machine, and randomness, which is fresh for every step.

    `boot` is the nonce of the daemon's start, "" for a command that is none. `found` is the highest
    epoch that folders of the capsule name here; it counts where the record is lost.
    """

    machine: MachineId
    capsule: CapsuleId
    boot: str
    fresh: str
    found: Epoch = Epoch(0)  # noqa: RUF009 - a number, never changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """The runner is proven dead, and the sealed capsule is offered to `target`."""

    move: MoveId
    target: MachineId
    address: str
    offer: Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """`by` answered `message`; the link has checked its key."""

    message: Message
    answer: Answer
    by: MachineId


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """No answer came to `message`, or what it asked to be sent could not be sent."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Somebody gives the move up: Ctrl-C, `move abort`, a failure at the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Woke:
    """This process has the capsule's lock, so whoever was moving it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Some time has passed: ask what is still open once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A person settles a doubt without the target (docs/moving.md#persons)."""

    how: Literal["resume", "retire"]
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`sender`, whose key the link has checked, says `message`.

    `landing`, `folder` and `workspace` are where a capsule that arrives would be put.
    """

    message: Message
    sender: MachineId
    address: str = ""
    landing: str = ""
    folder: str = ""
    workspace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Verifying and preparing the slot of `move` came to an end; with no item red, it is ready.

    `folder` and `workspace` are where both now are, when that is not where the slot says.
    """

    move: MoveId
    problems: tuple[Problem, ...]
    left_out: tuple[str, ...] = ()
    folder: str = ""
    workspace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Booted:
    """The daemon has started; `Here.boot` is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What is arriving by `move` shall not come: too old, no room, or a person's word."""

    move: MoveId


@dataclass(frozen=True, slots=True, kw_only=True)
class Disowned:
    """A person says that `move` was not activated here, where the memory of it was lost."""

    move: MoveId
    epoch: Epoch


Given: TypeAlias = (
    Begin
    | Answered
    | Lost
    | Cancel
    | Woke
    | Again
    | Decided
    | Asked
    | Checked
    | Booted
    | Expired
    | Disowned
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Say `message` to the machine `to`; give what comes of it as `Answered` or `Lost`."""

    message: Message
    to: MachineId
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send what `wanted` lists; when that fails, what follows is not done, but `Lost` is given."""

    wanted: Wanted
    to: MachineId
    address: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer what was asked."""

    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """Answer `message`, a `Check` or a `Propose`, with `Wanted`: what is lacking here."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Keep the messages that were forwarded, durably, and answer `Noted`."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """Check every fingerprint of the slot, get ready, inert; then give `Checked`."""

    slot: Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Remove all that came by this slot: landing, folder and workspace."""

    slot: Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """The capsule is held here by `move`: let its next opening append so, and its agent go on."""

    move: MoveId


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """The capsule is held here as before: its agent may go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The capsule is held elsewhere: what waits for it here, or comes later, is forwarded."""

    tombstone: Tombstone


Effect: TypeAlias = Tell | Send | Reply | Want | Take | Verify | Sweep | Open | GoOn | Gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Save `record` durably unless it is the one that is stored; then do the effects in order."""

    record: LedgerRecord | None
    effects: tuple[Effect, ...] = ()
