"""Vectors about what another line accounts for: redacted, repaired and claimed, and near misses."""

from dataclasses import replace

from format_bodies import born, ended, outcome, said, taken, turn
from format_builder import Capsule, Chain, chain, digest, log, scenario


def null(capsule: Capsule, line: int) -> None:
    """Take the body of a line away (from 1)."""
    data = capsule.lines[line - 1]
    capsule.lines[line - 1] = b'{"body":null' + data[data.rindex(b',"header":') :]


def redacted(event: str, **fields: object) -> dict[str, object]:
    return {"by": "you", "event": event, "reason": "a password", **fields}


def repaired(at: Chain, first: int, last: int, **fields: object) -> dict[str, object]:
    where = {"machine": at.machine, "incarnation": at.incarnation, "first": first, "last": last}
    return {"code": "nul_bytes", **where, **fields}


def told() -> tuple[Capsule, Chain, str]:
    """Five lines, the fourth of which holds a password."""
    capsule, at = born()
    event = capsule.add("input", said("hunter2"), at)
    capsule.add("turn_ended", ended("t"), at)
    return capsule, at, event


@scenario()
def body_redacted() -> Capsule:
    """A null body is sound when a later event names it as redacted; the chain still verifies."""
    capsule, at, event = told()
    capsule.add("redacted", redacted(event), at)
    null(capsule, 4)
    return capsule


@scenario(log("body_null", 4))
def another_event_redacted() -> Capsule:
    """A null body that no redacted event names is a failure."""
    capsule, at, _ = told()
    capsule.add("redacted", redacted(capsule.ids[4]), at)
    null(capsule, 4)
    return capsule


@scenario()
def redacted_with_its_body_still_there() -> Capsule:
    """A redacted event whose body has not been taken away yet is sound."""
    capsule, at, event = told()
    capsule.add("redacted", redacted(event), at)
    return capsule


@scenario(log("body_null", 2), log("body_null", 5))
def two_null_bodies_in_the_order_of_the_lines() -> Capsule:
    """What is not pardoned is named in the order of the lines."""
    capsule, at, event = told()
    capsule.add("redacted", redacted(event), at)
    for line in (2, 4, 5):
        null(capsule, line)
    return capsule


@scenario(log("body_null", 4), log("batch_wrong", 5))
def what_is_not_pardoned_comes_before_later_lines() -> Capsule:
    """A failure that the end decides is named before those of later lines."""
    capsule, at = born()
    capsule.add("input", said("hunter2"), at)
    capsule.add("turn_ended", ended("t"), at, batch=1)
    null(capsule, 4)
    return capsule


@scenario(log("body_null", 4))
def intent_redacted() -> Capsule:
    """What chains and the order of calls are made of may not be redacted."""
    capsule, at = born()
    event = capsule.add("turn_taken", taken("t"), at)
    capsule.add("redacted", redacted(event), at)
    null(capsule, 4)
    return capsule


@scenario(log("body_null", 4))
def redacted_event_redacted() -> Capsule:
    """The account of a redaction may not be redacted, whoever says so."""
    capsule, at = born()
    first = capsule.add("redacted", redacted(capsule.ids[1]), at)
    capsule.add("redacted", redacted(first), at)
    null(capsule, 4)
    return capsule


@scenario(log("body_null", 4))
def header_of_a_redacted_line_altered() -> Capsule:
    """A changed header makes another event of a null line, which then is not the redacted one."""
    capsule, at, event = told()
    capsule.add("redacted", redacted(event), at)
    null(capsule, 4)
    capsule.lines[3] = capsule.lines[3].replace(b"03:04:05", b"03:04:06")
    capsule.marked = 3
    return capsule


@scenario(log("chain_broken", 5))
def redacted_line_is_not_continued() -> Capsule:
    """After a redacted line the chain goes on from it, as from any other."""
    capsule, at = born()
    event = capsule.add("input", said("hunter2"), at)
    capsule.add("turn_ended", ended("t"), at, prev=digest("another"))
    capsule.add("redacted", redacted(event), at)
    null(capsule, 4)
    return capsule


@scenario(log("chain_broken", 4))
def redacted_line_does_not_continue() -> Capsule:
    """The place of a redacted line is checked like that of any other."""
    capsule, at = born()
    event = capsule.add("input", said("hunter2"), at, prev=digest("another"))
    capsule.add("redacted", redacted(event), at)
    null(capsule, 4)
    return capsule


def shown(*, listed: bool) -> Capsule:
    """An output in a blob that was taken away, and another event that names it."""
    capsule, at = born()
    ref = capsule.blob(b"x" * 20_000)
    event = capsule.add("tool_outcome", outcome("t", "x") | {"full": ref}, at)
    capsule.add("redacted", redacted(event, blobs=[ref["sha256"]] if listed else []), at)
    capsule.add("tool_outcome", outcome("t", "x") | {"full": ref}, at)
    null(capsule, 4)
    capsule.blobs.clear()
    return capsule


@scenario()
def blob_redacted() -> Capsule:
    """A blob on the list of a redacted event may be missing, whoever names it."""
    return shown(listed=True)


@scenario(log("blob_missing", 6))
def blob_of_another_redacted() -> Capsule:
    """A blob that is on no list of a redacted event may not be missing."""
    return shown(listed=False)


@scenario()
def large_body_redacted() -> Capsule:
    """A body that lay in a blob is redacted like any other, and its blob with it."""
    capsule, at = born()
    ref = capsule.blob(b'{"salt":"' + b"s" * 22 + b'"}', "application/json")
    event = capsule.add("later_kind", {"large": ref}, at)
    capsule.add("redacted", redacted(event, blobs=[ref["sha256"]]), at)
    null(capsule, 4)
    capsule.blobs.clear()
    return capsule


def without(capsule: Capsule, *lines: int) -> None:
    """Take lines out (from 1), as repair does before the manifest is written again."""
    for line in sorted(lines, reverse=True):
        del capsule.lines[line - 1], capsule.heads_at[line - 1]


def gap(first: int, last: int, *lines: int) -> Capsule:
    """A turn of ten lines, of which some were set aside and named as `first` to `last`."""
    capsule, at = turn()
    ref = capsule.blob(b"\0\0")
    capsule.add("repaired", repaired(at, first, last, blob=ref), at)
    without(capsule, *lines)
    return capsule


@scenario()
def gap_repaired() -> Capsule:
    """A gap that a repaired event names is no failure; a gap in the middle of an append, too."""
    return gap(5, 7, 6, 7, 8)


@scenario()
def gap_right_before_the_event_that_repairs_it() -> Capsule:
    """The event that names a gap may be the first one after it."""
    capsule, at = turn()
    ref = capsule.blob(b"\0\0")
    capsule.add("repaired", repaired(at, 8, 9, blob=ref), at)
    without(capsule, 9, 10)
    return capsule


@scenario(log("chain_gap", 6))
def gap_repaired_one_too_short() -> Capsule:
    """Every place of a gap has to be named."""
    return gap(5, 6, 6, 7, 8)


@scenario(log("chain_gap", 6))
def gap_repaired_one_too_late() -> Capsule:
    """Every place of a gap has to be named, the first one too."""
    return gap(6, 7, 6, 7, 8)


@scenario()
def gap_repaired_of_which_a_line_came_back() -> Capsule:
    """A gap that shrank, as a merge makes it, is named still."""
    return gap(5, 7, 6, 8)


@scenario()
def gap_repaired_by_two_events() -> Capsule:
    """Several events may name a gap together."""
    capsule = turn()[0]
    at = capsule.chains[0]
    capsule.add("repaired", repaired(at, 6, 7), at)
    capsule.add("repaired", repaired(at, 5, 5), at)
    without(capsule, 6, 7, 8)
    return capsule


@scenario(log("chain_gap", 6))
def gap_of_another_chain_repaired() -> Capsule:
    """A gap is named for its own chain."""
    capsule, at = turn()
    other = replace(at, incarnation="0" * 32)
    capsule.add("repaired", repaired(other, 5, 7), at)
    without(capsule, 6, 7, 8)
    return capsule


@scenario(log("chain_gap", 6))
def gap_without_places() -> Capsule:
    """A repaired event that does not say what is missing pardons no gap."""
    capsule, at = turn()
    capsule.add("repaired", {"code": "nul_bytes", "blob": capsule.blob(b"\0\0")}, at)
    without(capsule, 6, 7, 8)
    return capsule


@scenario(log("clock_order", 6))
def gap_repaired_and_more_is_wrong() -> Capsule:
    """What else is wrong with the event after a gap is named."""
    capsule, at = born()
    capsule.add("input", said("lost"), at)
    b = chain("b", 2)
    capsule.clock = 20
    capsule.add("turn_taken", taken("t", capsule.heads()), b)
    capsule.add("turn_ended", ended("t"), b)
    capsule.add("turn_ended", ended("t"), at, clock=3)
    capsule.add("repaired", repaired(at, 3, 3), at)
    without(capsule, 4)
    return capsule


def lost_head(first: int) -> Capsule:
    """Machine b saw a's fourth event, which was lost afterwards."""
    capsule, a = born()
    capsule.add("input", said("lost"), a)
    b = chain("b", 2)
    capsule.add("turn_taken", taken("t", capsule.heads()), b)
    capsule.add("repaired", repaired(a, first, 3), b)
    without(capsule, 4)
    a.seq, a.prev = 3, capsule.ids[2]
    capsule.heads_at = [[h for h in heads if h["seq"] != 3] for heads in capsule.heads_at]
    capsule.heads_at[-1] = capsule.heads()
    return capsule


@scenario()
def lost_head_repaired() -> Capsule:
    """A head that a repaired gap holds may be unknown."""
    return lost_head(3)


@scenario(log("head_unknown", 4))
def lost_head_of_another_gap() -> Capsule:
    """A head outside every repaired gap may not be unknown."""
    capsule, a = born()
    capsule.add("input", said("lost"), a)
    b = chain("b", 2)
    capsule.add("turn_taken", taken("t", capsule.heads()), b)
    capsule.add("repaired", repaired(a, 4, 9), b)
    without(capsule, 4)
    a.seq, a.prev = 3, capsule.ids[2]
    capsule.heads_at[-1] = capsule.heads()
    return capsule


def blob_gone(*, listed: bool) -> Capsule:
    capsule, at = born()
    ref = capsule.blob(b"x" * 20_000)
    capsule.add("tool_outcome", outcome("t", "x") | {"full": ref}, at)
    lost = [ref["sha256"]] if listed else [digest("another")]
    capsule.add("repaired", {"code": "blob_missing", "lost": lost}, at)
    capsule.blobs.clear()
    return capsule


@scenario()
def lost_blob_repaired() -> Capsule:
    """A blob that a repaired event names as lost may be missing."""
    return blob_gone(listed=True)


@scenario(log("blob_missing", 4))
def another_lost_blob_repaired() -> Capsule:
    """Only the blobs that are named may be missing."""
    return blob_gone(listed=False)


@scenario()
def lost_large_body_repaired() -> Capsule:
    """An event whose body lay in a lost blob is one without a body."""
    capsule, at = born()
    ref = capsule.blob(b'{"salt":"' + b"s" * 22 + b'"}', "application/json")
    capsule.add("later_kind", {"large": ref}, at)
    capsule.add("repaired", {"code": "blob_missing", "lost": [ref["sha256"]]}, at)
    capsule.blobs.clear()
    return capsule


@scenario(log("blob_size", 4), ("blob_altered", "BLOB", None))
def lost_blob_that_is_there_with_another_size() -> Capsule:
    """Absence is pardoned, other bytes are not."""
    capsule = blob_gone(listed=True)
    capsule.blobs[digest(b"x" * 20_000)] = b"short"
    return capsule
