"""The manifest: what a capsule is and a fingerprint of the rest (docs/format.md#manifest)."""

from collections.abc import Collection, Mapping
from typing import Annotated, Final, Literal

import msgspec

from sojourn.errors import FormatError
from sojourn.format import canon, layout, paths, upgrade
from sojourn.format.body import Head
from sojourn.format.failures import Code, Finding, finding, say
from sojourn.format.parts import Count, Digest
from sojourn.format.timeline_read import Ending, Known
from sojourn.ids import BlobId, CapsuleId, Epoch, EventId, MachineId

REFUSALS: Final[frozenset[Code]] = frozenset(
    ("format_unknown", "read_version_newer", "feature_unknown")
)
"""After these nothing else of the capsule may be read."""


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """The format's name and the versions that reading and writing need."""

    name: str
    read: Count
    write: Count


CURRENT: Final = Format(name=upgrade.FORMAT, read=upgrade.READ_VERSION, write=upgrade.WRITE_VERSION)
"""What this version writes."""


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever reads must know (`required`), and what it may ignore."""

    optional: tuple[str, ...]
    required: tuple[str, ...]


class TimelineMark(msgspec.Struct, frozen=True, kw_only=True):
    """The log's first `length` bytes: their sha256 and the head of each chain there, sorted."""

    heads: tuple[Head, ...]
    length: Count
    sha256: Digest


class FileMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file's fingerprint; `derived` when it is made again rather than trusted."""

    sha256: Digest
    size: Count
    derived: bool = False


class Seal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What makes a manifest that of a sealed capsule (docs/format.md#sealing).

    `event` is the id of the `sealed` event, which says `number`, `previous`, `purpose` and
    `without_workspace` too. `blobs` is every blob's name and size. `sums` is the sha256 of the
    lines of SHA256SUMS but that of the manifest.
    """

    blobs: dict[str, Count]
    event: Annotated[EventId, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
    number: Annotated[int, msgspec.Meta(ge=1, le=layout.MAX_INT)]
    previous: Digest | None
    purpose: Literal["backup", "fork", "move", "share"]
    sums: Digest
    without_workspace: bool = False


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest, live without `seal`. `unknown` holds the bytes of fields that may be added."""

    capsule: Annotated[CapsuleId, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
    epoch: Annotated[Epoch, msgspec.Meta(ge=1, le=layout.MAX_INT)]
    features: Features
    files: dict[str, FileMark]
    format: Format
    holder: Annotated[MachineId, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
    name: str
    timeline: TimelineMark
    seal: Seal | None = None
    unknown: Mapping[str, bytes] = {}


_FIELDS: Final = tuple(name for name in Manifest.__struct_fields__ if name != "unknown")


def encode(manifest: Manifest) -> bytes:
    """The file's bytes: canonical JSON, unknown fields as they were, one 0x0A."""
    values = {name: getattr(manifest, name) for name in _FIELDS}
    fields = {name: canon.encode(v) for name, v in values.items() if (name, v) != ("seal", None)}
    pieces = {**manifest.unknown, **fields}
    keys = sorted(pieces, key=lambda key: key.encode("utf-16-be"))
    return b"{" + b",".join(canon.encode(key) + b":" + pieces[key] for key in keys) + b"}\n"


def load(data: bytes) -> Manifest:
    """The manifest in a file's bytes.

    Raises: FormatError with the first failure of docs/format.md#verification.
    """
    value = canon.load(data, what=layout.MANIFEST, limit=layout.MAX_MANIFEST)
    if not isinstance(value, dict):
        raise _error("manifest_malformed", "it is not an object")
    fields = {name: value[name] for name in _FIELDS if name in value}
    try:
        form = msgspec.convert(value.get("format"), Format)
        _refuse(upgrade.refusal(name=form.name, read=form.read))
        manifest = msgspec.convert(fields, Manifest)
    except msgspec.ValidationError as error:
        raise _error("manifest_malformed", str(error)) from None
    _refuse(upgrade.missing(manifest.features.required))
    for path in sorted(manifest.files):
        if not paths.may_be_listed(path):
            raise _error("path_unsafe", repr(path))
    if manifest.seal is not None and not all(map(layout.is_blob_name, manifest.seal.blobs)):
        raise _error("manifest_malformed", "a blob of the seal has no blob's name")
    raws = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    unknown = {key: bytes(raw) for key, raw in raws.items() if key not in _FIELDS}
    return msgspec.structs.replace(manifest, unknown=unknown)


def known(manifest: Manifest) -> Known:
    """What the manifest knows of the log."""
    mark = manifest.timeline
    return Known(length=mark.length, heads=mark.heads, sha256=mark.sha256)


def mark(ending: Ending) -> TimelineMark:
    """The log as a manifest names it, once it was read to its end."""
    return TimelineMark(
        heads=ending.heads, length=ending.length, sha256=BlobId(ending.digest.hexdigest())
    )


def access(manifest: Manifest) -> upgrade.Access:
    """Whether this version may write to the capsule, or only read it."""
    return upgrade.access(write=manifest.format.write)


def check(manifest: Manifest, *, identities: Collection[EventId]) -> tuple[Finding, ...]:
    """What does not agree with the log; `known` does the rest while the log is read."""
    if manifest.capsule in identities:
        return ()
    return (finding("identity_unknown", layout.MANIFEST, 1, manifest.capsule),)


def _refuse(refused: tuple[Code, str] | None) -> None:
    if refused is not None:
        raise _error(*refused)


def _error(code: Code, detail: str) -> FormatError:
    return FormatError(say(code, detail), code=code, file=layout.MANIFEST, line=1)
