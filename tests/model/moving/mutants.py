"""Guards that are taken out, each with the rule that is then broken, and where.

Their names are those of docs/moving.md. A mutant is an edit of a module of `core`, or a fault that
is planted in the model's own driver.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from model.cores import Edit, copies
from model.moving import settings as s
from model.moving.search import STUCK
from model.moving.world import Setting, Setup, Step

MODULES = (
    "migration_promises",
    "migration_source",
    "migration_fence",
    "migration_target",
    "migration",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`rule` is broken in `setting`; `edits` are by module, `planted` are the driver's faults."""

    name: str
    setting: Setting
    rule: str
    edits: dict[str, tuple[Edit, ...]] = field(default_factory=dict[str, tuple[Edit, ...]])
    planted: frozenset[str] = frozenset()

    def setup(self) -> Setup:
        if not self.edits:
            return Setup(self.setting, planted=self.planted)
        return Setup(self.setting, copy(self.edits), self.planted)


def copy(edits: dict[str, tuple[Edit, ...]]) -> Step:
    """The machine anew, some of it edited."""
    step: Step = copies(MODULES, edits)["migration"].step
    return step


Maker = Callable[..., Mutant]


def _of(module: str) -> Maker:
    def make(name: str, setting: Setting, rule: str, *edits: Edit) -> Mutant:
        return Mutant(name=name, setting=setting, rule=rule, edits={module: edits})

    return make


def _driver(name: str, setting: Setting, rule: str, planted: str) -> Mutant:
    return Mutant(name=name, setting=setting, rule=rule, planted=frozenset((planted,)))


_source, _fence, _target = (_of(f"migration_{side}") for side in ("source", "fence", "target"))
_both = _of("migration")

HOLDER = "one_holder"
LOST = "nothing_acknowledged_is_lost"
LEFT = "a_cancelled_move_leaves_nothing"
GIVEN_UP = "what_was_given_up_is_never_activated"
COPIED = "a_copied_record_is_never_written"

FENCED = "return _fenced(record, message.move, message.epoch, WasCancelled(), here)"
NOTED = "return _fenced(record, message.move, message.epoch, Noted(), here)"
KEPT = "if is_activated(moves, message.move):\n        return replied(record, Committed())\n"
RESOLVED = f"{KEPT}    if moves.life"
ROLE = RESOLVED.replace("is_activated(moves, message.move)", "record and record.state == 'HOLDER'")
LIFE = "if moves.life != ticket.life or record is None or record.copied:"
NO_LIFE = "if record is not None and record.copied:"
BY = " or (given.by != outgoing.target)"
BEGINS = "if record is None or record.state != 'HOLDER':"
PROMISED = "promised(record, message.epoch, here)"
RAISED = "after = promised(record, epoch, here)"
NO_FLOOR: dict[str, tuple[Edit, ...]] = {
    "migration_target": ((PROMISED, "promised(record, Epoch(0), here)"),),
    "migration_fence": ((RAISED, "after = promised(record, Epoch(0), here)"),),
}
ASKED = (
    "    if isinstance(message, Activate):\n"
    "        return Ready(record=record, effects=_questions(record))\n"
)
CANCELLED = "isinstance(answer, WasCancelled)"
DOUBT = "if record.state == 'IN_DOUBT':\n        raise"
FROZEN = "if record.state != 'FROZEN':\n        return Ready"
MAY_BEGIN = "if record is None or may_arrive(record):"
MAY_COMMIT = "if slot is None or not may_arrive(record) or "
BOOT_DROPS = "if slot is not None:\n        record = dropped_slot"
STARTED = " and (ticket.boot == here.boot)"
RED = " or any((not problem.ok for problem in given.problems))"
ANEW = "if record is not None and record.state == 'FROZEN':\n        return cancel"

MUTANTS = (
    _fence(
        "the question only reads",
        s.DIRECT,
        HOLDER,
        (FENCED, "return replied(record, WasCancelled())"),
    ),
    _fence("committed-kept: the role is asked", s.TWO, HOLDER, (RESOLVED, ROLE)),
    _target(
        "committed-kept: forgotten at once",
        s.TWO,
        HOLDER,
        ("activations=(*moves.activations, committed)", "activations=()"),
    ),
    _source(
        "doubt-first: not written",
        s.DIRECT,
        HOLDER,
        ("record, state='IN_DOUBT', moves=moves", "record, state='FROZEN', moves=moves"),
    ),
    _driver("write-first: not synced", s.CUT, HOLDER, "not_synced"),
    _driver("write-first: answered early", s.CRASH, STUCK, "answered_early"),
    _driver("write-again: not rewritten", s.CUT, STUCK, "not_rewritten"),
    Mutant(name="floor-kept: never", setting=s.DIRECT, rule=HOLDER, edits=NO_FLOOR),
    _fence("floor-kept: not by the fence", s.DIRECT, LEFT, *NO_FLOOR["migration_fence"]),
    _fence("life: not compared", s.LOSS, HOLDER, (LIFE, NO_LIFE)),
    _driver("no-record-from-a-manifest", s.LOSS, HOLDER, "rebuilt"),
    _driver("frozen-first: the runner lives on", s.DIRECT, "one_runner", "runner_left_alive"),
    _driver("frozen-first: appended after it", s.CRASH, LOST, "append_frozen"),
    _source(
        "one-move: another in doubt",
        s.TWO,
        HOLDER,
        (BEGINS, "if record is None or record.state not in ('HOLDER', 'IN_DOUBT'):"),
    ),
    Mutant(
        name="own-answers: of any machine",
        setting=s.ASTRAY,
        rule=HOLDER,
        edits={
            "migration_source": ((BY, ""),),
            "migration_fence": ((" or here.machine != ticket.target", ""), (LIFE, NO_LIFE)),
        },
    ),
    _source("retired-stays: forgotten", s.DIRECT, HOLDER, ("state='RETIRED'", "state='HOLDER'")),
    Mutant(name="copies-write-nothing: not noticed", setting=s.CLONED, rule=HOLDER),
    _source(
        "target-settles: not_prepared is no",
        s.FORGETFUL,
        HOLDER,
        (ASKED, ""),
        (CANCELLED, "type(answer).__name__ in ('WasCancelled', 'NotPrepared')"),
    ),
    _source(
        "target-settles: unknown is no",
        s.FORGETFUL,
        HOLDER,
        (CANCELLED, "type(answer).__name__ in ('WasCancelled', 'Unknown')"),
    ),
    _source(
        "target-settles: silence is no",
        s.DIRECT,
        HOLDER,
        (DOUBT, DOUBT.replace("record.state == 'IN_DOUBT'", "False")),
        (FROZEN, FROZEN.replace("!= 'FROZEN'", "not in ('FROZEN', 'IN_DOUBT')")),
    ),
    _source("fresh-epoch: the old one", s.TWO, "epochs_rise", ("record.floor + 1", "record.epoch")),
    _target(
        "fresh-epoch: not taken",
        s.DIRECT,
        "epochs_rise",
        ("epoch=slot.epoch, floor", "epoch=record.epoch, floor"),
    ),
    _fence(
        "swept: not at the fence",
        s.DIRECT,
        LEFT,
        ("(Sweep(slot=slot), Reply(answer=answer))", "(Reply(answer=answer),)"),
    ),
    _target(
        "swept: not when refused",
        s.CHECKS,
        LEFT,
        ("(Sweep(slot=slot), Reply(answer=against))", "(Reply(answer=against),)"),
    ),
    _target(
        "swept: not when dropped", s.DIRECT, LEFT, ("effects=(Sweep(slot=slot),))", "effects=())")
    ),
    _target(
        "swept: not when another move comes",
        s.TWO,
        LEFT,
        ("sweep = () if slot is None else (Sweep(slot=slot),)", "sweep = ()"),
    ),
    _fence(
        "swept: the slot stays after abort",
        s.DIRECT,
        LEFT,
        (NOTED, "return replied(record, Noted())"),
    ),
    _fence(
        "life: a machine that held it since is no witness",
        s.LOSS,
        STUCK,
        (
            "if record.state not in ('NONE', 'SUSPECT') and record.epoch >= message.epoch:",
            "if False:",
        ),
    ),
    _fence(
        "persons: a disowned move is unknown",
        s.LOSS,
        STUCK,
        ("if message.move in moves.disowned:", "if False:"),
    ),
    _source(
        "the question is never put again",
        s.CRASH,
        STUCK,
        ("(*_questions(record), *told)", "told"),
    ),
)


def _spare(name: str, setting: Setting, why: str, **edits: tuple[Edit, ...]) -> tuple[Mutant, str]:
    changed = {f"migration_{side}": edit for side, edit in edits.items()}
    return Mutant(name=name, setting=setting, rule="", edits=changed), why


SPARE = (
    _spare(
        "floor-kept: not by propose",
        s.DIRECT,
        "the fence raises it before it says no",
        target=NO_FLOOR["migration_target"],
    ),
    _spare(
        "own-answers: the sender is not compared",
        s.ASTRAY,
        "the ticket names the target, and another machine has another life",
        source=((BY, ""),),
    ),
    _spare(
        "committed-kept: forgotten when the source is retired",
        s.TWO,
        "nobody asks any more; they are kept to answer old messages in the same way",
        fence=(("len(known.activations) <= MAX_ACTIVATIONS", "False"),),
    ),
    _spare(
        "slot-ends: it outlives the daemon",
        s.CRASH,
        "its ticket names the start of the daemon",
        target=((BOOT_DROPS, BOOT_DROPS.replace("slot is not None", "False")),),
    ),
    _spare(
        "ticket-agrees: of any start",
        s.CRASH,
        "the slot does not outlive the daemon",
        target=((STARTED, ""),),
    ),
    _spare(
        "not-held: arrives anywhere",
        s.TWO,
        "no machine that is not the holder proposes above the floor of one that is",
        target=((MAY_BEGIN, "if True:"), (MAY_COMMIT, "if slot is None or ")),
    ),
    _spare(
        "cancel-before-doubt: goes on with it after a start",
        s.CRASH,
        "without an arbiter a frozen source may go on; who asks around at a start relies on it",
        source=((ANEW, ANEW.replace("record is not None and record.state == 'FROZEN'", "False")),),
    ),
)
"""Guards whose loss no world of the setting shows, and why they are kept."""
