"""Vectors about sealed capsules: exactly the files that the manifest names."""

from collections.abc import Callable
from typing import Any

from format_bodies import table, turn
from format_builder import (
    GONE,
    INDEX,
    LOG,
    MANIFEST,
    MEMORY,
    SNAPSHOT,
    Capsule,
    Expected,
    canonical,
    digest,
    log,
)

SUMS, VERIFY, SIGNATURE = "SHA256SUMS", "VERIFY.txt", "manifest.json.sig"
TEXT = b"x = 1\n"


def lines(manifest: dict[str, Any], blobs: dict[str, int]) -> dict[str, str]:
    """Path and digest of all that SHA256SUMS lists, but the manifest."""
    made = {path: mark["sha256"] for path, mark in manifest["files"].items()}
    made |= {f"artifacts/blobs/{name}": name for name in blobs}
    return made | {LOG: manifest["timeline"]["sha256"]}


def text(found: dict[str, str]) -> bytes:
    return "".join(f"{found[path]}  {path}\n" for path in sorted(found)).encode()


def sealed(
    *,
    event: dict[str, Any] | None = None,
    seal: dict[str, Any] | None = None,
    fields: dict[str, Any] | None = None,
    after: bool = False,
    workspace: bool = True,
    gone: tuple[str, dict[str, Any]] | None = None,
    files: dict[str, bytes] | None = None,
) -> Capsule:
    """A sound turn, sealed; with other fields of the event, the seal or the manifest.

    `after`: an event follows the seal's. Without `workspace` the one file of it is not there;
    `gone` is the kind and the body of an event that says why.
    """
    capsule, at = turn()
    entry = {"path": "a.py", "sha256": digest(TEXT), "size": len(TEXT), "type": "file"}
    listing = canonical({"entries": [entry], "format": "sojourn.snapshot/1"}) + b"\n"
    capsule.files[SNAPSHOT] = listing
    if workspace:
        capsule.blob(TEXT)
    taken = {"delta": canonical({"changed": [entry], "gone": []}).decode(), "entries": 1}
    capsule.add("snapshot", taken | {"parent": None, "result": digest(listing), "size": 6}, at)
    if gone is not None:
        capsule.add(*gone, at)
    said = {"number": 1, "previous": None, "purpose": "backup"}
    last = capsule.add("sealed", said | (event or {}), at)
    if after:
        said_after = {"author": "you", "request": "r2", "parts": [{"text": "Hm.", "type": "text"}]}
        capsule.add("input", said_after, at)
    capsule.files |= {VERIFY: b"Check the sums.\n", **(files or {})}
    value = capsule.manifest() | (fields or {})
    value["seal"] = {"blobs": {}, "event": last, "sums": "", **said}
    blobs = {name: len(data) for name, data in capsule.blobs.items()}
    value["seal"] |= {"blobs": blobs, "sums": digest(text(lines(value, blobs)))}
    value["seal"] |= seal or {}
    write(capsule, value)
    return capsule


def redacted(*contents: bytes) -> tuple[str, dict[str, Any]]:
    return "redacted", {"by": "you", "reason": "a password", "blobs": [*map(digest, contents)]}


def write(capsule: Capsule, value: dict[str, Any]) -> None:
    """The manifest, and the sums that follow from it."""
    data = canonical(value) + b"\n"
    listed = lines(value, value["seal"]["blobs"]) | {MANIFEST: digest(data)}
    capsule.files |= {MANIFEST: data, SUMS: text(listed)}


def spoilt(**files: bytes) -> Callable[[], Capsule]:
    """A sealed capsule of which these files were changed afterwards, `_` for `/` and `.`."""

    def build() -> Capsule:
        capsule = sealed()
        for name, data in files.items():
            capsule.files[NAMES[name]] = data
        return capsule

    return build


NAMES = {
    "sums": SUMS,
    "verify": VERIFY,
    "memory": MEMORY,
    "index": INDEX,
    "snapshot": SNAPSHOT,
    "more": "environment/more.txt",
    "odd": "artifacts/blobs/odd",
    "signature": SIGNATURE,
}


def longer() -> Capsule:
    capsule = sealed()
    first = sealed(after=True).lines[-1]
    capsule.lines.append(first)
    return capsule


def name_changed() -> Capsule:
    """One letter of the manifest is another."""
    capsule = sealed()
    capsule.files[MANIFEST] = capsule.files[MANIFEST].replace(b'"name":"e', b'"name":"f')
    return capsule


def blob_changed(data: bytes) -> Callable[[], Capsule]:
    def build() -> Capsule:
        capsule = sealed()
        capsule.blobs[digest(TEXT)] = data
        return capsule

    return build


def more_blobs() -> Capsule:
    capsule = sealed()
    capsule.blob(b"more")
    return capsule


def blob_gone() -> Capsule:
    capsule = sealed()
    capsule.blobs.clear()
    return capsule


def unlisted(path: str) -> Capsule:
    """The manifest does not list a file that is there."""
    capsule = sealed()
    value = sealed_value(capsule)
    del value["files"][path]
    value["seal"]["sums"] = digest(text(lines(value, value["seal"]["blobs"])))
    write(capsule, value)
    return capsule


def sealed_value(capsule: Capsule) -> dict[str, Any]:
    import json

    value: dict[str, Any] = json.loads(capsule.files[MANIFEST])
    return value


def other_size() -> Capsule:
    """The snapshot says another size than the seal."""
    capsule = sealed()
    entry = {"path": "a.py", "sha256": digest(TEXT), "size": 7, "type": "file"}
    listing = canonical({"entries": [entry], "format": "sojourn.snapshot/1"}) + b"\n"
    value = sealed_value(capsule)
    value["files"][SNAPSHOT] |= {"sha256": digest(listing), "size": len(listing)}
    value["seal"]["sums"] = digest(text(lines(value, value["seal"]["blobs"])))
    capsule.files[SNAPSHOT] = listing
    write(capsule, value)
    return capsule


WRONG: tuple[Expected, ...] = (("seal_wrong", MANIFEST, 1),)
BAD: tuple[Expected, ...] = (
    ("manifest_malformed", MANIFEST, 1),
    ("file_unlisted", SUMS, None),
    ("file_unlisted", VERIFY, None),
)
BLOB = f"artifacts/blobs/{digest(TEXT)}"


def altered(path: str, code: str = "file_altered") -> tuple[Expected, ...]:
    return ((code, path, None),)


table(
    {
        "sealed": ("A sealed capsule is sound.", sealed, ()),
        "sealed_and_signed": (
            "A signature may lie beside the manifest.",
            spoilt(signature=b"-----BEGIN SSH SIGNATURE-----\n"),
            (),
        ),
        "sealed_without_workspace": (
            "The contents of the workspace may be left out, when event and seal say so.",
            lambda: sealed(
                event={"without_workspace": True}, seal={"without_workspace": True}, workspace=False
            ),
            (),
        ),
        "sealed_lacks_workspace": (
            "Else they must be there.",
            lambda: sealed(workspace=False),
            (log("blob_missing", 11), ("blob_missing", SNAPSHOT, 1)),
        ),
        "sealed_with_a_redacted_content": (
            "Unless an event says that it was redacted.",
            lambda: sealed(workspace=False, gone=redacted(TEXT)),
            (),
        ),
        "sealed_with_a_lost_content": (
            "Or that it was lost.",
            lambda: sealed(
                workspace=False,
                gone=("repaired", {"code": "blob_missing", "lost": [digest(TEXT)]}),
            ),
            (),
        ),
        "sealed_with_another_redacted_content": (
            "Of just this content.",
            lambda: sealed(workspace=False, gone=redacted(b"another")),
            (log("blob_missing", 11), ("blob_missing", SNAPSHOT, 1)),
        ),
        "sealed_workspace_of_other_size": (
            "With the size that the snapshot says.",
            other_size,
            (("blob_size", SNAPSHOT, 1),),
        ),
        "sealed_event_says_otherwise": (
            "The seal says what its event says.",
            lambda: sealed(seal={"without_workspace": True}),
            WRONG,
        ),
        "sealed_number_of_another": (
            "Also which seal it is.",
            lambda: sealed(seal={"number": 2}),
            WRONG,
        ),
        "sealed_purpose_of_another": (
            "And what for.",
            lambda: sealed(event={"purpose": "share"}),
            WRONG,
        ),
        "sealed_before_the_end": (
            "The sealed event is the last.",
            lambda: sealed(after=True),
            WRONG,
        ),
        "sealed_by_no_event": (
            "The seal names an event of this log.",
            lambda: sealed(seal={"event": digest("x")}),
            WRONG,
        ),
        "sealed_with_entries_in_the_index": (
            "The index of a sealed capsule is empty.",
            lambda: sealed(files={INDEX: b'{"entries":[1],"format":"sojourn.index/1"}\n'}),
            WRONG,
        ),
        "sealed_with_other_sums": (
            "The sums are those of the files that the manifest names.",
            lambda: sealed(seal={"sums": digest("x")}),
            WRONG,
        ),
        "sealed_lists_no_memory": (
            "A sealed manifest lists every fixed file.",
            lambda: unlisted(MEMORY),
            (*WRONG, *altered(MEMORY, "file_surplus")),
        ),
        "sealed_lists_no_text": (
            "And VERIFY.txt.",
            lambda: unlisted(VERIFY),
            (*WRONG, *altered(VERIFY, "file_surplus")),
        ),
        "sealed_lists_its_sums": (
            "SHA256SUMS cannot be listed in the manifest that it lists.",
            lambda: sealed(files={SUMS: b""}),
            WRONG,
        ),
        "sealed_log_longer": (
            "A sealed log ends at its length.",
            longer,
            (("log_longer", LOG, None), *WRONG),
        ),
        "sealed_memory_edited": (
            "Nobody may edit the files of a sealed capsule.",
            spoilt(memory=b"x"),
            altered(MEMORY),
        ),
        "sealed_index_altered": ("Nor its derived files.", spoilt(index=b"x"), altered(INDEX)),
        "sealed_memory_gone": ("All are there.", spoilt(memory=GONE), altered(MEMORY)),
        "sealed_with_more_files": (
            "And no other.",
            spoilt(more=b"x"),
            altered("environment/more.txt", "file_surplus"),
        ),
        "sealed_with_more_blobs": (
            "Nor any other blob.",
            more_blobs,
            altered(f"artifacts/blobs/{digest(b'more')}", "file_surplus"),
        ),
        "sealed_with_strange_blob": (
            "Nor what is no blob.",
            spoilt(odd=b"x"),
            altered("artifacts/blobs/odd", "file_surplus"),
        ),
        "sealed_blob_gone": (
            "A blob that is listed is there.",
            blob_gone,
            (log("blob_missing", 11), *altered(BLOB, "blob_missing")),
        ),
        "sealed_blob_longer": (
            "With its size.",
            blob_changed(b"y" * 7),
            (log("blob_size", 11), *altered(BLOB, "blob_size")),
        ),
        "sealed_blob_altered": (
            "And its bytes.",
            blob_changed(b"y" * 6),
            altered(BLOB, "blob_altered"),
        ),
        "sealed_sums_altered": (
            "The sums follow from the manifest.",
            spoilt(sums=b""),
            altered(SUMS),
        ),
        "sealed_sums_gone": ("They are there.", spoilt(sums=GONE), altered(SUMS)),
        "sealed_text_gone": ("So is the text.", spoilt(verify=GONE), altered(VERIFY)),
        "sealed_manifest_altered": (
            "A change of the manifest shows in the sums.",
            name_changed,
            altered(SUMS),
        ),
        "sealed_blob_with_named_hash": (
            "A blob's name is its sha256.",
            lambda: sealed(seal={"blobs": {"sha256:" + digest(TEXT): 6}}),
            BAD,
        ),
        "sealed_zeroth_time": ("Seals count from 1.", lambda: sealed(seal={"number": 0}), BAD),
        "sealed_for_nothing": (
            "A seal's purpose is a known one.",
            lambda: sealed(seal={"purpose": "fun"}),
            BAD,
        ),
        "sealed_null": (
            "A seal that is null is none: the manifest is that of a live capsule.",
            lambda: live_with_null(),
            (),
        ),
    }
)


def live_with_null() -> Capsule:
    capsule = turn()[0]
    capsule.seal(seal=None)
    return capsule
