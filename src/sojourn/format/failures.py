"""Every failure that reading a capsule can name (docs/format.md#failures).

One list for the reader, the verifier and the stand-alone verifier; each name has a vector under
tests/vectors/format.
"""

from typing import Final, Literal, TypeAlias, cast, get_args

import msgspec

Code: TypeAlias = Literal[
    "too_long",
    "not_utf8",
    "bom",
    "too_deep",
    "not_json",
    "number_out_of_range",
    "lone_surrogate",
    "duplicate_key",
    "line_too_long",
    "nul_bytes",
    "glued_lines",
    "line_malformed",
    "line_unended",
    "header_malformed",
    "body_null",
    "body_altered",
    "body_malformed",
    "identity_missing",
    "identity_second",
    "identity_unknown",
    "duplicate_event",
    "equivocation",
    "chain_gap",
    "chain_broken",
    "epoch_order",
    "divergence",
    "batch_wrong",
    "clock_order",
    "clock_jump",
    "file_order",
    "heads_missing",
    "head_unknown",
    "path_unsafe",
    "document_malformed",
    "blob_missing",
    "blob_size",
    "blob_altered",
    "blob_name",
    "log_missing",
    "log_shorter",
    "log_replaced",
    "log_altered",
    "log_longer",
    "torn_tail",
    "manifest_missing",
    "manifest_malformed",
    "format_unknown",
    "read_version_newer",
    "write_version_newer",
    "feature_unknown",
    "file_missing",
    "file_altered",
    "file_edited",
    "file_unlisted",
    "derived_altered",
    "file_surplus",
    "seal_wrong",
    "snapshot_malformed",
    "index_malformed",
    "environment_malformed",
    "variable_refused",
]

CODES: Final = cast(tuple[Code, ...], get_args(Code))

MEANINGS: Final[dict[Code, str]] = {
    "too_long": "the file is longer than its limit",
    "not_utf8": "the bytes are not UTF-8",
    "bom": "the text begins with a byte order mark",
    "too_deep": "objects and lists are nested more than 64 deep",
    "not_json": "the text is not JSON",
    "number_out_of_range": "a number is above 2^53 - 1 in magnitude",
    "lone_surrogate": "a string holds half of a surrogate pair",
    "duplicate_key": "an object has the same key twice",
    "line_too_long": "the line is longer than 1 MiB",
    "nul_bytes": "the line holds NUL bytes, as a crash of the machine leaves them",
    "glued_lines": "two lines were written into one",
    "line_malformed": "the line is not of the form of an event",
    "line_unended": "the last line has no end, and is no torn tail",
    "header_malformed": "the event's header is not of its shape",
    "body_null": "the event's body is gone, and no event says that it was redacted",
    "body_altered": "the event's body is not the one that was written",
    "body_malformed": "the event's body is not of the shape of its kind",
    "identity_missing": "the log does not begin with the event that made the capsule",
    "identity_second": "a second event claims to have made the capsule",
    "identity_unknown": "the event that gives the capsule its id is not in the log",
    "duplicate_event": "the same event stands in the log twice",
    "equivocation": "two different events have the same place in one chain",
    "chain_gap": "events of the chain are missing before this one",
    "chain_broken": "this event does not continue the one before it in its chain",
    "epoch_order": "the epoch is lower than before in the chain",
    "divergence": "two chains of one capsule claim the same epoch",
    "batch_wrong": "the event belongs neither to the append before nor to its own",
    "clock_order": "the clock did not rise in the chain",
    "clock_jump": "the clock rises by more than 2^20 at once",
    "file_order": "the line is not in the order of the log",
    "heads_missing": "a later chain begins without naming what it has seen",
    "head_unknown": "the event names the head of a chain that is not in the log before it",
    "path_unsafe": "a path may not stand here: it could lead out, or is not portable",
    "document_malformed": "a document's change has no valid name, version or JSON value",
    "blob_missing": "a blob that is named is not there",
    "blob_size": "a blob has another size than its reference says",
    "blob_altered": "a blob's bytes are not those that its name stands for",
    "blob_name": "a file among the blobs is not named like one",
    "log_missing": "there is no log",
    "log_shorter": "the log is shorter than it once was",
    "log_replaced": "the log is not the one that was here before",
    "log_altered": "bytes of the log are not those that were written",
    "log_longer": "the log of a sealed capsule is longer than its manifest says",
    "torn_tail": "the last append was not finished; opening the capsule cuts it off",
    "manifest_missing": "there is no manifest",
    "manifest_malformed": "the manifest is not of its shape",
    "format_unknown": "this is not a capsule of this format",
    "read_version_newer": "reading this capsule needs a newer version",
    "write_version_newer": "writing to this capsule needs a newer version",
    "feature_unknown": "reading this capsule needs a feature that is not known here",
    "file_missing": "a file is missing that is made again from the log",
    "file_altered": "a file is missing or has other bytes than the manifest says",
    "file_edited": "a file that people may edit has other bytes than the manifest says",
    "file_unlisted": "a file lies here that the manifest does not name",
    "derived_altered": "a derived file has other bytes than the manifest says",
    "file_surplus": "a file lies here that does not belong to the sealed capsule",
    "seal_wrong": "the seal does not fit the capsule that it stands on",
    "snapshot_malformed": "the snapshot is not of its shape",
    "index_malformed": "the index is not of its shape",
    "environment_malformed": "the environment is not of its shape",
    "variable_refused": "a variable of this name may not be set",
}

NOTICES: Final[frozenset[Code]] = frozenset(
    (
        "torn_tail",
        "file_missing",
        "file_edited",
        "file_unlisted",
        "derived_altered",
        "snapshot_malformed",
        "index_malformed",
        "blob_name",
    )
)
"""What does not stop running: opening the capsule mends it, or it harms nothing."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One failure of a capsule: its name, the file, the line from 1 (None where there is none)."""

    code: Code
    file: str
    line: int | None
    message: str


def finding(code: Code, file: str, line: int | None = None, detail: str = "") -> Finding:
    """A finding whose message is the meaning of its code, and `detail` if there is any."""
    return Finding(code=code, file=file, line=line, message=say(code, detail))


def say(code: Code, detail: str = "") -> str:
    """One sentence for people."""
    return f"{MEANINGS[code]}: {detail}" if detail else MEANINGS[code]


def stops_running(code: Code) -> bool:
    """Whether a capsule with this failure may be looked at but not run."""
    return code not in NOTICES
