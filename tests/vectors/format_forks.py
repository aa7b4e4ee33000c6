"""Vectors about identity: forks, claims, and the capsule that each chain is of."""

from typing import Any

from format_bodies import CALL, born, ended, said, taken, turn
from format_builder import Capsule, Chain, chain, digest, log, scenario


def forked(capsule: Capsule, parent: str, name: str, heads: Any = None) -> dict[str, Any]:
    named = capsule.heads() if heads is None else heads
    return {"heads": named, "name": name, "nonce": digest(f"nonce {name}")[:32], "parent": parent}


def claimed(capsule: Capsule, of: str, heads: Any = None, **fields: Any) -> dict[str, Any]:
    named = capsule.heads() if heads is None else heads
    return {"by": "user", "capsule": of, "heads": named, "how": "claim", **fields}


def fork() -> tuple[Capsule, Chain]:
    """A fork after a whole turn, which has taken one of its own."""
    capsule, _ = turn()
    at = chain("fork", 2)
    capsule.add("forked", forked(capsule, capsule.ids[0], "fork"), at)
    first = capsule.add("input", said("Go on.", "r2"), at)
    capsule.add("turn_taken", taken(first, capsule.heads()), at)
    return capsule, at


def activated(capsule: Capsule, of: str, goes_on: str, **fields: Any) -> dict[str, Any]:
    return {
        "capsule": of,
        "continues": goes_on,
        "heads": capsule.heads(),
        "move": digest("move")[:32],
        "source": capsule.chains[0].machine,
        **fields,
    }


@scenario()
def moved_in_the_middle_of_a_turn() -> Capsule:
    """The chain of a move goes on with the open turn, at an epoch above."""
    capsule, _ = born()
    b = chain("b", 2)
    more = {"label": "big box", "left_out": ["socket"], "left_out_count": 1}
    capsule.add("activated", activated(capsule, capsule.ids[0], capsule.ids[-1], **more), b)
    capsule.add("turn_taken", taken("t", capsule.heads()), b)
    capsule.seal(capsule=capsule.ids[0], epoch=2)
    return capsule


@scenario(log("identity_unknown", 4))
def moved_without_its_identity() -> Capsule:
    """What arrived is a capsule that the log begins."""
    capsule, _ = born()
    of = digest("stranger")
    capsule.add("activated", activated(capsule, of, capsule.ids[-1]), chain("b", 2))
    return capsule


@scenario(log("identity_second", 5))
def moved_within_a_chain() -> Capsule:
    """A move begins a chain."""
    capsule, _ = born()
    b = chain("b", 2)
    capsule.add("activated", activated(capsule, capsule.ids[0], capsule.ids[-1]), b)
    capsule.add("activated", activated(capsule, capsule.ids[0], capsule.ids[-1]), b)
    return capsule


@scenario()
def fork_of_a_capsule() -> Capsule:
    """A fork keeps its parent's lines and is named by its own first event."""
    capsule, _ = fork()
    capsule.seal(capsule=capsule.ids[10], epoch=2)
    return capsule


@scenario()
def fork_with_open_calls() -> Capsule:
    """What the parent left open ends as unknown, and its turn is set aside."""
    capsule, a = turn()
    del capsule.lines[8:], capsule.ids[8:], capsule.heads_at[8:]
    a.seq, a.prev, capsule.clock = 8, capsule.ids[7], 8
    at, first = chain("fork", 2), capsule.ids[3]
    capsule.add("forked", forked(capsule, capsule.ids[0], "fork"), at)
    failure = {"code": "forked", "message": "The call may have happened before the fork."}
    unknown = {"call": CALL, "failure": failure, "status": "unknown", "turn": first}
    capsule.add("tool_outcome", unknown, at, more=True)
    capsule.add("turn_ended", {"reason": "set_aside", "turn": first}, at, more=True)
    capsule.seal(capsule=capsule.ids[8], epoch=2)
    return capsule


@scenario()
def fork_of_a_fork() -> Capsule:
    """A fork of a fork has three chains, each of a capsule of its own."""
    capsule, _ = fork()
    at = chain("second fork", 3)
    second = capsule.add("forked", forked(capsule, capsule.ids[10], "again"), at)
    capsule.add("input", said("Another way.", "r3"), at)
    capsule.seal(capsule=second, epoch=3)
    return capsule


@scenario()
def two_forks_in_one_log() -> Capsule:
    """Two forks of one point may have one epoch: epochs are counted for each capsule."""
    capsule, _ = turn()
    heads = capsule.heads()
    sides = sorted((chain("one", 2), chain("two", 2)), key=lambda side: side.machine)
    made = []
    for side, name in zip(sides, ("one", "two"), strict=True):
        capsule.clock = 10
        made.append(capsule.add("forked", forked(capsule, capsule.ids[0], name, heads), side))
    capsule.seal(capsule=made[0], epoch=2)
    return capsule


@scenario(log("divergence", 12))
def fork_claimed_at_its_own_epoch() -> Capsule:
    """A claim of a fork takes an epoch above the fork's."""
    capsule, _ = turn()
    at, late = chain("fork", 2), chain("b", 2)
    own = capsule.add("forked", forked(capsule, capsule.ids[0], "fork"), at)
    capsule.add("claimed", claimed(capsule, own), late)
    capsule.seal(capsule=own, epoch=2)
    return capsule


@scenario(log("head_unknown", 11))
def fork_of_a_lost_tail() -> Capsule:
    """The heads of a fork are events of the lines that it keeps."""
    capsule, _ = turn()
    at, heads = chain("fork", 2), [head | {"seq": 10} for head in capsule.heads()]
    own = capsule.add("forked", forked(capsule, capsule.ids[0], "fork", heads), at)
    capsule.seal(capsule=own, epoch=2)
    return capsule


@scenario(log("heads_missing", 11))
def fork_without_heads() -> Capsule:
    """A fork names what it parts from."""
    capsule, _ = turn()
    own = capsule.add("forked", forked(capsule, capsule.ids[0], "fork", []), chain("fork", 2))
    capsule.seal(capsule=own, epoch=2)
    return capsule


@scenario(log("identity_unknown", 11))
def fork_of_a_stranger() -> Capsule:
    """A fork's parent is a capsule whose identity stands earlier in the log."""
    capsule, _ = turn()
    own = capsule.add("forked", forked(capsule, digest("stranger"), "fork"), chain("fork", 2))
    capsule.seal(capsule=own, epoch=2)
    return capsule


@scenario(log("identity_second", 11))
def fork_in_the_middle_of_a_chain() -> Capsule:
    """Only the first event of a chain says of which capsule the chain is."""
    capsule, a = turn()
    capsule.add("forked", forked(capsule, capsule.ids[0], "fork"), a)
    return capsule


@scenario()
def claimed_chain() -> Capsule:
    """Another machine claims the capsule, in a new chain and a higher epoch, and goes on."""
    capsule, _ = turn()
    b = chain("b", 2)
    capsule.add("claimed", claimed(capsule, capsule.ids[0], reason="the old machine broke"), b)
    first = capsule.add("input", said("Go on.", "r2"), b)
    capsule.add("turn_taken", taken(first, capsule.heads()), b)
    capsule.add("turn_ended", ended(first), b)
    capsule.seal(epoch=2, holder=b.machine)
    return capsule


@scenario()
def claimed_by_force() -> Capsule:
    """A forced claim leaves a thousand epochs between itself and who may still run it."""
    capsule, a = turn()
    b, heads = chain("b", 1001), capsule.heads()
    a.epoch = 2
    capsule.add("claimed", claimed(capsule, capsule.ids[0], heads, forced=True), b)
    capsule.add("input", said("Still here.", "r2"), a)
    capsule.seal(epoch=1001, holder=b.machine)
    return capsule


@scenario()
def claimed_again_by_the_same_machine() -> Capsule:
    """A machine that lost its record begins a new chain of its own."""
    capsule, a = turn()
    again = Chain(a.machine, digest("another incarnation")[:32], 2)
    capsule.add("claimed", claimed(capsule, capsule.ids[0], how="adopt"), again)
    capsule.add("input", said("Go on.", "r2"), again)
    capsule.seal(epoch=2)
    return capsule


@scenario(log("heads_missing", 11))
def claimed_without_heads() -> Capsule:
    """A claim names what it has seen."""
    capsule, _ = turn()
    b = chain("b", 2)
    capsule.add("claimed", claimed(capsule, capsule.ids[0], []), b)
    capsule.add("input", said("Go on.", "r2"), b)
    return capsule


@scenario(log("divergence", 11))
def claimed_at_the_old_epoch() -> Capsule:
    """A claim that does not raise the epoch is a divergence."""
    capsule, _ = turn()
    b = chain("b", 1)
    capsule.add("claimed", claimed(capsule, capsule.ids[0]), b)
    capsule.add("input", said("Go on.", "r2"), b)
    return capsule


@scenario(log("identity_unknown", 4))
def claim_of_a_stranger() -> Capsule:
    """A claim names a capsule whose identity stands earlier in the log."""
    capsule, _ = born()
    capsule.add("claimed", claimed(capsule, digest("stranger")), chain("b", 2))
    return capsule


@scenario(log("identity_second", 5))
def claim_in_the_middle_of_a_chain() -> Capsule:
    """A claim begins a chain; it never stands in one."""
    capsule, _ = born()
    b = chain("b", 2)
    capsule.add("claimed", claimed(capsule, capsule.ids[0]), b)
    capsule.add("claimed", claimed(capsule, capsule.ids[0]), b)
    return capsule



def apart() -> tuple[Capsule, list[dict[str, object]]]:
    """Two chains of one capsule, and the heads of both."""
    capsule, _ = turn()
    b = chain("b", 2)
    capsule.add("claimed", claimed(capsule, capsule.ids[0]), b)
    capsule.add("input", said("Go on.", "r2"), capsule.chains[0])
    return capsule, capsule.heads()


@scenario()
def claimed_from_the_head_that_it_names() -> Capsule:
    """A claim names which of its heads it goes on from."""
    capsule, heads = apart()
    own = capsule.ids[0]
    body = claimed(capsule, own, heads, continues=heads[0]["id"])
    capsule.add("claimed", body, chain("c", 1003))
    fork = capsule.heads()
    body = forked(capsule, own, "fork", fork) | {"continues": fork[-1]["id"]}
    capsule.add("forked", body, chain("d", 1004))
    return capsule


@scenario()
def claimed_from_a_stranger() -> Capsule:
    """What is none of its heads counts as not said."""
    capsule, heads = apart()
    capsule.add("claimed", claimed(capsule, capsule.ids[0], heads, continues="x"), chain("c", 3))
    return capsule


@scenario(log("body_malformed", 13))
def claimed_from_a_number() -> Capsule:
    """It is text or null."""
    capsule, heads = apart()
    capsule.add("claimed", claimed(capsule, capsule.ids[0], heads, continues=1), chain("c", 3))
    return capsule
