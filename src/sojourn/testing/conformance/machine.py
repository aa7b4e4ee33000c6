"""What every ledger, lock and inbox must do, as rules to run on them.

Each rule gets a function that opens the port anew, as another process would: all that it opens
stand on the same records, locks or messages, which are the rule's own and empty at first. Every
rule raises AssertionError with what is wrong.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

import msgspec

from sojourn.core.ledger_record import LedgerRecord, LedgerTip, first_record
from sojourn.core.migration_records import (
    Activation,
    Arriving,
    Cancelled,
    Moves,
    Outgoing,
    Slot,
    Ticket,
    Tombstone,
)
from sojourn.errors import FencedError, HeldElsewhereError, UsageError
from sojourn.ids import (
    BlobId,
    CapsuleId,
    Epoch,
    EventId,
    Incarnation,
    MachineId,
    MoveId,
    RequestId,
)
from sojourn.ports import Inbox, Ledger, Lock, Message
from sojourn.testing.conformance.demands import demand, demand_equal, refused

LedgerRule: TypeAlias = Callable[[Callable[[], Ledger]], None]
LockRule: TypeAlias = Callable[[Callable[[], Lock]], None]
InboxRule: TypeAlias = Callable[[Callable[[], Inbox]], None]

ONE: Final = CapsuleId("1" * 64)
TWO: Final = CapsuleId("2" * 64)

RECORD: Final = first_record(
    capsule=ONE, incarnation=Incarnation("a" * 32), folder="/c", workspace="/w"
)
LATER: Final = LedgerRecord(
    capsule=ONE,
    incarnation=RECORD.incarnation,
    state="SUSPECT",
    epoch=Epoch(3),
    floor=Epoch(9),
    folder="/elsewhere/ü \U0001f600",
    workspace="/w/2",
    tip=LedgerTip(length=2**40, last=EventId("e" * 64), manifest="f" * 64),
    reason="newer_epoch",
)

_MOVE: Final = MoveId("0" * 32)
_TICKET: Final = Ticket(
    move=_MOVE,
    epoch=Epoch(10),
    source=MachineId("a" * 64),
    target=MachineId("b" * 64),
    life="1" * 32,
    boot="2" * 32,
    root=BlobId("c" * 64),
    last=EventId("d" * 64),
    nonce="3" * 32,
)
MOVING: Final = msgspec.structs.replace(
    LATER,
    state="IN_DOUBT",
    floor=Epoch(10),
    reason="",
    moves=Moves(
        life="4" * 32,
        outgoing=Outgoing(
            move=_MOVE,
            epoch=Epoch(10),
            target=_TICKET.target,
            address="there",
            root=_TICKET.root,
            last=_TICKET.last,
            ticket=_TICKET,
        ),
        slot=Slot(
            move=_MOVE,
            epoch=Epoch(10),
            source=_TICKET.source,
            landing="/landing",
            folder="/f",
            workspace="/w",
            root=_TICKET.root,
            last=_TICKET.last,
            log=2**40,
            label="ü",
            left_out=("a/b",),
            ticket=_TICKET,
        ),
        activations=(Activation(move=_MOVE, epoch=Epoch(1), source=_TICKET.source),),
        cancelled=(Cancelled(move=_MOVE, epoch=Epoch(2), target=_TICKET.target, address=""),),
        went=Tombstone(move=_MOVE, epoch=Epoch(3), target=_TICKET.target, address="there"),
        arrived=Arriving(move=_MOVE, epoch=Epoch(1), source=_TICKET.source, goes_on=_TICKET.last),
        disowned=(_MOVE,),
    ),
)
"""More than one record ever holds at a time: every part of it has to come back."""


def knows_nothing_at_first(open_ledger: Callable[[], Ledger]) -> None:
    """No record is no failure."""
    demand_equal(open_ledger().load(ONE), None, "a record that nobody saved")
    demand_equal(open_ledger().recover(ONE), None, "a record that nobody saved, recovered")
    demand_equal(open_ledger().capsules(), (), "the capsules of an empty ledger")


def remembers_what_was_saved(open_ledger: Callable[[], Ledger]) -> None:
    """Every field, the last record of several, and again after recovering."""
    for record in (RECORD, LATER, MOVING):
        open_ledger().save(record)
        demand_equal(open_ledger().load(ONE), record, "the record")
    for _ in range(2):
        demand_equal(open_ledger().recover(ONE), MOVING, "the recovered record")
        demand_equal(open_ledger().load(ONE), MOVING, "the record after recovering")


def keeps_capsules_apart(open_ledger: Callable[[], Ledger]) -> None:
    """One record a capsule."""
    other = msgspec.structs.replace(LATER, capsule=TWO)
    for record in (other, RECORD):
        open_ledger().save(record)
    demand_equal(open_ledger().load(ONE), RECORD, "the record of the first capsule")
    demand_equal(open_ledger().load(TWO), other, "the record of the second capsule")
    demand_equal(open_ledger().capsules(), (ONE, TWO), "the capsules, sorted")


def never_lets_the_floor_fall(open_ledger: Callable[[], Ledger]) -> None:
    """A promise is never taken back."""
    open_ledger().save(LATER)
    lower = msgspec.structs.replace(LATER, floor=Epoch(8), state="HOLDER")
    with refused(FencedError, "floor_falls", "a lower floor"):
        open_ledger().save(lower)
    demand_equal(open_ledger().load(ONE), LATER, "the record after the refusal")


LEDGER_RULES: Final[tuple[LedgerRule, ...]] = (
    knows_nothing_at_first,
    remembers_what_was_saved,
    keeps_capsules_apart,
    never_lets_the_floor_fall,
)


def is_held_by_one(open_lock: Callable[[], Lock]) -> None:
    """The second is told who holds it and since when; also in the same process."""
    lock = open_lock()
    with lock.acquire(ONE):
        for other in (lock, open_lock()):
            with refused(HeldElsewhereError, "held_elsewhere", "a second hold"), other.acquire(ONE):
                pass
            held = other.holder(ONE)
            demand(held is not None and held.pid > 0 and held.since != "", f"held by {held}")
        with open_lock().acquire(TWO):
            pass
        lock.check(ONE)
    with open_lock().acquire(ONE):
        pass


def is_free_again_after_any_end(open_lock: Callable[[], Lock]) -> None:
    """The next one learns whether the last one ended well."""
    demand_equal(open_lock().holder(ONE), None, "the holder of a capsule that nobody held")
    with open_lock().acquire(ONE) as left:
        demand_equal(left, None, "who left it, at first")
    with refused(UsageError, None, "nothing"), open_lock().acquire(ONE) as left:
        demand_equal(left, None, "who left it, after a good end")
        raise UsageError("the work fails")
    demand_equal(open_lock().holder(ONE), None, "the holder of a free lock")
    seen = open_lock().left(ONE)
    with open_lock().acquire(ONE) as left:
        demand(left is not None and left.since != "", "a bad end was forgotten")
        demand_equal(seen, left, "who left it, for who only looks")
        demand_equal(open_lock().left(ONE), None, "who left it, while it is held")
    with open_lock().acquire(ONE) as left:
        demand_equal(left, None, "who left it, after a good end again")


def says_when_it_is_not_held(open_lock: Callable[[], Lock]) -> None:
    """Whoever does not hold it must not act."""
    lock = open_lock()
    for _ in range(2):
        with refused(FencedError, "lock_lost", "acting without the lock"):
            lock.check(ONE)
        with lock.acquire(ONE):
            lock.check(ONE)
            with refused(FencedError, "lock_lost", "acting under the lock of another object"):
                open_lock().check(ONE)


def may_be_told_that_all_is_settled(open_lock: Callable[[], Lock]) -> None:
    """Held or not; it changes nothing that others see."""
    lock = open_lock()
    lock.settled(ONE)
    with lock.acquire(ONE):
        lock.settled(ONE)
        demand(open_lock().holder(ONE) is not None, "the lock is not held any more")


LOCK_RULES: Final[tuple[LockRule, ...]] = (
    is_held_by_one,
    is_free_again_after_any_end,
    says_when_it_is_not_held,
    may_be_told_that_all_is_settled,
)


def message(request: str, text: str = "hello") -> Message:
    """A message to try with."""
    return Message(request=RequestId(request), author="user", text=text)


def waiting(inbox: Inbox, capsule: CapsuleId = ONE) -> list[str]:
    """The request ids that wait, in order."""
    return [item.message.request for item in inbox.items(capsule)]


def keeps_the_order_of_acceptance(open_inbox: Callable[[], Inbox]) -> None:
    """Whatever the request ids are."""
    demand_equal(waiting(open_inbox()), [], "the messages of an empty inbox")
    names = ["z", "a", "m/../ \0\n", "ü", "0" * 999, *(f"n{n}" for n in range(20))]
    for name in names:
        item = open_inbox().put(ONE, message(name, f"text of {name}"))
        demand_equal(item.message, message(name, f"text of {name}"), "the accepted message")
    demand_equal(waiting(open_inbox()), names, "the messages")
    demand_equal(waiting(open_inbox(), TWO), [], "the messages of another capsule")


def accepts_the_same_message_once(open_inbox: Callable[[], Inbox]) -> None:
    """The same request with the same content is the same item; with another one it is refused."""
    first = open_inbox().put(ONE, message("r"))
    demand_equal(open_inbox().put(ONE, message("r")), first, "the same message again")
    with refused(UsageError, "request_reused", "the same request with another text"):
        open_inbox().put(ONE, message("r", "other"))
    demand_equal(len(open_inbox().items(ONE)), 1, "the number of messages")
    open_inbox().put(TWO, message("r", "other"))


def forgets_what_was_taken(open_inbox: Callable[[], Inbox]) -> None:
    """Once or twice; later messages come after those that still wait."""
    items = [open_inbox().put(ONE, message(name)) for name in ("a", "b", "c")]
    for _ in range(2):
        open_inbox().remove(ONE, items[0])
    open_inbox().put(ONE, message("d"))
    demand_equal(waiting(open_inbox()), ["b", "c", "d"], "the messages that wait")
    open_inbox().put(ONE, message("a", "another text, since the first one is in the log"))
    demand_equal(open_inbox().set_aside(ONE), (), "what was set aside")
    demand_equal(open_inbox().refused(ONE), (), "what was refused")


def stands_many_senders(open_inbox: Callable[[], Inbox]) -> None:
    """At once, each message is kept once, also one that all of them send."""

    def send(sender: int) -> None:
        open_inbox().put(ONE, message("shared"))
        for n in range(5):
            open_inbox().put(ONE, message(f"{sender}-{n}"))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(send, range(4)))
    found = waiting(open_inbox())
    demand_equal(len(found), len(set(found)), "the number of different messages")
    wanted = {"shared", *(f"{sender}-{n}" for sender in range(4) for n in range(5))}
    demand_equal(set(found), wanted, "the messages")
    for sender in range(4):
        own = [name for name in found if name.startswith(f"{sender}-")]
        demand_equal(own, [f"{sender}-{n}" for n in range(5)], "the order of one sender")


INBOX_RULES: Final[tuple[InboxRule, ...]] = (
    keeps_the_order_of_acceptance,
    accepts_the_same_message_once,
    forgets_what_was_taken,
    stands_many_senders,
)
