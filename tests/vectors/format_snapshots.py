"""Vectors about snapshot events: the contents that their deltas name (docs/format.md#snapshots)."""

from typing import Any

from format_bodies import born
from format_builder import Capsule, canonical, digest, log, scenario

A = "e" * 64
"""No blob has this name."""


def entry(path: str, text: str) -> dict[str, Any]:
    return {"path": path, "sha256": digest(text), "size": len(text), "type": "file"}


def listed(*entries: dict[str, Any]) -> str:
    data = canonical({"entries": list(entries), "format": "sojourn.snapshot/1"}) + b"\n"
    return digest(data)


def taken(
    changed: list[Any], gone: list[Any], result: str, parent: str | None = None, **fields: Any
) -> dict[str, Any]:
    """The body of a snapshot event; sizes are those of what changed."""
    delta = canonical({"changed": changed, "gone": gone}).decode()
    plain = {"delta": delta, "entries": len(changed), "parent": parent, "result": result}
    return plain | {"size": 0} | fields


def one(text: str = "one", **fields: Any) -> Capsule:
    """A capsule with a snapshot of one file, whose body has these fields too."""
    capsule, at = born()
    capsule.blob(text.encode())
    held = entry("a", text)
    capsule.add("snapshot", taken([held], [], listed(held)) | fields, at)
    return capsule


@scenario()
def snapshots() -> Capsule:
    """Each says what changed since its parent; contents are blobs, an empty folder has none."""
    capsule, at = born()
    first, second = entry("a", "one"), entry("b/c", "two") | {"type": "executable"}
    folder = {"path": "d", "type": "directory"}
    capsule.blob(b"one")
    capsule.blob(b"two")
    capsule.add("snapshot", taken([first, folder], [], listed(first, folder)), at)
    parent = capsule.heads()[0]["id"]
    capsule.add("snapshot", taken([second], ["a", "d"], listed(second), parent), at)
    capsule.add("restored", {"snapshot": parent, "why": "asked", "missing": [A]}, at)
    return capsule


@scenario()
def snapshot_with_its_delta_in_a_blob() -> Capsule:
    """A long delta lies in a blob, like any text; so does a whole list."""
    held = entry("a", "one")
    delta = canonical({"changed": [held], "gone": []})
    whole = canonical({"entries": [held], "format": "sojourn.snapshot/1"}) + b"\n"
    capsule, at = born()
    capsule.blob(b"one")
    ref, full = capsule.blob(delta), capsule.blob(whole, "application/json")
    capsule.add("snapshot", taken([held], [], digest(whole), delta=ref, full=full), at)
    return capsule


@scenario(log("blob_missing", 4))
def snapshot_whose_content_is_missing() -> Capsule:
    """The contents that a delta names count as named blobs."""
    capsule = one()
    capsule.blobs.clear()
    return capsule


@scenario(log("blob_size", 4))
def snapshot_with_another_size_of_a_content() -> Capsule:
    """With their sizes."""
    held = entry("a", "one") | {"size": 4}
    capsule, at = born()
    capsule.blob(b"one")
    capsule.add("snapshot", taken([held], [], listed(held)), at)
    return capsule


@scenario(log("blob_missing", 4), log("blob_missing", 4))
def snapshot_whose_contents_are_missing_in_order() -> Capsule:
    """References of the body come first, then contents in the order of the delta."""
    held = entry("a", "one")
    capsule, at = born()
    full = capsule.blob(b"x" * 40)
    capsule.add("snapshot", taken([held, entry("b", "one")], [], listed(held), full=full), at)
    capsule.blobs.clear()
    return capsule


@scenario(log("blob_missing", 4))
def snapshot_whose_delta_is_missing() -> Capsule:
    """A delta that is not there names nothing."""
    capsule, at = born()
    ref = capsule.blob(canonical({"changed": [entry("a", "one")], "gone": []}))
    capsule.add("snapshot", taken([], [], listed(), delta=ref), at)
    capsule.blobs.clear()
    return capsule


@scenario(("blob_altered", "BLOB", None))
def snapshot_whose_delta_is_altered() -> Capsule:
    """Nor does one whose bytes are others."""
    capsule, at = born()
    delta = canonical({"changed": [entry("a", "one")], "gone": []})
    ref = capsule.blob(delta)
    capsule.add("snapshot", taken([], [], listed(), delta=ref), at)
    capsule.blobs[ref["sha256"]] = delta.replace(b'"a"', b'"b"')
    return capsule


@scenario(log("snapshot_malformed", 4))
def snapshot_with_a_delta_of_another_shape() -> Capsule:
    """A delta has its shape."""
    return one(delta=canonical({"changed": [entry("a", "one") | {"type": "socket"}]}).decode())


@scenario(log("duplicate_key", 4))
def snapshot_with_a_delta_that_is_not_strict() -> Capsule:
    """And is strict JSON."""
    return one(delta='{"changed":[],"changed":[],"gone":[]}')


@scenario(log("not_json", 4))
def snapshot_with_a_delta_that_is_not_json() -> Capsule:
    """Or it is reported with the name of what is wrong with it."""
    return one(delta="{")


@scenario(log("body_malformed", 4))
def snapshot_of_another_shape() -> Capsule:
    """A snapshot event has its shape."""
    return one(result="sha256:" + digest("x"))


def slim(*later: str) -> Capsule:
    """A capsule that was sealed without its workspace, lives on, and snapshots these texts."""
    capsule, at = born()
    held = entry("a", "one")
    capsule.add("snapshot", taken([held], [], listed(held)), at)
    seal = {"number": 1, "previous": None, "purpose": "backup", "without_workspace": True}
    capsule.add("sealed", seal, at)
    for text in later:
        again = entry("a", text)
        capsule.add("snapshot", taken([again], [], listed(again)), at)
    return capsule


@scenario()
def snapshot_left_out_by_a_seal() -> Capsule:
    """Contents from before a seal without the workspace may be absent for good."""
    return slim()


@scenario(log("blob_missing", 6))
def snapshot_after_a_seal_that_left_out() -> Capsule:
    """Those that a later snapshot names must be there, the same as before or others."""
    return slim("one")


@scenario(log("blob_size", 4))
def snapshot_left_out_with_another_size() -> Capsule:
    """What is there must be what is named."""
    capsule, at = born()
    capsule.blob(b"one")
    held = entry("a", "one") | {"size": 4}
    capsule.add("snapshot", taken([held], [], listed(held)), at)
    seal = {"number": 1, "previous": None, "purpose": "backup", "without_workspace": True}
    capsule.add("sealed", seal, at)
    return capsule


def gone(*texts: str) -> dict[str, Any]:
    """A redaction of contents alone."""
    return {"by": "you", "reason": "a password", "blobs": sorted(map(digest, texts))}


@scenario()
def content_redacted() -> Capsule:
    """A redaction may take contents of the workspace alone, out of every snapshot."""
    capsule, at = born()
    held, again = entry("a", "one"), entry("b", "one")
    capsule.add("snapshot", taken([held], [], listed(held)), at)
    parent = capsule.heads()[0]["id"]
    capsule.add("snapshot", taken([again], [], listed(held, again), parent), at)
    capsule.add("redacted", gone("one"), at)
    capsule.add("snapshot", taken([], ["a", "b"], listed(), capsule.ids[-2]), at)
    return capsule


@scenario()
def content_redacted_by_null() -> Capsule:
    """An event that names no other is the same as one that names null."""
    capsule = one()
    capsule.add("redacted", gone("one") | {"event": None}, capsule.chains[0])
    capsule.blobs.clear()
    return capsule


@scenario()
def content_redacted_and_still_there() -> Capsule:
    """A blob that is on the list and was not removed yet is sound."""
    capsule = one()
    capsule.add("redacted", gone("one"), capsule.chains[0])
    return capsule


@scenario()
def content_redacted_before_the_snapshot() -> Capsule:
    """The list counts for lines before and after it, as a merge may leave them."""
    capsule, at = born()
    held = entry("a", "one")
    capsule.add("redacted", gone("one"), at)
    capsule.add("snapshot", taken([held], [], listed(held)), at)
    return capsule


@scenario(log("blob_missing", 4))
def another_content_redacted() -> Capsule:
    """A content that is on no list must be there."""
    capsule = one()
    capsule.add("redacted", gone("two"), capsule.chains[0])
    capsule.blobs.clear()
    return capsule


@scenario(log("blob_size", 4))
def content_redacted_and_there_with_another_size() -> Capsule:
    """Only absence is accounted for."""
    held = entry("a", "one") | {"size": 4}
    capsule, at = born()
    capsule.blob(b"one")
    capsule.add("snapshot", taken([held], [], listed(held)), at)
    capsule.add("redacted", gone("one"), at)
    return capsule


@scenario(log("body_malformed", 5))
def redaction_of_a_number() -> Capsule:
    """The event's id is text or null."""
    capsule = one()
    capsule.add("redacted", gone("one") | {"event": 4}, capsule.chains[0])
    return capsule
