"""The world of the model check: what is durable, who runs, what happened outside, what may yet.

Everything is a value. A world is a log on disk, an inbox, one queue job, two slots for processes,
the effects that were started outside, and a purse of troubles that are left to happen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from model.cores import REAL, Core
from model.judge import By
from model.log import ISSUER, Log, Terms, first_log
from sojourn.format.event import ReplayRule
from sojourn.ids import CallKey

PLAIN: Mapping[str, ReplayRule] = {
    "safe": "safe",
    "keyed": "keyed",
    "report": "report",
    "ask": "ask",
}


class Purse(NamedTuple):
    """Troubles left: deaths of processes, calls that end badly, Ctrl-C, SIGTERM (`leaves`), visits
    of a person without need, losses of the queue, lost locks, late or repeated ends of calls."""

    deaths: int = 0
    slips: int = 0
    pauses: int = 0
    leaves: int = 0
    visits: int = 0
    losses: int = 0
    intrusions: int = 0
    echoes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One configuration: what may happen in it, and how much.

    `replies` are the tools that each reply of the model asks for; after them it rests. `messages`
    are request ids, one after the other, some perhaps twice. `rules` are the rules of today, one of
    which each runner finds. `killer`: processes die only while this tool runs. `people`: a person
    may run the agent where a worker could; else one only comes when the turn waits for a person.
    `locked`: nobody gets in before the other process is gone. `shared`: both slots are runners of
    one process, and share its hold. Where it is not locked, one runner at a time is not promised.
    `shows` are moves that it is there for, and that must occur.
    """

    name: str
    replies: tuple[tuple[str, ...], ...]
    purse: Purse
    messages: tuple[str, ...] = ("m0",)
    rules: tuple[Mapping[str, ReplayRule], ...] = (PLAIN,)
    limit: int = 9
    killer: str | None = None
    people: bool = False
    locked: bool = True
    shared: bool = False
    bad_tools: tuple[str, ...] = ("failed", "unknown")
    bad_models: tuple[str, ...] = ("failed", "unknown")
    shows: tuple[str, ...] = ()


class Started(NamedTuple):
    """An effect that was started outside: `rule` is what its tool declared then.

    `decided`: only a person's decision allows this start.
    """

    key: CallKey
    attempt: int
    runner: str
    rule: ReplayRule
    decided: bool


class Local(NamedTuple):
    """A process's memory. `tip` is the log as it believes it to be on disk, `head` with its drafts.

    Phases: loop (ask the machine), commit, tidy (remove inbox files), ready (the effect may start),
    performing, rested (let go), ack (the lock is let go, the job is not).
    """

    runner: str
    person: bool
    rules: int
    tip: Log
    head: Log
    phase: str = "loop"
    effect: Any = None
    heard: tuple[int, ...] = ()
    pausing: bool = False
    leaving: bool = False
    ended: Any = None


class Queued(NamedTuple):
    """The queue's job: which slot has it (-1: none), and whether it was put again since."""

    slot: int = -1
    again: bool = False


class World(NamedTuple):
    """`sent` messages were accepted; `unput`: the last one's sender has not woken the queue yet.

    `lost`: a job that ought to be there is not.
    """

    log: Log
    purse: Purse
    inbox: tuple[int, ...] = ()
    job: Queued | None = None
    lost: bool = False
    unput: bool = False
    sent: int = 0
    slots: tuple[Local | None, Local | None] = (None, None)
    started: tuple[Started, ...] = ()

    def put_local(self, slot: int, local: Local | None) -> "World":
        slots = (local, self.slots[1]) if slot == 0 else (self.slots[0], local)
        return self._replace(slots=slots)

    def other(self, slot: int) -> Local | None:
        return self.slots[1 - slot]

    def spend(self, **spent: int) -> "World":
        left = {name: getattr(self.purse, name) - count for name, count in spent.items()}
        return self._replace(purse=self.purse._replace(**left))

    @property
    def holding(self) -> tuple[int, ...]:
        """Slots whose process has the lock."""
        return tuple(n for n, one in enumerate(self.slots) if one and one.phase != "ack")


class Move(NamedTuple):
    """One thing that can happen. `kind`: step (a process goes on), person (a person acts as they
    must), send, trouble. `faults` are rules that the move itself breaks."""

    label: str
    kind: str
    world: World
    faults: tuple[str, ...] = ()


class Setup:
    """A setting with its machine, ready to run; `planted` names faults of the driver."""

    def __init__(
        self, setting: Setting, core: Core = REAL, planted: frozenset[str] = frozenset()
    ) -> None:
        self.setting = setting
        self.core = core
        self.planted = planted
        self.terms = Terms(core=core, limit=setting.limit)
        tools = tuple(sorted({tool for reply in setting.replies for tool in reply}))
        self.root = first_log(self.terms, tools)
        self._here: dict[tuple[str, int], Any] = {}
        self._by = [tuple(sorted(rules.items())) for rules in setting.rules]

    def first(self) -> World:
        return World(log=self.root, purse=self.setting.purse)

    def by(self, local: Local) -> By:
        return By(local.runner, local.person, self._by[local.rules])

    def here(self, local: Local) -> Any:
        """Where this process takes its steps."""
        found = self._here.get((local.runner, local.rules))
        if found is None:
            found = self._here[local.runner, local.rules] = self.core.turn.Here(
                runner=local.runner,
                boot="boot",
                configured=self.root.event.id,
                issuer=ISSUER,
                heads=(),
                rules=self.setting.rules[local.rules],
                max_model_calls=self.setting.limit,
            )
        return found

    def draft(self, local: Local, given: Any) -> tuple[Local, Any]:
        """`Runner._draft`: ask the machine and fold what it says; with the effect.

        Raises what the machine raises.
        """
        ready = self.core.turn.step(local.head.state, given, self.here(local))
        head = local.head
        for body in ready.records:
            head = head.then(self.terms, body, self.by(local))
        return local._replace(head=head), ready.effect
