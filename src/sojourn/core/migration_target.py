"""A move as the machine that it goes to sees it; it is the only one that decides.

docs/moving.md#target is the specification. Until a move is activated the target may drop it at any
time, and once it said that a move is cancelled it never activates it.
"""

import msgspec

from sojourn.core import migration_fence as fence
from sojourn.core.ledger_record import LedgerRecord, LedgerTip
from sojourn.core.migration_messages import (
    Abort,
    Activate,
    Check,
    Committed,
    Forward,
    NotPrepared,
    Prepare,
    Prepared,
    Propose,
    Refused,
    Resolve,
    Retired,
    Who,
)
from sojourn.core.migration_promises import (
    MAX_EPOCH_JUMP,
    derived,
    dropped_slot,
    is_activated,
    may_arrive,
    moves_of,
    promised,
    refused,
    replied,
    with_moves,
)
from sojourn.core.migration_records import Activation, Arriving, Moves, Slot, Ticket
from sojourn.core.migration_source import again
from sojourn.core.migration_values import (
    Asked,
    Checked,
    Effect,
    Expired,
    Here,
    Open,
    Ready,
    Reply,
    Sweep,
    Take,
    Verify,
    Want,
)
from sojourn.ids import Epoch, Incarnation, MachineId, MoveId


def asked(record: LedgerRecord | None, given: Asked, here: Here) -> Ready:
    """The answer to a message, after whatever it promises is in the record."""
    message = given.message
    if message.capsule != here.capsule:
        return refused(record, "other_capsule", "this is about another capsule")
    match message:
        case Check():
            return _check(record, message)
        case Propose():
            return _propose(record, given, message, here)
        case Prepare():
            return _prepare(record, given, here)
        case Activate():
            return _activate(record, given, message, here)
        case Resolve():
            return fence.resolve(record, given, message, here)
        case Abort():
            return fence.abort(record, given, message, here)
        case Retired():
            return fence.retired(record, given)
        case Who():
            return fence.who(record, message, here)
        case Forward():
            return _forward(record, given, message)


def refusal_of_contents(
    record: LedgerRecord | None, move: MoveId, sender: MachineId
) -> Refused | None:
    """Why contents of this move are not taken; before a `Propose` they go into the cache alone.

    After `Prepare` what was verified must stay as it is, however late a piece comes.
    """
    slot = None if record is None else record.slot
    if slot is None or slot.move != move:
        return None
    if slot.source != sender:
        return Refused(code="not_yours", message="this move is of another machine")
    if slot.ticket is not None:
        return Refused(code="sealed", message="everything that came was verified and is sealed")
    return None


def checked(record: LedgerRecord | None, given: Checked, here: Here) -> Ready:
    """The promise, or the list of what stands against it."""
    slot = None if record is None else record.slot
    if record is None or slot is None or slot.move != given.move or record.copied:
        return refused(record, "not_proposed", "nothing of this move is here any more")
    if slot.ticket is not None:
        return _prepared(record, slot.ticket, here)
    if not may_arrive(record) or any(not problem.ok for problem in given.problems):
        dropped = dropped_slot(record, slot)
        against = Refused(
            code="not_ready",
            message="this machine is not ready for the capsule",
            floor=record.floor,
            checklist=given.problems,
        )
        return Ready(record=dropped, effects=(Sweep(slot=slot), Reply(answer=against)))
    moves = moves_of(record, here)
    ticket = Ticket(
        move=slot.move,
        epoch=slot.epoch,
        source=slot.source,
        target=here.machine,
        life=moves.life,
        boot=here.boot,
        root=slot.root,
        last=slot.last,
        nonce=derived(here, "nonce"),
    )
    sealed = msgspec.structs.replace(
        slot,
        ticket=ticket,
        left_out=given.left_out,
        folder=given.folder or slot.folder,
        workspace=given.workspace or slot.workspace,
    )
    after = with_moves(record, msgspec.structs.replace(moves, slot=sealed))
    answer = Prepared(ticket=ticket, checklist=given.problems)
    return Ready(record=after, effects=(Reply(answer=answer),))


def booted(record: LedgerRecord | None) -> Ready:
    """A slot does not outlive the daemon that made it; an activation that died is opened."""
    if record is None:
        return Ready(record=record)
    slot, moves = record.slot, record.travels
    arrived = None if moves is None else moves.arrived
    effects: list[Effect] = []
    if slot is not None:
        record = dropped_slot(record, slot)
        effects.append(Sweep(slot=slot))
    if arrived is not None and record.state == "HOLDER":
        effects.append(Open(move=arrived.move))
    return Ready(record=record, effects=tuple(effects))


def expired(record: LedgerRecord | None, given: Expired) -> Ready:
    """What arrives is dropped, which is right at any time before it is activated."""
    slot = None if record is None else record.slot
    if record is None or slot is None or slot.move != given.move:
        return Ready(record=record)
    return Ready(record=dropped_slot(record, slot), effects=(Sweep(slot=slot),))


def _check(record: LedgerRecord | None, message: Check) -> Ready:
    against = _against(record)
    if against is not None:
        return Ready(record=record, effects=(Reply(answer=against),))
    return Ready(record=record, effects=(Want(message=message),))


def _propose(record: LedgerRecord | None, given: Asked, message: Propose, here: Here) -> Ready:
    against = _against(record)
    if record is not None and against is not None:
        # Whoever has the capsule after our move to him proposes: he knows how that move ended.
        outgoing = record.outgoing
        asks = outgoing is not None and outgoing.target == given.sender
        questions = again(record).effects if asks and record.state == "IN_DOUBT" else ()
        return Ready(record=record, effects=(Reply(answer=against), *questions))
    slot = None if record is None else record.slot
    if slot is not None and (slot.move, slot.epoch) == (message.move, message.epoch):
        return _proposed_again(record, slot, given, message)
    floor = here.found if record is None else record.floor
    why = _unfit(floor, slot, given, message, here)
    if why is not None:
        return Ready(record=record, effects=(Reply(answer=why),))
    after = promised(record, message.epoch, here)
    made = Slot(
        move=message.move,
        epoch=message.epoch,
        source=given.sender,
        landing=given.landing,
        folder=given.folder,
        workspace=given.workspace,
        root=message.offer.root,
        last=message.offer.last,
        log=message.offer.log,
        label=message.offer.label,
    )
    after = with_moves(after, msgspec.structs.replace(moves_of(after, here), slot=made))
    sweep = () if slot is None else (Sweep(slot=slot),)
    return Ready(record=after, effects=(*sweep, Want(message=message)))


def _proposed_again(
    record: LedgerRecord | None, slot: Slot, given: Asked, message: Propose
) -> Ready:
    refused = refusal_of_contents(record, message.move, given.sender)
    if refused is None and (slot.root, slot.last) != (message.offer.root, message.offer.last):
        refused = Refused(code="other_offer", message="this move was offered with other contents")
    if refused is not None:
        return Ready(record=record, effects=(Reply(answer=refused),))
    return Ready(record=record, effects=(Want(message=message),))


def _unfit(
    floor: Epoch, slot: Slot | None, given: Asked, message: Propose, here: Here
) -> Refused | None:
    if given.sender == here.machine or not message.offer.final:
        return Refused(code="not_frozen", message="a move is proposed by another, frozen machine")
    if message.epoch <= floor:
        return Refused(
            code="stale_epoch",
            message=f"epoch {floor} was promised here, and {message.epoch} is not above it",
            floor=floor,
        )
    if message.epoch > floor + MAX_EPOCH_JUMP:
        return Refused(code="epoch_jump", message=f"epoch {message.epoch} is too far above {floor}")
    if slot is not None and slot.source != given.sender:
        return Refused(
            code="busy",
            message="the capsule is arriving here from another machine",
            hint="Try again later; what does not come is forgotten here.",
        )
    return None


def _prepare(record: LedgerRecord | None, given: Asked, here: Here) -> Ready:
    slot = None if record is None else record.slot
    if (
        record is None
        or slot is None
        or slot.move != given.message.move
        or slot.source != given.sender
    ):
        return refused(record, "not_proposed", "nothing of this move is here")
    if slot.ticket is None:
        return Ready(record=record, effects=(Verify(slot=slot),))
    return _prepared(record, slot.ticket, here)


def _prepared(record: LedgerRecord, ticket: Ticket, here: Here) -> Ready:
    """The promise once more, if it is one of this start of the daemon."""
    if ticket.boot != here.boot:
        return refused(record, "not_proposed", "this machine has started anew since")
    return replied(record, Prepared(ticket=ticket))


def _activate(record: LedgerRecord | None, given: Asked, message: Activate, here: Here) -> Ready:
    """The commit is one write of the record."""
    if record is None:
        return replied(record, NotPrepared())
    moves = moves_of(record, here)
    if is_activated(moves, message.move):
        return replied(record, Committed())
    slot = moves.slot
    if slot is None or not may_arrive(record) or not _agrees(slot, given, message, moves, here):
        return replied(record, NotPrepared())
    committed = Activation(move=slot.move, epoch=slot.epoch, source=slot.source)
    arrived = Arriving(
        move=slot.move,
        epoch=slot.epoch,
        source=slot.source,
        goes_on=slot.last,
        label=slot.label,
        left_out=slot.left_out,
    )
    after = msgspec.structs.replace(
        record,
        incarnation=Incarnation(derived(here, "incarnation")),
        state="HOLDER",
        epoch=slot.epoch,
        floor=Epoch(max(record.floor, slot.epoch)),
        folder=slot.folder,
        workspace=slot.workspace,
        tip=LedgerTip(length=slot.log, last=slot.last if slot.log else None),
        reason="",
        claim=None,
        moves=msgspec.structs.replace(
            moves,
            slot=None,
            activations=(*moves.activations, committed),
            went=None,
            arrived=arrived,
        ),
    )
    return Ready(record=after, effects=(Reply(answer=Committed()), Open(move=slot.move)))


def _agrees(slot: Slot, given: Asked, message: Activate, moves: Moves, here: Here) -> bool:
    """Whether this is the promise that was given, by this life and this start of the daemon."""
    ticket = slot.ticket
    return (
        ticket is not None
        and slot.move == message.move
        and slot.source == given.sender
        and message.ticket == ticket
        and ticket.boot == here.boot
        and ticket.life == moves.life
    )


def _forward(record: LedgerRecord | None, given: Asked, message: Forward) -> Ready:
    """Messages come from a machine that has retired, to the one that it moved the capsule to."""
    known = () if record is None or record.travels is None else record.travels.activations
    if any(one.move == message.move and one.source == given.sender for one in known):
        return Ready(record=record, effects=(Take(message=message),))
    return refused(record, "not_yours", "the capsule did not come here by this move")


def _against(record: LedgerRecord | None) -> Refused | None:
    """Why no move of this capsule may begin to arrive here."""
    if record is None or may_arrive(record):
        return None
    words = {
        "HOLDER": "this machine holds the capsule",
        "FROZEN": "this machine is moving the capsule",
        "IN_DOUBT": "this machine does not know yet how its own move of the capsule ended",
        "SUSPECT": "a person must first say here what became of the capsule",
    }
    return Refused(
        code=record.state.lower(),
        message=words.get(record.state, "this machine cannot take the capsule"),
        floor=record.floor,
    )
