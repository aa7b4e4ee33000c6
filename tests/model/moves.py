"""Everything that can happen in a world, and what must hold of each world."""

from collections.abc import Iterator

from model.driver import Ended, goes_on, hear, outcome, torn, with_hold
from model.world import Local, Move, Queued, Setup, World
from sojourn.errors import SojournError
from sojourn.format.parts import TextPart

LONGEST = 60
"""Events that no log of these settings needs."""

DECISIONS = ("retry", "skip", "done", "failed")


def moves(setup: Setup, world: World) -> Iterator[Move]:
    """Every move that is possible."""
    yield from _sends(setup, world)
    for slot in (0, 1):
        local = world.slots[slot]
        if local is not None:
            yield from goes_on(setup, world, slot)
            yield from _troubles(setup, world, slot, local)
    yield from _takes(setup, world)
    if world.purse.losses and world.job is not None:
        yield Move("queue lost", "trouble", world.spend(losses=1)._replace(job=None, lost=True))


def _sends(setup: Setup, world: World) -> Iterator[Move]:
    """`send`: the message is a durable file, then the queue is woken; the sender may die between.

    A request that waits already is the same file. A job that was lost, or never made, is made by
    the next worker that starts.
    """
    messages = setup.setting.messages
    if world.unput:
        job = Queued() if world.job is None else world.job._replace(again=True)
        yield Move("wake", "step", world._replace(unput=False, job=job, lost=False))
        if world.purse.deaths:
            dead = world.spend(deaths=1)._replace(unput=False, lost=True)
            yield Move("sender dies", "trouble", dead)
    elif world.sent < len(messages):
        waiting = {messages[item] for item in world.inbox}
        same = messages[world.sent] in waiting
        inbox = world.inbox if same else (*world.inbox, world.sent)
        sent = world._replace(sent=world.sent + 1, inbox=inbox, unput=True)
        yield Move("send", "send", sent)
    needed = world.lost and world.job is None
    if needed and (world.inbox or world.log.judge.turn is not None):
        yield Move("rebuild queue", "step", world._replace(job=Queued(), lost=False))


def _troubles(setup: Setup, world: World, slot: int, local: Local) -> Iterator[Move]:
    """A process dies, at any moment; somebody presses Ctrl-C; the end of a call comes again.

    Ctrl-C and SIGTERM have no effect before the next round, so they come right before one.
    """
    killer = setup.setting.killer
    deadly = killer is None or (
        local.phase == "performing" and getattr(local.effect, "tool", "") == killer
    )
    if world.purse.deaths and deadly:
        gone = world.spend(deaths=1)
        for left in torn(gone, local):
            dead = left.put_local(slot, None)
            if setup.setting.shared:
                dead = left._replace(slots=(None, None))
            faults = _faults_since(world, dead)
            yield Move("dies", "trouble", dead, faults)
    if world.purse.pauses and not local.pausing and local.phase == "loop":
        paused = world.spend(pauses=1).put_local(slot, local._replace(pausing=True))
        yield Move("Ctrl-C", "trouble", paused)
    if world.purse.leaves and not local.leaving and local.phase == "loop":
        leaving = world.spend(leaves=1).put_local(slot, local._replace(leaving=True))
        yield Move("SIGTERM", "trouble", leaving)
    if world.purse.echoes:
        yield from _echoes(setup, world.spend(echoes=1), slot, local)


def _faults_since(world: World, after: World) -> tuple[str, ...]:
    return tuple(fault for made in after.log.since(world.log) for fault in made.faults)


def _echoes(setup: Setup, world: World, slot: int, local: Local) -> Iterator[Move]:
    """Things that no loop of this program does, and that the machine must refuse.

    The end of a call is delivered twice; another runner's end is delivered to the current one; the
    machine is asked to go on while a call runs. A message is heard while a call runs, which it must
    take.
    """
    if local.phase in ("loop", "performing") and local.ended is not None:
        yield from _delivered(setup, world, slot, local, local.ended.end, "again")
    other = world.other(slot)
    if other is not None and other.phase == "performing" and local.phase in ("loop", "performing"):
        yield from _delivered(
            setup, world, slot, local, outcome(setup, other, "done", None), "late"
        )
    if local.phase == "performing":
        yield from _nudged(setup, world, slot, local)
        heard = hear(setup, world, local)
        if heard.head is not local.head:
            yield Move("heard", "trouble", with_hold(setup, world, slot, heard))


def _delivered(
    setup: Setup, world: World, slot: int, local: Local, end: Ended, how: str
) -> Iterator[Move]:
    try:
        after, _ = setup.draft(local, setup.core.turn.Ended(outcome=end))
    except SojournError:
        return
    after = after._replace(phase="commit" if after.phase == "loop" else after.phase)
    world = with_hold(setup, world, slot, after)
    yield Move(f"end delivered {how}", "trouble", world, _draft_faults(local, after))


def _nudged(setup: Setup, world: World, slot: int, local: Local) -> Iterator[Move]:
    try:
        after, _ = setup.draft(local, setup.core.turn.Next())
    except SojournError:
        return
    if after.head is not local.head:
        world = with_hold(setup, world, slot, after)
        yield Move("asked while it runs", "trouble", world, _draft_faults(local, after))


def _draft_faults(before: Local, after: Local) -> tuple[str, ...]:
    return tuple(fault for made in after.head.since(before.head) for fault in made.faults)


def _takes(setup: Setup, world: World) -> Iterator[Move]:
    """A worker leases the job, or a person runs or resumes, where a slot and the lock are free."""
    slot, intrudes = _free_slot(setup, world)
    if slot is None:
        return
    kind = "step"
    if intrudes:
        world = world.spend(intrusions=1)
        kind = "trouble"
    job = world.job
    for rules in range(len(setup.setting.rules)):
        if job is not None and not world.unput:
            leased = world._replace(job=Queued(slot))
            yield from begin(setup, leased, slot, rules, None, f"{kind} work")
        yield from _visits(setup, world, slot, rules, kind)


def _visits(setup: Setup, world: World, slot: int, rules: int, kind: str) -> Iterator[Move]:
    state = world.log.state
    job = Queued() if world.job is None else world.job._replace(again=True)
    at_work = world._replace(job=job, lost=False)
    if state.question is not None:
        for decision in DECISIONS:
            yield from begin(setup, at_work, slot, rules, decision, f"{kind} resume")
        if world.purse.visits:
            idle = at_work.spend(visits=1)
            yield from begin(setup, idle, slot, rules, "none", "trouble resume")
    elif state.paused is not None or (
        setup.setting.people and (state.turn is not None or state.unseen or world.inbox)
    ):
        yield from begin(setup, at_work, slot, rules, "none", f"{kind} resume")


def _free_slot(setup: Setup, world: World) -> tuple[int | None, bool]:
    """The slot that a new process gets, and whether it gets in against the lock."""
    free = next((n for n in (0, 1) if world.slots[n] is None), None)
    if not world.holding or "no_lock" in setup.planted:
        return free, False
    setting = setup.setting
    if setting.shared:
        performs = all(world.slots[n].phase == "performing" for n in world.holding)
        allowed = performs and world.purse.intrusions > 0
    else:
        allowed = not setting.locked and world.purse.intrusions > 0
    return (free, True) if allowed else (None, False)


def begin(
    setup: Setup, world: World, slot: int, rules: int, decision: str | None, how: str
) -> Iterator[Move]:
    """A process takes the lock, folds the log, hears the inbox and takes the turn.

    `decision` is None for a worker, "none" for a person who decides nothing.
    """
    turn = setup.core.turn
    person = decision is not None
    other = world.other(slot)
    log = world.log
    shares = setup.setting.shared and other is not None and other.phase != "ack"
    tip, head = (other.tip, other.head) if shares and other is not None else (log, log)
    runner = f"{'p' if person else 'w'}{head.judge.takes}{'ab'[slot]}"
    local = Local(runner=runner, person=person, rules=rules, tip=tip, head=head)
    kind, label = how.split()
    if kind == "step" and person:
        kind = "person"
    asks = person or "workers_ask_as_persons" in setup.planted
    try:
        local = hear(setup, world, local)
        local, effect = setup.draft(local, turn.Take(person=asks))
        if decision in DECISIONS and effect is None:
            parts = (TextPart(text=f"{decision} by hand"),) if decision in DECISIONS[2:] else ()
            answer = turn.Decide(decision=decision, by="user", parts=parts)
            local, _ = setup.draft(local, answer)
    except SojournError:
        yield Move(label, kind, world, ("resume_is_always_possible",))
        return
    if effect is not None:
        local = local._replace(phase="commit", effect=effect)
    if "ack_at_lease" in setup.planted:
        world = world._replace(job=None)
    said = f"{label} {decision}" if decision in DECISIONS else label
    yield Move(f"{said} as {runner}", kind, with_hold(setup, world, slot, local))


def world_faults(setup: Setup, world: World) -> tuple[str, ...]:
    """The rules that a world breaks, whatever led to it."""
    accepted = set(setup.setting.messages[: world.sent])
    waiting = {setup.setting.messages[item] for item in world.inbox}
    faults: list[str] = []
    if accepted - waiting - set(world.log.judge.requests):
        faults.append("accepted_inputs_are_never_lost")
    if world.log.depth > LONGEST:
        faults.append("the_log_grows_only_with_progress")
    return tuple(faults)


def rests(world: World) -> bool:
    """The agent rests, every accepted input was seen, and nobody is at work."""
    judge = world.log.judge
    return judge.turn is None and not judge.unseen and _nothing_runs(world)


def waits(world: World) -> bool:
    """The turn waits for a person, with all that was said to the agent in its log."""
    return world.log.judge.paused is not None and _nothing_runs(world)


def _nothing_runs(world: World) -> bool:
    return not world.inbox and not world.unput and world.slots == (None, None)
