"""Where things lie in a capsule, and every limit of the room (docs/format.md#files, #limits)."""

import re
from typing import Final

from sojourn.ids import BlobId

MANIFEST: Final = "manifest.json"
TIMELINE: Final = "memory/timeline_events.jsonl"
WORKING_MEMORY: Final = "memory/working_memory.md"
INDEX: Final = "memory/vector_index/index.json"
SNAPSHOT: Final = "artifacts/snapshot.json"
BLOBS: Final = "artifacts/blobs"
ENVIRONMENT: Final = "environment"
SPEC: Final = "environment/spec.json"
SUMS: Final = "SHA256SUMS"
VERIFY: Final = "VERIFY.txt"
SIGNATURE: Final = "manifest.json.sig"

FIXED_FILES: Final = (SNAPSHOT, SPEC, INDEX, WORKING_MEMORY)
"""The files beside manifest, log and blobs that every capsule has, sorted."""

DERIVED_FILES: Final = (SNAPSHOT, INDEX)
"""Those that the manifest marks `derived`: they are made again rather than trusted."""

COMPANIONS: Final = (SUMS, VERIFY, SIGNATURE)
"""What lies in a sealed capsule beside the files of a live one; unsealing removes them."""

FOLDERS: Final = ("artifacts", BLOBS, ENVIRONMENT, "memory", "memory/vector_index")
"""The folders of a capsule, each after the one that holds it."""

TEMPORARY_PREFIX: Final = ".sojourn-"
"""How the names of a writer's temporary files begin; readers ignore them."""

KIB: Final = 1024
MIB: Final = 1024 * KIB

MAX_INT: Final = 2**53 - 1
"""The highest magnitude of a number."""

MAX_DEPTH: Final = 64
"""How many `{` and `[` may be open at once."""

MAX_TEXT: Final = 16 * KIB
"""Bytes of a string in a position for text; above that a writer makes a blob of it."""

MAX_BODY: Final = 256 * KIB
"""Bytes of a body that a writer puts into a line."""

MAX_LARGE: Final = 16 * MIB
"""Bytes of a body that lies in a blob."""

MAX_LINE: Final = MIB
"""Bytes of a line of the log, its 0x0A included."""

MAX_BATCH: Final = 16 * MIB
"""Bytes of one append, and so of a torn tail."""

MAX_BATCH_EVENTS: Final = 4096
"""Events of one append."""

MAX_CLOCK_JUMP: Final = 2**20
"""How far the clock may rise from one line to the next."""

MAX_PREVIEW: Final = 256
"""Characters of a blob reference's preview."""

MAX_MANIFEST: Final = 64 * MIB
MAX_SNAPSHOT: Final = 64 * MIB
MAX_INDEX: Final = 64 * MIB
MAX_SPEC: Final = MIB
MAX_MEMORY: Final = MIB
MAX_SUMS: Final = 256 * MIB
MAX_VERIFY: Final = 16 * KIB
MAX_SIGNATURE: Final = 64 * KIB

MAX_DAMAGES: Final = 1000
"""How many damages an ending lists; more are counted."""

MAX_TIPS: Final = 64
"""How many ends of one equivocated chain are followed."""

BLOB_NAME: Final = re.compile(r"[0-9a-f]{64}")


def blob_path(blob: BlobId) -> str:
    """The path of a blob's file in the capsule."""
    return f"{BLOBS}/{blob}"


def is_blob_name(name: str) -> bool:
    """Whether a file in the folder of blobs may have this name (docs/format.md#blobs)."""
    return BLOB_NAME.fullmatch(name) is not None


def is_temporary(path: str) -> bool:
    """Whether this is a writer's temporary file, of which readers take no notice."""
    return path.rsplit("/", 1)[-1].startswith(TEMPORARY_PREFIX)
