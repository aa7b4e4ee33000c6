"""Vectors about claims that settle what was split, and near misses."""

from dataclasses import replace

from format_bodies import born, ended, said, taken
from format_builder import Capsule, Chain, chain, digest, log, scenario


def claimed(capsule: Capsule, heads: list[dict[str, object]]) -> dict[str, object]:
    return {"by": "you", "capsule": capsule.ids[0], "heads": heads, "how": "claim"}


def head(at: Chain) -> dict[str, object]:
    return {
        "id": at.prev,
        "incarnation": at.incarnation,
        "machine": at.machine,
        "seq": at.seq - 1,
    }


def two_sides() -> tuple[Capsule, Chain, Chain]:
    """One machine wrote two fourth events, and went on from each."""
    capsule, a = born()
    other = replace(a)
    for side, text in ((a, "one"), (other, "two")):
        capsule.clock = 3
        capsule.add("input", said(text, text), side)
    capsule.lines[3:] = sorted(capsule.lines[3:], key=_line_id)
    for side in (a, other):
        capsule.add("turn_ended", ended("t"), side)
    return capsule, a, other


def _line_id(line: bytes) -> str:
    return digest(line[line.rindex(b',"header":') + 10 : -2])


def claim(*sides: str) -> Capsule:
    capsule, a, other = two_sides()
    named = {"a": a, "other": other}
    b = chain("b", 2)
    capsule.add("claimed", claimed(capsule, [head(named[side]) for side in sides]), b)
    capsule.chains = [a, b]
    capsule.heads_at[-1] = capsule.heads()
    return capsule


@scenario()
def claim_of_both_sides() -> Capsule:
    """A claim that names the end of each side settles an equivocation."""
    return claim("a", "other")


@scenario(log("equivocation", 5))
def claim_of_one_side() -> Capsule:
    """A claim that names one side only settles nothing."""
    return claim("a")


@scenario(log("equivocation", 5))
def claim_of_an_older_event_of_a_side() -> Capsule:
    """A claim has to name the last event of each side that stands before it."""
    capsule, a, other = two_sides()
    older = head(other) | {"id": capsule.ids[4], "seq": 3}
    b = chain("b", 2)
    capsule.add("claimed", claimed(capsule, [head(a), older]), b)
    capsule.chains = [a, b]
    capsule.heads_at[-1] = capsule.heads()
    return capsule


def diverged(*, both: bool) -> Capsule:
    """Two machines took the same epoch; a third claimed the capsule."""
    capsule, a = born()
    b, c = chain("b", 2), chain("c", 2)
    heads = capsule.heads()
    capsule.add("turn_taken", taken("t", heads), b)
    capsule.add("turn_taken", taken("t", heads), c)
    d = chain("d", 3)
    named = [head(a), head(b), head(c)] if both else [head(a), head(b)]
    capsule.add("claimed", claimed(capsule, named), d)
    return capsule


@scenario()
def claim_of_both_chains() -> Capsule:
    """A claim that names both chains settles their divergence."""
    return diverged(both=True)


@scenario(log("divergence", 5))
def claim_of_one_chain() -> Capsule:
    """A claim that names one of two chains settles nothing."""
    return diverged(both=False)


@scenario(log("divergence", 6))
def claim_before_the_divergence() -> Capsule:
    """A claim settles only what stands before it."""
    capsule, a = born()
    b, c = chain("b", 2), chain("c", 2)
    heads = capsule.heads()
    capsule.add("turn_taken", taken("t", heads), b)
    d = chain("d", 3)
    capsule.add("claimed", claimed(capsule, [head(a), head(b)]), d)
    capsule.add("turn_taken", taken("t", heads), c)
    return capsule
