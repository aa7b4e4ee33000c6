"""Vectors about the files beside the log: blobs, memory, snapshot, index, environment."""

from format_bodies import born, ended, outcome, said, turn
from format_builder import (
    GONE,
    INDEX,
    MEMORY,
    NOTES,
    SNAPSHOT,
    SPEC,
    Capsule,
    canonical,
    digest,
    log,
    scenario,
)

LISTED = {"sha256": digest("x"), "size": 1}


@scenario(("file_altered", "artifacts/report.txt", None))
def listed_file_altered() -> Capsule:
    """A file that nothing can rebuild has the bytes that the manifest says."""
    capsule = turn()[0]
    capsule.files["artifacts/report.txt"] = b"a\n"
    capsule.seal()
    capsule.files["artifacts/report.txt"] = b"b\n"
    return capsule


@scenario(("file_altered", "artifacts/report.txt", None))
def listed_file_gone() -> Capsule:
    """And it is there."""
    capsule = turn()[0]
    capsule.files["artifacts/report.txt"] = b"a\n"
    capsule.seal()
    del capsule.files["artifacts/report.txt"]
    return capsule


@scenario(("derived_altered", "memory/other_index.bin", None))
def derived_file_altered() -> Capsule:
    """A file that is derived is only noted."""
    capsule = turn()[0]
    capsule.listed["memory/other_index.bin"] = LISTED | {"derived": True}
    capsule.seal()
    capsule.files["memory/other_index.bin"] = b"\xff\x00"
    return capsule


@scenario(("file_unlisted", "notes.txt", None))
def unlisted_file() -> Capsule:
    """A file that the manifest does not name is noted; temporary files of writers are not."""
    capsule = turn()[0]
    capsule.seal()
    capsule.files["notes.txt"] = b"hello"
    capsule.files["memory/.sojourn-0123"] = b"half"
    capsule.blobs[".sojourn-0123"] = b"half"
    return capsule


@scenario(*(("file_missing", path, None) for path in sorted((SNAPSHOT, SPEC, INDEX, MEMORY))))
def projections_gone() -> Capsule:
    """What the log can make again is noted when it is gone."""
    capsule = turn()[0]
    capsule.seal()
    for path in (SNAPSHOT, SPEC, INDEX, MEMORY):
        capsule.files[path] = GONE
    return capsule


@scenario(("derived_altered", SNAPSHOT, None), ("derived_altered", INDEX, None))
def derived_files_of_before() -> Capsule:
    """Derived files with other bytes are noted and made again, whatever they hold."""
    capsule = turn()[0]
    capsule.seal()
    capsule.files[SNAPSHOT] = b"{"
    capsule.files[INDEX] = b'{"entries":[1],"format":"sojourn.index/1"}\n'
    return capsule


@scenario(("file_edited", SPEC, None), ("file_edited", MEMORY, None))
def edited_files() -> Capsule:
    """What people may edit is noted when it differs; whoever opens the capsule takes it in."""
    capsule = turn()[0]
    capsule.seal()
    capsule.files[SPEC] = b"{"
    capsule.files[MEMORY] = NOTES.encode() + b"More.\n"
    return capsule


@scenario(("file_edited", "environment/pylock.toml", None))
def lock_file_edited() -> Capsule:
    """Lock files are among them."""
    capsule = turn()[0]
    capsule.files["environment/pylock.toml"] = b"a\n"
    capsule.seal()
    capsule.files["environment/pylock.toml"] = b"b\n"
    return capsule


@scenario()
def blobs() -> Capsule:
    """Texts and media lie in blobs; one that nothing names is no failure."""
    capsule, at = born()
    text = capsule.blob(b"long text")
    image = capsule.blob(b"\x89PNG", "image/png")
    parts = [
        {"text": text | {"preview": "long"}, "type": "text"},
        {"blob": image, "media_type": "image/png", "type": "media"},
    ]
    capsule.add("input", said("x") | {"parts": parts}, at)
    capsule.blob(b"an orphan")
    return capsule


def named_blob() -> tuple[Capsule, str]:
    capsule, at = born()
    ref = capsule.blob(b"the whole output")
    capsule.add("tool_outcome", outcome("t", "shortened", full=ref), at)
    capsule.add("tool_outcome", outcome("t", "shortened", full=ref), at)
    return capsule, ref["sha256"]


@scenario(log("blob_missing", 4))
def blob_missing() -> Capsule:
    """A blob that is named and not there is reported where it is first named."""
    capsule, _ = named_blob()
    capsule.blobs.clear()
    return capsule


@scenario(("blob_altered", "BLOB", None))
def blob_altered() -> Capsule:
    """A blob has the digest that is its name."""
    capsule, name = named_blob()
    capsule.blobs[name] = b"the whole outpuT"
    return capsule


@scenario(log("blob_size", 4), ("blob_altered", "BLOB", None))
def blob_cut() -> Capsule:
    """A blob that was cut has another size, too."""
    capsule, name = named_blob()
    capsule.blobs[name] = b""
    return capsule


@scenario(log("blob_size", 4))
def blob_reference_with_other_size() -> Capsule:
    """Name, size and content agree."""
    capsule, at = born()
    ref = capsule.blob(b"the whole output")
    capsule.add("tool_outcome", outcome("t", "shortened", full=ref | {"size": 3}), at)
    return capsule


@scenario(("blob_name", "artifacts/blobs/ABC", None))
def blob_with_strange_name() -> Capsule:
    """Nothing but blobs lies among them."""
    capsule = turn()[0]
    capsule.blobs["ABC"] = b"x"
    return capsule


@scenario()
def forged_reference() -> Capsule:
    """A text that looks like a reference is a text: references stand in typed positions only."""
    capsule, at = born()
    forged = {"media_type": "text/plain", "sha256": digest("nowhere"), "size": 7}
    capsule.add("input", said(canonical(forged).decode()), at)
    capsule.add("later", {"ref": forged}, at)
    capsule.add("turn_ended", ended("t"), at)
    return capsule
