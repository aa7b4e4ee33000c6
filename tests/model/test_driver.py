"""The model's own driver does what `drive/runner.py` does, from every log that a search found."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from model.driver import goes_on, outcome
from model.log import ISSUER, Log
from model.moves import DECISIONS, begin
from model.search import Search
from model.settings import DEATHS, LEFT, LIMIT, MESSAGES, PAUSES, STALLS, UPGRADES
from model.world import Local, Queued, Setting, Setup, World
from sojourn.core.turn import Decide
from sojourn.drive.runner import Runner
from sojourn.format.event import AnyBody, Event
from sojourn.format.parts import TextPart
from sojourn.ids import RequestId, RunnerId, TurnId
from sojourn.ports import InboxItem, Message

SETTINGS = (DEATHS, MESSAGES, PAUSES, LEFT, UPGRADES, STALLS, LIMIT)


@dataclass
class Told:
    """What was done, in order, and the log that came of it."""

    setup: Setup
    local: Local
    inbox: list[int]
    done: list[str] = field(default_factory=list[str])


class LogHold:
    """A hold whose log is a path in the model's tree."""

    other_heads = ()
    capsule = ""

    def __init__(self, told: Told) -> None:
        self._told = told
        self.configured = told.setup.root.event.id

    @property
    def state(self) -> Any:
        return self._told.local.head.state

    @property
    def transcript(self) -> Any:
        return self._told.local.head.shown.transcript

    def draft(self, body: AnyBody) -> Event:
        local = self._told.local
        head = local.head.then(self._told.setup.terms, body, self._told.setup.by(local))
        self._told.local = local._replace(head=head)
        return head.event

    async def commit(self) -> None:
        local = self._told.local
        if local.head is not local.tip:
            self._told.done.append("commit")
            self._told.local = local._replace(tip=local.head)


class Effects:
    """Performs nothing, and says that it went well."""

    boot = "boot"
    model = SimpleNamespace(issuer=ISSUER)

    def __init__(self, told: Told) -> None:
        self._told = told

    async def call_model(self, effect: Any, _turn: TurnId) -> Any:
        return self._perform("model", effect)

    async def call_tool(self, effect: Any, _turn: TurnId) -> Any:
        return self._perform(effect.tool, effect)

    def _perform(self, name: str, effect: Any) -> Any:
        self._told.done.append(f"start {name}")
        return outcome(self._told.setup, self._told.local._replace(effect=effect), "done", None)


class Waiting:
    """An inbox whose files are the messages' numbers."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def items(self, _capsule: object) -> tuple[InboxItem, ...]:
        messages = self._told.setup.setting.messages
        return tuple(
            InboxItem(
                name=str(item),
                message=Message(
                    request=RequestId(messages[item]), author="user", text=messages[item]
                ),
            )
            for item in self._told.inbox
        )

    def remove(self, _capsule: object, item: InboxItem) -> None:
        self._told.inbox.remove(int(item.name))
        self._told.done.append("tidy")


async def by_runner(
    setup: Setup, first: Local, inbox: tuple[int, ...], decision: str | None
) -> Told:
    told = Told(setup, first, list(inbox))
    rules = setup.setting.rules[first.rules]
    runner = Runner(
        hold=LogHold(told),
        performer=Effects(told),
        inbox=Waiting(told),
        runner=RunnerId(first.runner),
        rules=rules,
        max_model_calls=setup.setting.limit,
    )
    if first.pausing:
        runner.pause()
    if first.leaving:
        runner.leave()
    await runner.run(person=first.person, decision=answer(decision))
    return told


def answer(decision: str | None) -> Decide | None:
    if decision not in ("retry", "skip", "done", "failed"):
        return None
    parts = (TextPart(text=f"{decision} by hand"),) if decision in ("done", "failed") else ()
    return Decide(decision=decision, by="user", parts=parts)


def by_model(
    setup: Setup, world: World, rules: int, decision: str | None, pausing: bool, leaving: bool
) -> Told:
    move = next(begin(setup, world, 0, rules, decision, "step work"))
    assert move.faults == ()
    world = move.world
    local = world.slots[0]
    assert local is not None
    world = world.put_local(0, local._replace(pausing=pausing, leaving=leaving))
    told = Told(setup, local, [])
    while (local := world.slots[0]) is not None and local.phase not in ("rested", "ack"):
        before = world
        move = next(goes_on(setup, world, 0))
        world = move.world
        assert move.faults == ()
        if move.label == "commit" and world.log is not before.log:
            told.done.append("commit")
        elif move.label == "tidy":
            told.done += ["tidy"] * len(local.heard)
        elif move.label.startswith("start"):
            told.done.append(move.label)
        told.local, told.inbox = world.slots[0] or local, list(world.inbox)
    return told


@pytest.mark.parametrize("setting", SETTINGS, ids=[one.name for one in SETTINGS])
def test_the_driver_of_the_model_appends_and_starts_what_the_runner_does(setting: Setting) -> None:
    setup = Setup(setting)
    logs = Search(setup).run().logs

    async def all_logs() -> None:
        for log in logs:
            for pausing in (False, True) if setting.purse.pauses else (False,):
                await compare(setup, log, pausing=pausing)
            if setting.purse.leaves:
                await compare(setup, log, leaving=True)

    asyncio.run(all_logs())


async def compare(setup: Setup, log: Log, *, pausing: bool = False, leaving: bool = False) -> None:
    """Both go on from the log with a message waiting: a worker, a person, each decision."""
    last = len(setup.setting.messages) - 1
    rules = log.depth % len(setup.setting.rules)
    for decision in (None, "none", *(DECISIONS if log.state.question is not None else ())):
        world = World(log=log, purse=setup.setting.purse, inbox=(last,), job=Queued(0))
        model = by_model(setup, world, rules, decision, pausing, leaving)
        started = Local(
            runner=model.local.runner,
            person=decision is not None,
            rules=rules,
            tip=log,
            head=log,
            pausing=pausing,
            leaving=leaving,
        )
        real = await by_runner(setup, started, world.inbox, decision)
        assert real.local.tip is model.local.tip
        assert (real.done, real.inbox) == (model.done, model.inbox)


@pytest.mark.parametrize("planted", ["effect_before_commit", "known_inputs_are_appended"])
def test_a_driver_that_does_otherwise_is_told_apart(planted: str) -> None:
    setup = Setup(DEATHS, planted=frozenset({planted}))
    logs = Search(setup, only=()).run().logs
    with pytest.raises(AssertionError):
        asyncio.run(compare(setup, max(logs, key=lambda log: log.depth)))
        asyncio.run(compare(setup, setup.root))
