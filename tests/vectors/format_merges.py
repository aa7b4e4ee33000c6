"""Vectors about merging: merged capsules, and pairs of logs with the log that is made of both."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from format_bodies import born, ended, memory, said, taken
from format_builder import NOTES, Capsule, Chain, chain, digest, log, pieces, scenario

NEVER = ("created", "forked", "claimed", "activated", "sealed", "redacted", "repaired") + (
    "turn_taken",
    "turn_paused",
    "model_intent",
    "tool_intent",
)


def claim(capsule: Capsule, name: str, epoch: int) -> tuple[Capsule, Chain]:
    """A copy that another machine took over."""
    other, at = copy.deepcopy(capsule), chain(name, epoch)
    body = {"by": "you", "capsule": other.ids[0], "heads": other.heads(), "how": "claim"}
    other.add("claimed", body, at)
    return other, at


def turn(capsule: Capsule, at: Chain, text: str) -> None:
    """A short turn: an input, taken, ended."""
    first = capsule.add("input", said(text, f"r {text}"), at)
    capsule.add("turn_taken", taken(first), at)
    capsule.add("turn_ended", ended(first), at)


def two() -> tuple[Capsule, Chain, Capsule, Chain]:
    """A capsule, and a copy that went its own way; each ran two turns since."""
    ours, a = born()
    theirs, b = claim(ours, "b", 1001)
    a = ours.chains[0]
    for number in range(2):
        turn(ours, a, f"here {number}")
        turn(theirs, b, f"there {number}")
    return ours, a, theirs, b


def header_of(line: bytes) -> tuple[bytes, dict[str, Any]]:
    raw = line[line.rindex(b',"header":') + 10 : -2]
    return raw, json.loads(raw)


def union(*logs: list[bytes]) -> list[bytes]:
    """docs/format.md#merge, said once more and plainly."""
    found: dict[str, bytes] = {}
    gone = {
        json.loads(line)["body"].get("event")
        for lines in logs
        for line in lines
        if header_of(line)[1]["kind"] == "redacted"
    }
    for line in (line for lines in logs for line in lines):
        raw, header = header_of(line)
        name = digest(raw)
        if name in gone and header["kind"] not in NEVER:
            line = b'{"body":null,"header":' + raw + b"}\n"
        if name not in found or found[name].startswith(b'{"body":null'):
            found[name] = line

    def place(line: bytes) -> tuple[int, str, str, int, str]:
        raw, h = header_of(line)
        return (h["clock"], h["machine"], h["incarnation"], h["seq"], digest(raw))

    return sorted(found.values(), key=place)


def merged(*capsules: Capsule) -> Capsule:
    """The first capsule with the events of all, as its holder would write it."""
    made = copy.deepcopy(capsules[0])
    made.lines = union(*(capsule.lines for capsule in capsules))
    longest: dict[tuple[str, str], Chain] = {}
    for one in (one for capsule in capsules for one in capsule.chains):
        key = (one.machine, one.incarnation)
        if key not in longest or one.seq > longest[key].seq:
            longest[key] = one
    made.chains = list(longest.values())
    made.heads_at = [made.heads()] * len(made.lines)
    return made


@scenario()
def merged_concurrent_turns() -> Capsule:
    """Turns that two machines ran at the same time, each in its chain, sorted by clock."""
    ours, _, theirs, _ = two()
    return merged(ours, theirs)


@scenario()
def merged_and_gone_on() -> Capsule:
    """After a merge the holder goes on in its own chain, at a higher epoch, and names the heads."""
    ours, a, theirs, _ = two()
    both = merged(ours, theirs)
    own = next(one for one in both.chains if one.machine == a.machine)
    own.epoch, both.clock = 1002, max(ours.clock, theirs.clock)
    others = [head for head in both.heads() if head["machine"] != own.machine]
    first = both.add("input", said("after"), own)
    both.add("turn_taken", taken(first, others), own)
    both.add("turn_ended", ended(first), own)
    both.seal(epoch=1002)
    return both


@scenario()
def merged_three_copies() -> Capsule:
    """A copy of a copy: each chain names what its machine had seen."""
    ours, _, theirs, _ = two()
    third, c = claim(theirs, "c", 2002)
    turn(third, c, "third")
    return merged(ours, theirs, third)


@scenario(log("equivocation", 5))
def merged_sides_of_one_chain() -> Capsule:
    """A machine that was cloned wrote both: both sides are kept, each with what follows it."""
    ours, _ = born()
    clone = copy.deepcopy(ours)
    for capsule, text in ((ours, "one"), (clone, "two")):
        at = capsule.chains[0]
        capsule.add("input", said(text, text), at)
        capsule.add("input", said(f"{text} more", f"{text} more"), at)
    return merged(ours, clone)


@scenario(log("divergence", 5))
def merged_claims_of_one_epoch() -> Capsule:
    """Two machines took the same capsule over, each without knowing of the other."""
    ours, _ = born()
    first, _ = claim(ours, "b", 2)
    second, _ = claim(ours, "c", 2)
    return merged(first, second)


@scenario(log("file_order", 10))
def merged_by_appending() -> Capsule:
    """A union that is not sorted is no log: what came was put behind what was there."""
    ours, _, theirs, b = two()
    ours.lines.append(theirs.lines[3])
    ours.chains.append(replace(b, seq=1, prev=theirs.ids[3]))
    ours.heads_at.append(ours.heads())
    return ours


@dataclass(frozen=True)
class Pair:
    """A vector of merging: two logs, what comes of them, and what the notes then are."""

    name: str
    says: str
    ours: list[bytes]
    theirs: list[bytes]
    failure: str | None = None
    notes: str | None = None

    def stored(self) -> dict[str, Any]:
        log = union(self.ours, self.theirs) if self.failure is None else []
        return {
            "says": self.says,
            "failure": self.failure,
            "notes": self.notes,
            "ours": pieces(b"".join(self.ours)),
            "theirs": pieces(b"".join(self.theirs)),
            "merged": pieces(b"".join(log)),
        }


PAIRS: list[Pair] = []


def pair(
    failure: str | None = None,
) -> Callable[[Callable[[], tuple[list[bytes], list[bytes], str | None]]], object]:
    """Makes a vector of a function that gives both logs and the notes."""

    def take(build: Callable[[], tuple[list[bytes], list[bytes], str | None]]) -> object:
        ours, theirs, notes = build()
        says = " ".join((build.__doc__ or "").split())
        PAIRS.append(Pair(build.__name__, says, ours, theirs, failure, notes))
        return build

    return take


@pair()
def concurrent_turns() -> tuple[list[bytes], list[bytes], str | None]:
    """Each log has what the other lacks."""
    ours, _, theirs, _ = two()
    return ours.lines, theirs.lines, NOTES


@pair()
def one_is_ahead() -> tuple[list[bytes], list[bytes], str | None]:
    """One log begins with the whole other one."""
    ours, _, _, _ = two()
    return ours.lines, ours.lines[:4], NOTES


@pair()
def equal_logs() -> tuple[list[bytes], list[bytes], str | None]:
    """A merge with an equal log changes nothing."""
    ours, _, _, _ = two()
    return ours.lines, ours.lines, NOTES


@pair()
def sides_of_one_chain() -> tuple[list[bytes], list[bytes], str | None]:
    """Two events with one place are two events."""
    ours, _ = born()
    clone = copy.deepcopy(ours)
    ours.add("input", said("one"), ours.chains[0])
    clone.add("input", said("two"), clone.chains[0])
    return ours.lines, clone.lines, NOTES


def robbed(lines: list[bytes], at: int) -> list[bytes]:
    """The log with the body of a line taken away."""
    raw, _ = header_of(lines[at])
    return [*lines[:at], b'{"body":null,"header":' + raw + b"}\n", *lines[at + 1 :]]


@pair()
def redacted_in_one() -> tuple[list[bytes], list[bytes], str | None]:
    """A body that one copy redacted is null in the union."""
    ours, _, theirs, b = two()
    theirs.add("redacted", {"by": "you", "event": ours.ids[1], "reason": "secret"}, b)
    return ours.lines, robbed(theirs.lines, 1), NOTES


@pair()
def redacted_event_alone() -> tuple[list[bytes], list[bytes], str | None]:
    """The event counts, even where no copy has taken the body away yet."""
    ours, _, theirs, b = two()
    theirs.add("redacted", {"by": "you", "event": ours.ids[1], "reason": "secret"}, b)
    return ours.lines, theirs.lines, NOTES


@pair()
def body_lost_in_one() -> tuple[list[bytes], list[bytes], str | None]:
    """Without a redaction the copy with the body wins."""
    ours, _, theirs, _ = two()
    return robbed(ours.lines, 1), theirs.lines, NOTES


@pair()
def redaction_of_an_identity() -> tuple[list[bytes], list[bytes], str | None]:
    """What the chain is made of keeps its body, whatever an event says."""
    ours, _, theirs, b = two()
    theirs.add("redacted", {"by": "you", "event": ours.ids[0], "reason": "spite"}, b)
    return ours.lines, theirs.lines, NOTES


@pair()
def redaction_of_an_intent() -> tuple[list[bytes], list[bytes], str | None]:
    """So does what the order of calls is made of."""
    ours, _, theirs, b = two()
    taken_here = next(i for i, x in zip(ours.ids, ours.lines) if b'"turn_taken"' in x)
    theirs.add("redacted", {"by": "you", "event": taken_here, "reason": "spite"}, b)
    return ours.lines, theirs.lines, NOTES


@pair()
def redaction_of_contents() -> tuple[list[bytes], list[bytes], str | None]:
    """A redaction of blobs alone takes no body away."""
    ours, _, theirs, b = two()
    theirs.add("redacted", {"by": "you", "blobs": [digest("x")], "reason": "secret"}, b)
    return ours.lines, theirs.lines, NOTES


def twice(first: str, second: str) -> str:
    """What both sides changed."""
    return f"{first.strip()}\n\nAnother edit of this part:\n\n{second.strip()}\n"


@pair()
def notes_edited_in_both() -> tuple[list[bytes], list[bytes], str | None]:
    """Edits of one text are both kept; a further edit of one takes its place."""
    ours, _, theirs, b = two()
    ours.clock = theirs.clock = 50
    ours.add("memory", memory(NOTES, "mine\n"), ours.chains[0])
    theirs.clock = 51
    theirs.add("memory", memory(NOTES, "yours\n"), b)
    ours.clock = 52
    ours.add("memory", memory("mine\n", "mine again\n"), ours.chains[0])
    return ours.lines, theirs.lines, twice("mine again", "yours")


@pair()
def notes_edited_in_other_sections() -> tuple[list[bytes], list[bytes], str | None]:
    """A section that one side changed is taken from it; of one that both changed both are kept."""
    parts = "# Plans\n\nnone\n\n# People\n\nnobody\n\n# Places\n\nhome\n"
    mine = parts.replace("none", "milk").replace("home", "town") + "\n# More\n\nmore\n"
    yours = parts.replace("none", "tea").replace("# People\n\nnobody\n\n", "")
    ours, at = born()
    ours.add("memory", memory(NOTES, parts), at)
    theirs, b = claim(ours, "b", 1001)
    ours.clock = theirs.clock = 50
    ours.add("memory", memory(parts, mine), ours.chains[0])
    theirs.clock = 51
    theirs.add("memory", memory(parts, yours), b)
    rest = "# Places\n\ntown\n\n# More\n\nmore\n"
    return ours.lines, theirs.lines, "# Plans\n\n" + twice("milk", "tea") + "\n" + rest


@pair("other_lineage")
def another_origin() -> tuple[list[bytes], list[bytes], str | None]:
    """Logs that begin with different events are never merged."""
    ours, _ = born()
    other = Capsule()
    other.add("created", {"name": "other", "read": 1, "write": 1}, chain("b", 1))
    return ours.lines, other.lines, None


@pair("body_altered")
def two_bodies_of_one_event() -> tuple[list[bytes], list[bytes], str | None]:
    """Two copies of one event never have different bodies."""
    ours, _ = born()
    altered = [line.replace(b"Be kind.", b"Be mean.") for line in ours.lines]
    return ours.lines, altered, None


@pair("clock_jump")
def clock_that_jumps() -> tuple[list[bytes], list[bytes], str | None]:
    """A step of the clock by more than 2^20 is refused."""
    ours, _, theirs, b = two()
    theirs.clock += 2**20
    theirs.add("input", said("late"), b)
    return ours.lines, theirs.lines, None


@pair("file_order")
def log_out_of_order() -> tuple[list[bytes], list[bytes], str | None]:
    """A log that is not sorted is refused."""
    ours, _, theirs, _ = two()
    return ours.lines, [*theirs.lines[:4], theirs.lines[5], theirs.lines[4]], None
