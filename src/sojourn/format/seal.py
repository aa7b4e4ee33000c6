"""Sealed capsules: exactly the files that the manifest names (docs/format.md#sealing)."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final, cast

import msgspec

from sojourn.errors import FormatError
from sojourn.format import index, layout, snapshot
from sojourn.format.capsule_kinds import Sealed
from sojourn.format.event import Event
from sojourn.format.failures import Code, Finding, finding
from sojourn.format.gone import Gone
from sojourn.format.manifest import FileMark, Manifest, Seal
from sojourn.ids import BlobId

VERIFY_TEXT: Final = b"""\
This is a sealed sojourn capsule: the whole state of an AI agent, in plain files.
They have no folder in common, so unpack an archive FILE into a folder of its own:

     mkdir capsule && tar -C capsule -xf FILE

It can be checked without sojourn, in the folder that holds this file:

1. Every file has the bytes that were sealed. (It does not tell of files that were added.)

     sha256sum -c --quiet --strict SHA256SUMS && echo OK

2. If there is a file manifest.json.sig: NAME, one of your allowed_signers, signed the manifest.

     ssh-keygen -Y verify -f allowed_signers -I NAME -n sojourn-capsule@v1 \\
         -s manifest.json.sig < manifest.json

3. The signed manifest names the list of step 1.

     grep -q "$(grep -v '  manifest.json$' SHA256SUMS | sha256sum | cut -c 1-64)" \\
         manifest.json && echo OK
"""
"""What a writer of this version puts into VERIFY.txt."""


def mark(data: bytes, *, derived: bool = False) -> FileMark:
    """The fingerprint of a file with these bytes."""
    return FileMark(sha256=BlobId(sha256(data).hexdigest()), size=len(data), derived=derived)


def sealed(
    live: Manifest,
    *,
    event: Event,
    body: Sealed,
    files: Mapping[str, FileMark],
    blobs: dict[str, int],
) -> Manifest:
    """The manifest of a capsule that was sealed by `event`, its last one.

    `live` is the manifest of the whole log, `files` are those of a live one, `blobs` name and size.
    """
    listed = {path: found for path, found in files.items() if path not in layout.COMPANIONS}
    listed[layout.INDEX] = mark(index.EMPTY, derived=True)
    listed[layout.VERIFY] = mark(VERIFY_TEXT)
    seal = Seal(
        blobs=blobs,
        event=event.id,
        number=body.number,
        previous=body.previous,
        purpose=body.purpose,
        sums=BlobId("0" * 64),
        without_workspace=body.without_workspace,
    )
    return with_sums(msgspec.structs.replace(live, files=listed, seal=seal))


def with_sums(made: Manifest) -> Manifest:
    """The sealed manifest, its `sums` being those of the files that it names."""
    if made.seal is None:
        return made
    digest = BlobId(sha256(_text(_lines(made))).hexdigest())
    return msgspec.structs.replace(made, seal=msgspec.structs.replace(made.seal, sums=digest))


def unsealed(found: Manifest) -> Manifest:
    """The live manifest of a capsule that was sealed and is opened for writing."""
    files = {path: one for path, one in found.files.items() if path not in layout.COMPANIONS}
    return msgspec.structs.replace(found, files=files, seal=None)


def sums(found: Manifest, data: bytes) -> bytes:
    """The bytes of SHA256SUMS beside a sealed manifest with the bytes `data`."""
    return _text({**_lines(found), layout.MANIFEST: sha256(data).hexdigest()})


def members(found: Manifest, data: bytes, *, signature: bytes | None) -> dict[str, int]:
    """Every file of a sealed capsule and its size; the manifest's bytes are `data`."""
    blobs = {} if found.seal is None else found.seal.blobs
    sizes = {path: one.size for path, one in found.files.items()}
    sizes |= {layout.blob_path(BlobId(name)): size for name, size in blobs.items()}
    sizes |= {layout.TIMELINE: found.timeline.length, layout.MANIFEST: len(data)}
    sizes[layout.SUMS] = len(sums(found, data))
    return sizes if signature is None else {**sizes, layout.SIGNATURE: len(signature)}


def _lines(found: Manifest) -> dict[str, str]:
    """Path and digest of every file that SHA256SUMS lists, but the manifest."""
    blobs = {} if found.seal is None else found.seal.blobs
    lines: dict[str, str] = {path: one.sha256 for path, one in found.files.items()}
    lines |= {layout.blob_path(BlobId(name)): name for name in blobs}
    lines[layout.TIMELINE] = found.timeline.sha256
    return lines


def _text(lines: Mapping[str, str]) -> bytes:
    return "".join(f"{lines[path]}  {path}\n" for path in sorted(lines)).encode()


def check(found: Manifest, seal: Seal, *, last: Event | None, length: int) -> Iterator[Finding]:
    """What is wrong with the log under the seal, and with the seal; `length` is the log's."""
    if length > found.timeline.length:
        yield finding("log_longer", layout.TIMELINE)
    reason = _unfit(found, seal, last)
    if reason is not None:
        yield finding("seal_wrong", layout.MANIFEST, 1, reason)


def _unfit(found: Manifest, seal: Seal, last: Event | None) -> str | None:
    """Why the seal may not stand on this capsule."""
    body = None if last is None else last.body
    if last is None or not isinstance(body, Sealed) or last.id != seal.event:
        return "the log does not end with the event that it names"
    said = (body.number, body.previous, body.purpose, body.without_workspace)
    if said != (seal.number, seal.previous, seal.purpose, seal.without_workspace):
        return "the event says otherwise"
    if not {*layout.FIXED_FILES, layout.VERIFY} <= found.files.keys():
        return "a file that every sealed capsule has is not listed"
    if {layout.SUMS, layout.SIGNATURE} & found.files.keys():
        return "a file is listed that cannot be"
    if found.files[layout.INDEX].sha256 != sha256(index.EMPTY).hexdigest():
        return "the index is not empty"
    if seal.sums != sha256(_text(_lines(found))).hexdigest():
        return "the sums are not those of its files"
    return None


def check_file(
    found: Manifest, data: bytes, path: str, *, size: int | None, digest: str | None
) -> Finding | None:
    """What is wrong with one file beside manifest, log and blobs; None for both when absent.

    `data` is the manifest's bytes.
    """
    if path == layout.SUMS:
        wanted = sums(found, data)
        same = (len(wanted), sha256(wanted).hexdigest()) == (size, digest)
        return None if same else finding("file_altered", path)
    if path == layout.SIGNATURE:
        return None
    listed = found.files.get(path)
    if listed is None:
        return finding("file_surplus", path)
    same = (listed.size, listed.sha256) == (size, digest)
    return None if same else finding("file_altered", path)


def check_blob(seal: Seal, name: str, *, size: int | None, digest: str | None) -> Finding | None:
    """What is wrong with one file among the blobs; None for both when absent."""
    path = layout.blob_path(BlobId(name))
    code: Code | None = None
    if name not in seal.blobs:
        code = "file_surplus"
    elif size is None:
        code = "blob_missing"
    elif size != seal.blobs[name]:
        code = "blob_size"
    elif digest != name:
        code = "blob_altered"
    return None if code is None else finding(code, path)


def check_workspace(seal: Seal, data: bytes | None, *, gone: Gone) -> Iterator[Finding]:
    """Contents of the workspace that `snapshot.json` names and the seal lacks against the rule."""
    if seal.without_workspace or data is None:
        return
    try:
        entries = snapshot.load(data).entries
    except FormatError as error:
        yield Finding(
            code=cast(Code, error.code),
            file=layout.SNAPSHOT,
            line=error.line,
            message=error.message,
        )
        return
    for entry in entries:
        if entry.sha256 is None or seal.blobs.get(entry.sha256) == entry.size:
            continue
        if entry.sha256 in seal.blobs:
            yield finding("blob_size", layout.SNAPSHOT, 1, entry.sha256)
        elif entry.sha256 not in gone:
            yield finding("blob_missing", layout.SNAPSHOT, 1, entry.sha256)
