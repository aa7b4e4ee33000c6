"""A step of the real machine as a process takes it: its durable write, its effects, its death."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from model.moving.world import NOTHING, Move, Said, Setup, World, bits
from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration_messages import NotPrepared, Refused, Retired, Unknown, Wanted
from sojourn.core.migration_values import Reply, Sweep, Tell, Verify, Want


class Change(NamedTuple):
    """What a new record means: a move activated here (with its epoch and log), one given up."""

    activated: tuple[str, int, int] | None
    given_up: str | None
    faults: tuple[str, ...]


def perform(
    setup: Setup,
    world: World,
    at: int,
    key: Any,
    given: Any,
    label: str,
    kind: str = "step",
    *,
    context: Said | None = None,
    under: int | None = None,
    always: bool = False,
) -> Iterator[Move]:
    """A step of the real machine, its durable write, and its effects; a death between them.

    `under` is what is on the disk when an earlier write is part of this one. `always`: it is a move
    even when the step changes nothing.
    """
    machine = world.machines[at]
    stepped = setup.stepped(at, machine, machine.record, key, given)
    if stepped is None:
        return
    before = machine.under if under is None else under
    if stepped.record == machine.record and under is None:
        done = _effects(setup, world, at, stepped.effects, context)
        if always or done != world:
            yield move_to(setup, label, kind, done)
        return
    change = _change(setup, machine.record, stepped.record)
    saved, faults = _saved(world, at, stepped.record, change)
    if "not_synced" in setup.planted:
        saved = saved.put(at, saved.machines[at]._replace(under=before))
    done = _effects(setup, saved, at, stepped.effects, context)
    yield move_to(setup, label, kind, done, faults)
    if not world.purse.crashes:
        return
    for words, left in (
        ("dies between rename and sync", _dead(saved, at, before)),
        ("dies after the write", _dead(saved, at, None)),
        ("dies having answered", _early(setup, world, at, stepped.effects, context)),
    ):
        if left is not None:
            yield move_to(setup, f"{label}, {words}", "trouble", left.spend("crashes"), faults)


def _dead(saved: World, at: int, under: int | None) -> World:
    machine = saved.machines[at]
    kept = machine.under if under is None else under
    return saved.put(at, machine._replace(up=False, runs=False, under=kept))


def _early(
    setup: Setup, world: World, at: int, effects: tuple[Any, ...], context: Said | None
) -> World | None:
    """The fault of answering before the write."""
    if "answered_early" not in setup.planted or context is None:
        return None
    told = _effects(setup, world, at, effects, context)
    return _dead(told, at, None)


def _saved(world: World, at: int, record: int, change: Change) -> tuple[World, tuple[str, ...]]:
    """The new record on the disk, and the rules that it breaks."""
    machine = world.machines[at]
    faults = list(change.faults)
    machine = machine._replace(record=record, under=record)
    if change.activated is not None:
        move, epoch, log = change.activated
        machine = machine._replace(log=log, landings=machine.landings - {move})
        if epoch <= world.top:
            faults.append("epochs_rise")
        if move in world.given_up:
            faults.append("what_was_given_up_is_never_activated")
        world = world._replace(top=max(world.top, epoch))
    if change.given_up is not None:
        world = world._replace(given_up=world.given_up | {change.given_up})
    return world.put(at, machine), tuple(faults)


def _change(setup: Setup, before: int, after: int) -> Change:
    known = setup.changes.get((before, after))
    if known is None:
        known = setup.changes[before, after] = _changed(
            setup.records.values[before], setup.records.values[after]
        )
    return known


def _changed(old: LedgerRecord | None, new: LedgerRecord | None) -> Change:
    if new is None:
        return Change(activated=None, given_up=None, faults=("floors_never_fall",))
    faults = ["floors_never_fall"] if old is not None and new.floor < old.floor else []
    if old is not None and old.copied:
        faults.append("a_copied_record_is_never_written")
    activated = given_up = None
    slot = None if old is None else old.slot
    if slot is not None and new.state == "HOLDER":
        activated = (slot.move, new.epoch, int(slot.last))
    outgoing = None if old is None else old.outgoing
    if outgoing is not None and new.state == "HOLDER" and new.outgoing is None:
        given_up = outgoing.move
    return Change(activated=activated, given_up=given_up, faults=tuple(faults))


def _effects(
    setup: Setup, world: World, at: int, effects: tuple[Any, ...], context: Said | None
) -> World:
    machine = world.machines[at]
    said, name = world.said, setup.name(at, machine)
    landings = machine.landings
    for effect in effects:
        told = None
        match effect:
            case Tell():
                told = Said(name, effect.to, effect.message)
            case Reply():
                told = _reply(name, context, effect.answer)
            case Want():
                told = _reply(name, context, NOTHING)
            case Verify():
                told = context and Said(context.sender, name, context.message, checked=True)
            case Sweep():
                landings -= {effect.slot.move}
            case _:
                pass
        if told is not None and not (setup.setting.lean and _idle(told)):
            said |= 1 << setup.said.number(told)
    slot = setup.slot(machine.record)
    if slot is not None and setup.states[machine.record] != "HOLDER":
        landings |= {slot.move}
    world = world if said == world.said else world._replace(said=said)
    if landings != machine.landings:
        world = world.put(at, machine._replace(landings=landings))
    return _forgotten(setup, world) if setup.setting.lean else world


def _idle(said: Said) -> bool:
    """Answers that lead nowhere, or only to what a source does without them, too."""
    return isinstance(said.message, Retired) or isinstance(
        said.answer, Refused | NotPrepared | Unknown
    )


def _forgotten(setup: Setup, world: World) -> World:
    """Without the answers that nobody waits for any more, by the record or by the disk."""
    waited: set[tuple[str, str, str]] = set()
    for at, machine in enumerate(world.machines):
        name = setup.name(at, machine)
        for record in {machine.record, machine.under}:
            waited |= setup.waits(name, record)
    said = world.said
    for number in bits(said):
        one: Said = setup.said.values[number]
        if one.answer is None and not one.checked:
            continue
        who = one.to if one.checked else one.sender
        kind = "checked" if one.checked else word_of(one.answer)
        if (who, one.message.move, kind) not in waited:
            said ^= 1 << number
    return world if said == world.said else world._replace(said=said)


def _reply(name: str, context: Said | None, answer: Any) -> Said | None:
    return None if context is None else Said(context.sender, name, context.message, answer)


def move_to(
    setup: Setup, label: str, kind: str, world: World, faults: tuple[str, ...] = ()
) -> Move:
    """The move, with a runner wherever there is to be one."""
    for at, machine in enumerate(world.machines):
        holds = machine.up and setup.states[machine.record] == "HOLDER"
        alive = machine.up and machine.runs and "runner_left_alive" in setup.planted
        if machine.runs != (holds or alive):
            world = world.put(at, machine._replace(runs=holds or alive))
    return Move(label, kind, world, faults)


def word_of(value: Any) -> str:
    """The message's or answer's name."""
    return "wanted" if isinstance(value, Wanted) else type(value).__name__.lower()
