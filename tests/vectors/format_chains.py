"""Vectors about chains: order, identity, epochs, heads, and two sides of one chain."""

from dataclasses import replace

from format_bodies import born, empty, ended, said, taken, turn
from format_builder import Capsule, Chain, chain, digest, log, scenario

JUMP = 2**20


def two_machines() -> tuple[Capsule, Chain, Chain]:
    """Machine b went on after a's third line, and named its head."""
    capsule, a = born()
    b = chain("b", 2)
    capsule.add("turn_taken", taken("t", capsule.heads()), b)
    return capsule, a, b


@scenario()
def later_chain() -> Capsule:
    """A later chain begins by naming the heads that it has seen; both go on."""
    capsule, a, b = two_machines()
    capsule.add("turn_ended", ended("t"), b)
    capsule.add("turn_taken", taken("t", capsule.heads()), a, epoch=3)
    a.epoch = 3
    capsule.add("turn_ended", ended("t"), a)
    return capsule


@scenario()
def concurrent_chains_in_order() -> Capsule:
    """Lines with the same clock stand in the order of machine, incarnation, seq and id."""
    capsule, a = born()
    b, heads = chain("b", 2), capsule.heads()
    first, second = (a, b) if a.machine < b.machine else (b, a)
    for at in (first, second):
        capsule.clock = 3
        capsule.add("turn_taken", taken("t", heads if at is b else None), at)
    return capsule


@scenario(log("file_order", 5))
def concurrent_chains_out_of_order() -> Capsule:
    """Lines with the same clock in another order are out of place."""
    capsule, a = born()
    b, heads = chain("b", 2), capsule.heads()
    first, second = (a, b) if a.machine > b.machine else (b, a)
    for at in (first, second):
        capsule.clock = 3
        capsule.add("turn_taken", taken("t", heads if at is b else None), at)
    return capsule


@scenario(log("file_order", 5))
def lower_clock_after_higher() -> Capsule:
    """A line with a lower clock than the one before is out of place."""
    capsule, a = born()
    b, heads = chain("b", 2), capsule.heads()
    capsule.clock = 8
    capsule.add("turn_taken", taken("t"), a)
    capsule.clock = 4
    capsule.add("turn_taken", taken("t", heads), b)
    capsule.clock = 9
    capsule.add("turn_ended", ended("t"), a)
    return capsule


@scenario(log("identity_missing", 1))
def no_identity() -> Capsule:
    """The log begins with the event that made the capsule."""
    capsule, at = empty(), chain("a", 1)
    capsule.files["memory/working_memory.md"] = b""
    fork = {"heads": [], "name": "fork", "nonce": "0" * 32, "parent": digest("p")}
    capsule.add("forked", fork, at)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("identity_missing", 1), ("identity_unknown", "manifest.json", 1))
def first_line_lost() -> Capsule:
    """A log whose first line is gone without a trace does not begin with its identity."""
    capsule, at = born()
    capsule.add("input", said("x"), at)
    del capsule.lines[0], capsule.heads_at[0]
    return capsule


@scenario(log("identity_second", 4))
def second_identity() -> Capsule:
    """Only the first line makes the capsule."""
    capsule, at = born()
    capsule.add("created", {"name": "other", "read": 1, "write": 1}, at)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(("identity_unknown", "manifest.json", 1))
def manifest_of_another_capsule() -> Capsule:
    """The manifest names an identity event of this log."""
    capsule = turn()[0]
    capsule.seal(capsule=digest("another"))
    return capsule


@scenario(log("nul_bytes", 1), log("log_altered", None), ("identity_unknown", "manifest.json", 1))
def first_line_destroyed() -> Capsule:
    """When the first line cannot be read the rest is read without complaint."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[0] = bytes(len(capsule.lines[0]) - 1) + b"\n"
    return capsule


@scenario(log("duplicate_event", 5))
def same_line_twice() -> Capsule:
    """The same event twice is named and counted once."""
    capsule, at = born()
    capsule.add("input", said("x"), at)
    capsule.lines.append(capsule.lines[-1])
    capsule.heads_at.append(capsule.heads())
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("chain_gap", 5), log("log_shorter", None))
def line_lost() -> Capsule:
    """A line that is gone leaves a gap in its chain, named where the chain goes on."""
    capsule = turn()[0]
    capsule.seal()
    del capsule.lines[4]
    return capsule


@scenario(log("chain_broken", 5), log("log_altered", None))
def header_altered() -> Capsule:
    """A changed header gives the event another id, which the next line does not continue."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[3] = capsule.lines[3].replace(b"03:04:05", b"03:04:06")
    return capsule


@scenario(log("log_replaced", None))
def last_header_altered() -> Capsule:
    """A change of the last line's header is found by the heads of the manifest."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[-1] = capsule.lines[-1].replace(b"03:04:05", b"03:04:06")
    return capsule


@scenario(log("chain_broken", 4))
def prev_of_another_event() -> Capsule:
    """`prev` is the event before in the chain."""
    capsule, at = born()
    capsule.add("input", said("x"), at, prev=digest("something"))
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("chain_gap", 4))
def chain_begins_late() -> Capsule:
    """A chain begins with seq 0."""
    capsule, _ = born()
    b = replace(chain("b", 2), seq=5, prev=digest("lost"))
    capsule.add("turn_taken", taken("t", capsule.heads()), b)
    capsule.add("turn_ended", ended("t"), b)
    return capsule


@scenario(log("chain_broken", 4))
def chain_begins_with_prev() -> Capsule:
    """The first event of a chain has no `prev`."""
    capsule, _ = born()
    b = replace(chain("b", 2), prev=digest("lost"))
    capsule.add("turn_taken", taken("t", capsule.heads()), b)
    return capsule


@scenario(log("equivocation", 5))
def equivocation() -> Capsule:
    """Two events at one place of a chain: both sides are kept, and each may go on."""
    capsule, a = born()
    other = replace(a)
    for side, text in ((a, "one"), (other, "two")):
        capsule.clock = 3
        capsule.add("input", said(text, text), side)
    capsule.lines[3:] = sorted(capsule.lines[3:], key=_line_id)
    for side in (a, other, a, other):
        capsule.add("turn_ended", ended("t"), side)
    capsule.chains = [a]
    capsule.heads_at[-1] = capsule.heads()
    return capsule


def _line_id(line: bytes) -> str:
    return digest(line[line.rindex(b',"header":') + 10 : -2])


@scenario(log("equivocation", 6))
def rolled_back_and_gone_on() -> Capsule:
    """A machine whose disk was rolled back writes a second event at an old place."""
    capsule, a = born()
    back = replace(a)
    capsule.add("input", said("one"), a)
    capsule.add("turn_ended", ended("t"), a)
    capsule.add("input", said("two", "r2"), back)
    capsule.chains = [a]
    capsule.heads_at[-1] = capsule.heads()
    return capsule


@scenario(log("equivocation", 6), log("duplicate_event", 7))
def other_side_twice() -> Capsule:
    """An event of the other side that stands in the log twice is no third side."""
    capsule = rolled_back_and_gone_on()
    capsule.lines.append(capsule.lines[-1])
    capsule.heads_at.append(capsule.heads_at[-1])
    return capsule


@scenario(log("epoch_order", 5))
def epoch_falls() -> Capsule:
    """The epoch of a chain never falls."""
    capsule, at = born()
    capsule.add("input", said("x"), at, epoch=5)
    at.epoch = 4
    capsule.add("input", said("y", "r2"), at)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("divergence", 4))
def divergence() -> Capsule:
    """Two chains claim one epoch; it is said once, and the chain goes on."""
    capsule, _ = born()
    b = chain("b", 1)
    capsule.add("turn_taken", taken("t", capsule.heads()), b)
    capsule.add("turn_ended", ended("t"), b)
    return capsule


@scenario(log("divergence", 5))
def later_divergence() -> Capsule:
    """A chain that goes on in an epoch of another one is a divergence, too."""
    capsule, a, _ = two_machines()
    a.epoch = 2
    capsule.add("turn_taken", taken("t", capsule.heads()), a)
    capsule.add("turn_ended", ended("t"), a)
    return capsule


@scenario(log("batch_wrong", 4))
def batch_of_nobody() -> Capsule:
    """`batch` is the event's own seq or that of the event before."""
    capsule, at = born()
    capsule.add("input", said("x"), at, batch=2)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("clock_order", 4))
def clock_stands_still() -> Capsule:
    """The clock rises from event to event of a chain."""
    capsule, at = born()
    capsule.add("input", said("x"), at, clock=3)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario()
def clock_jumps_far() -> Capsule:
    """From one line to the next the clock may rise by 2^20."""
    capsule, at = born()
    capsule.clock += JUMP - 1
    capsule.add("input", said("x"), at)
    return capsule


@scenario(log("clock_jump", 4))
def clock_jumps_too_far() -> Capsule:
    """More than that is refused, and does not count for what follows."""
    capsule, at = born()
    capsule.add("input", said("x"), at, clock=4 + JUMP)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario()
def clock_begins_far() -> Capsule:
    """The first line may have a clock of 2^20."""
    capsule, at = empty(), chain("a", 1)
    capsule.clock = JUMP - 1
    capsule.add("created", {"name": "example", "read": 1, "write": 1}, at)
    capsule.add("input", said("x"), at)
    return capsule


@scenario(log("clock_jump", 1))
def clock_begins_too_far() -> Capsule:
    """The first line may not jump either."""
    capsule, at = empty(), chain("a", 1)
    capsule.files["memory/working_memory.md"] = b""
    created = {"name": "example", "read": 1, "write": 1}
    capsule.add("created", created, at, clock=JUMP + 1)
    capsule.clock = 1
    capsule.add("input", said("x"), at)
    return capsule


@scenario(log("heads_missing", 4))
def later_chain_without_heads() -> Capsule:
    """The first event of a later chain names what it has seen."""
    capsule, _ = born()
    b = chain("b", 2)
    capsule.add("turn_taken", taken("t"), b)
    capsule.add("turn_ended", ended("t"), b)
    return capsule


@scenario(log("head_unknown", 4))
def head_of_a_lost_tail() -> Capsule:
    """A head that is named must be in the log: no tail vanishes unnoticed."""
    capsule, a = born()
    capsule.add("input", said("lost"), a)
    heads = capsule.heads()
    b = chain("b", 2)
    capsule.add("turn_taken", taken("t", heads), b)
    del capsule.lines[3]
    capsule.chains = [replace(a, seq=3, prev=capsule.ids[2]), b]
    capsule.heads_at = [*capsule.heads_at[:3], capsule.heads()]
    return capsule


@scenario(log("head_unknown", 4))
def head_of_another_event() -> Capsule:
    """A head has the id of the event at that place."""
    capsule, _ = born()
    heads = [head | {"id": digest("other")} for head in capsule.heads()]
    capsule.add("later", {"heads": heads}, chain("b", 2))
    return capsule


@scenario(log("nul_bytes", 4), log("log_altered", None))
def head_in_a_destroyed_line() -> Capsule:
    """A head that a destroyed line may hold is not reported a second time."""
    capsule, a = born()
    capsule.add("input", said("destroyed"), a)
    b = chain("b", 2)
    capsule.add("turn_taken", taken("t", capsule.heads()), b)
    capsule.seal()
    capsule.lines[3] = bytes(len(capsule.lines[3]) - 1) + b"\n"
    return capsule


@scenario(log("chain_gap", 4), log("log_shorter", None))
def head_in_a_gap() -> Capsule:
    """Nor is one that a gap may have held."""
    capsule, a = born()
    capsule.add("input", said("lost"), a)
    heads = capsule.heads()
    capsule.add("turn_ended", ended("t"), a)
    capsule.add("turn_taken", taken("t", heads), chain("b", 2))
    capsule.seal()
    del capsule.lines[3]
    return capsule
