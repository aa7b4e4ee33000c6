"""Everything that can happen in a world of moves, and what must hold of each world."""

from collections.abc import Iterator
from typing import Any

from model.moving.driver import move_to, perform, word_of
from model.moving.world import (
    CAPSULE,
    NAMES,
    Machine,
    Move,
    Said,
    Setup,
    World,
    bits,
)
from sojourn.core.ledger_record import LedgerRecord, PendingClaim
from sojourn.core.migration_messages import (
    Offer,
    Problem,
)
from sojourn.core.migration_values import (
    Again,
    Answered,
    Begin,
    Booted,
    Cancel,
    Checked,
    Disowned,
    Expired,
    Sweep,
    Woke,
)
from sojourn.core.tenure import Evidence, claimed_record
from sojourn.ids import BlobId, Epoch, EventId, Incarnation, MachineId, MoveId

NOTHING_LEFT = "a_cancelled_move_leaves_nothing"
RED = (Problem(what="room", ok=False),)


def moves(setup: Setup, world: World) -> Iterator[Move]:
    """Every move that is possible."""
    for number in bits(world.said):
        yield from _delivered(setup, world, number)
    for at, machine in enumerate(world.machines):
        if machine.up:
            yield from _goes_on(setup, world, at, machine)
            yield from _planned(setup, world, at, machine)
        else:
            yield from _boots(setup, world, at, machine)
        yield from _troubles(setup, world, at, machine)
        if machine.lives:
            yield from _persons(setup, world, at, machine)
    if world.purse.copies:
        yield _copied(setup, world.spend("copies"))


def broken(setup: Setup, world: World) -> Iterator[str]:
    """Rules that a world breaks."""
    states = setup.states
    holders = [one for one in world.machines if states[one.record] == "HOLDER"]
    if len(holders) > 1:
        yield "one_holder"
    if sum(one.runs for one in world.machines) > 1:
        yield "one_runner"
    for one in holders:
        if one.log != world.acked:
            yield "nothing_acknowledged_is_lost"
    slots: set[tuple[str, str]] = set()
    for at, one in enumerate(world.machines):
        slot = setup.slot(one.record)
        slots |= set() if slot is None else {(setup.name(at, one), slot.move)}
        if one.up and one.landings - {"" if slot is None else slot.move}:
            yield NOTHING_LEFT
    remembers = world.backup is None and not any(one.lives for one in world.machines)
    if slots and remembers and any(setup.noted(number) in slots for number in bits(world.said)):
        yield NOTHING_LEFT


def settled(setup: Setup, world: World) -> bool:
    """Exactly one machine holds the capsule, and nobody else waits to know."""
    states = [setup.states[one.record] for one in world.machines]
    holds = [one.up for one, state in zip(world.machines, states, strict=True) if state == "HOLDER"]
    return holds == [True] and "FROZEN" not in states and "IN_DOUBT" not in states


def _delivered(setup: Setup, world: World, number: int) -> Iterator[Move]:
    said: Said = setup.said.values[number]
    for at, machine in enumerate(world.machines):
        if not machine.up:
            continue
        name = setup.name(at, machine)
        label = NAMES[at]
        key: Any = ("said", number)
        if said.checked:
            if name == said.to:
                yield from _checked(setup, world, at, said, number)
        elif said.answer is not None:
            if name == said.sender:
                given = Answered(message=said.message, answer=said.answer, by=MachineId(said.to))
                words = f"{label} hears {word_of(said.answer)} to {word_of(said.message)}"
                yield from perform(setup, world, at, key, given, words)
        elif name == said.to or (setup.setting.astray and name != said.sender):
            words = f"{label} hears {word_of(said.message)} {said.message.move}"
            yield from perform(setup, world, at, key, setup.asked(said), words, context=said)


def _checked(setup: Setup, world: World, at: int, said: Said, number: int) -> Iterator[Move]:
    given = Checked(move=said.message.move, problems=())
    words = f"{NAMES[at]} checked {given.move}"
    yield from perform(setup, world, at, ("said", number), given, words, context=said)
    if world.purse.reds:
        given = Checked(move=given.move, problems=RED)
        spent = world.spend("reds")
        yield from perform(
            setup, spent, at, ("red", number), given, f"{words}: red", "trouble", context=said
        )


def _goes_on(setup: Setup, world: World, at: int, machine: Machine) -> Iterator[Move]:
    """What a process does by itself, or when it lost patience."""
    state, name = setup.states[machine.record], NAMES[at]
    value = setup.records.values[machine.record]
    if state in ("FROZEN", "IN_DOUBT"):
        yield from perform(setup, world, at, "cancel", Cancel(), f"{name} cancels")
    if state == "IN_DOUBT" or (value is not None and value.travels and value.travels.cancelled):
        yield from perform(setup, world, at, "again", Again(), f"{name} asks again")
    slot = setup.slot(machine.record)
    if slot is not None:
        given = Expired(move=slot.move)
        yield from perform(setup, world, at, ("expired", slot.move), given, f"{name} drops")


def _planned(setup: Setup, world: World, at: int, machine: Machine) -> Iterator[Move]:
    """A person moves the capsule; the agent appends an event."""
    state, name = setup.states[machine.record], NAMES[at]
    appends = state == "HOLDER" or (state == "FROZEN" and "append_frozen" in setup.planted)
    if world.purse.events and appends:
        grown = world.spend("events").put(at, machine._replace(log=machine.log + 1))
        yield Move(f"{name} appends", "plan", grown._replace(acked=world.acked + 1))
    if not world.purse.moves:
        return
    for other in {setup.name(n, one) for n, one in enumerate(world.machines)} - {name}:
        if setup.setting.routes and f"{name}{other}" not in setup.setting.routes:
            continue
        last = str(machine.log)
        offer = Offer(root=BlobId(last), last=EventId(last), name="", files=0, size=0, final=True)
        given = Begin(
            move=MoveId(str(world.made)), target=MachineId(other), address="", offer=offer
        )
        begun = world.spend("moves")._replace(made=world.made + 1)
        key = ("begin", world.made, other, last)
        words = f"{name} begins {world.made} to {other}"
        yield from perform(setup, begun, at, key, given, words, "plan")


def _boots(setup: Setup, world: World, at: int, machine: Machine) -> Iterator[Move]:
    """Recovery writes what it read again, sweeps what no record names, and then goes on."""
    name = NAMES[at]
    slot = setup.slot(machine.record)
    kept = machine.landings & {"" if slot is None else slot.move}
    machine = machine._replace(boot=machine.boot + 1, landings=kept)
    if "not_rewritten" not in setup.planted:
        machine = machine._replace(under=machine.record)
    if "rebuilt" in setup.planted and machine.lives and machine.record == setup.none:
        machine = machine._replace(record=_rebuilt(setup, machine), under=machine.record)
    booted = setup.stepped(at, machine, machine.record, "booted", Booted())
    if booted is None:
        return
    for effect in booted.effects:
        if isinstance(effect, Sweep):
            machine = machine._replace(landings=machine.landings - {effect.slot.move})
    # Both are one write here: what is written in the middle is no other than what comes of one.
    machine = machine._replace(up=True)
    after = machine._replace(record=booted.record)
    changed = booted.record != machine.record
    yield from perform(
        setup,
        world.put(at, after),
        at,
        "woke",
        Woke(),
        f"{name} starts",
        under=machine.under if changed else None,
        always=True,
    )


def _rebuilt(setup: Setup, machine: Machine) -> int:
    """The fault of making a record from a manifest."""
    lost: LedgerRecord | None = setup.records.values[machine.lost]
    if lost is None or lost.state == "NONE":
        return setup.none
    held = LedgerRecord(
        capsule=CAPSULE,
        incarnation=lost.incarnation,
        state="HOLDER",
        epoch=lost.epoch,
        floor=lost.epoch,
        folder="",
        workspace="",
    )
    return setup.record(held)


def _troubles(setup: Setup, world: World, at: int, machine: Machine) -> Iterator[Move]:
    name, purse = NAMES[at], world.purse
    down = machine._replace(up=False, runs=False)
    if purse.crashes and machine.up:
        yield move_to(setup, f"{name} dies", "trouble", world.spend("crashes").put(at, down))
    if purse.cuts and (machine.up or machine.under != machine.record):
        dark = down._replace(record=machine.under)
        yield move_to(setup, f"{name} loses power", "trouble", world.spend("cuts").put(at, dark))
    value: LedgerRecord | None = setup.records.values[machine.record]
    if purse.losses and value is not None:
        found = 0 if value.state == "NONE" else value.epoch
        lost = down._replace(
            record=setup.none,
            under=setup.none,
            lives=machine.lives + 1,
            found=max(found, machine.found),
            lost=machine.record,
        )
        yield Move(f"{name} loses its record", "trouble", world.spend("losses").put(at, lost))
    if purse.backups and value is not None:
        kept = world.spend("backups")._replace(backup=(at, machine))
        yield Move(f"{name} is backed up", "trouble", kept)
    if purse.restores and world.backup is not None and world.backup[0] == at:
        old = world.backup[1]
        record = setup.copied(old.record)
        back = down._replace(record=record, under=record, log=old.log, landings=old.landings)
        yield move_to(
            setup, f"{name} is restored", "trouble", world.spend("restores").put(at, back)
        )


def _copied(setup: Setup, world: World) -> Move:
    """The state folder of A, with its key, comes to another host."""
    first = world.machines[0]
    record = setup.copied(first.record)
    clone = Machine(record=record, under=record, up=False, log=first.log, clone=True)
    copied = world._replace(machines=(*world.machines, clone))
    return move_to(setup, "A is copied to another host", "trouble", copied)


def _persons(setup: Setup, world: World, at: int, machine: Machine) -> Iterator[Move]:
    """A person who tells the truth settles what a lost record left open."""
    if not machine.up or setup.states[machine.record] != "NONE":
        return
    lost: LedgerRecord = setup.records.values[machine.lost]
    name = setup.name(at, machine)
    activations = () if lost.travels is None else lost.travels.activations
    for other in world.machines:
        value: LedgerRecord | None = setup.records.values[other.record]
        if value is None or value.state != "IN_DOUBT" or value.outgoing is None:
            continue
        move = value.outgoing.move
        if value.outgoing.target == name and all(one.move != move for one in activations):
            given = Disowned(move=move, epoch=value.outgoing.epoch)
            key = ("disowned", move, value.outgoing.epoch)
            yield from perform(setup, world, at, key, given, f"{name} disowns {move}", "person")
    if _nobody_else(setup, world, at, lost):
        record = setup.record(_adopted(setup, machine))
        adopted = machine._replace(record=record, under=record)
        label = f"{name} is adopted"
        yield move_to(setup, label, "person", world.put(at, adopted))


def _nobody_else(setup: Setup, world: World, at: int, lost: LedgerRecord) -> bool:
    """Whether it is true that this machine had the capsule, and that nobody can come to have it."""
    if lost.state == "HOLDER":
        return True
    others = [one for n, one in enumerate(world.machines) if n != at]
    sealed = [slot for one in others if (slot := setup.slot(one.record)) and slot.ticket]
    busy = {setup.states[one.record] for one in others} - {"NONE", "RETIRED"}
    # Another one that lost its record, too, and was the holder: then it is this one's to take.
    busy |= {setup.states[one.lost] for one in others if one.lives} & {"HOLDER"}
    return lost.state in ("FROZEN", "IN_DOUBT") and not sealed and not busy


def _adopted(setup: Setup, machine: Machine) -> LedgerRecord:
    record: LedgerRecord | None = setup.records.values[machine.record]
    evidence = Evidence(
        capsule=CAPSULE,
        folder="",
        record=record,
        length=0,
        at_tip=None,
        highest_epoch=Epoch(machine.found),
    )
    claim = PendingClaim(how="adopt", by="")
    return claimed_record(evidence, claim, incarnation=Incarnation("adopted"), workspace="")
