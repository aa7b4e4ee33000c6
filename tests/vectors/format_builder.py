"""Makes capsules byte by byte for the vectors of tests/vectors/format, without sojourn.

What is written here follows docs/format.md alone, so the vectors do not take the code's word.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

LOG = "memory/timeline_events.jsonl"
MEMORY = "memory/working_memory.md"
INDEX = "memory/vector_index/index.json"
SNAPSHOT = "artifacts/snapshot.json"
SPEC = "environment/spec.json"
MANIFEST = "manifest.json"
TIME = "2026-01-02T03:04:05.678Z"
NOTES = "Tests live in tests/.\n"

Expected = tuple[str, str, int | None]
"""A failure's name, its file, its line."""


def digest(data: bytes | str) -> str:
    return sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def canonical(value: object) -> bytes:
    """RFC 8785 for what is used here: no floats, ASCII keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass
class Chain:
    """A machine's chain while it is written."""

    machine: str
    incarnation: str
    epoch: int
    seq: int = 0
    prev: str | None = None
    batch: int = 0


def chain(name: str, epoch: int) -> Chain:
    return Chain(digest(f"machine {name}"), digest(f"incarnation {name}")[:32], epoch)


@dataclass
class Capsule:
    """One capsule; scenarios change `lines`, `files` and `blobs` as they like."""

    lines: list[bytes] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    clock: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    marked: int | None = None
    """How many lines the manifest names; None for all."""
    listed: dict[str, dict[str, Any]] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    chains: list[Chain] = field(default_factory=list)
    heads_at: list[list[dict[str, Any]]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def add(
        self,
        kind: str,
        body: object,
        at: Chain,
        /,
        *,
        more: bool = False,
        raw: bytes | None = None,
        **header: Any,
    ) -> str:
        """Append an event to the chain; `more` when it is of the same append as the one before.

        `raw` is the body's bytes when they are not the canonical ones; fields of the header can be
        given, None as "leave it out" is said by "-".
        """
        if isinstance(body, dict):
            body = {"salt": f"salt{len(self.lines):018d}", **body}
        data = canonical(body) if raw is None else raw
        if not more:
            at.batch = at.seq
        self.clock += 1
        head = {
            "batch": at.batch,
            "body": digest(data),
            "clock": self.clock,
            "epoch": at.epoch,
            "incarnation": at.incarnation,
            "kind": kind,
            "machine": at.machine,
            "prev": at.prev,
            "seq": at.seq,
            "time": TIME,
        }
        head.update(header)
        packed = canonical({key: value for key, value in head.items() if value != "-"})
        self.lines.append(b'{"body":' + data + b',"header":' + packed + b"}\n")
        at.prev = digest(packed)
        self.ids.append(at.prev)
        at.seq += 1
        if at not in self.chains:
            self.chains.append(at)
        self.heads_at.append(self.heads())
        return at.prev

    def heads(self) -> list[dict[str, Any]]:
        """The heads now, sorted."""
        made = [
            {"id": c.prev, "incarnation": c.incarnation, "machine": c.machine, "seq": c.seq - 1}
            for c in self.chains
        ]
        return sorted(made, key=lambda head: (head["machine"], head["incarnation"]))

    def blob(self, data: bytes, media_type: str = "text/plain") -> dict[str, Any]:
        """Keep a blob; its reference."""
        self.blobs[digest(data)] = data
        return {"media_type": media_type, "sha256": digest(data), "size": len(data)}

    def manifest(self) -> dict[str, Any]:
        """The manifest as it should be, over the first `marked` lines as they were written."""
        count = len(self.lines) if self.marked is None else self.marked
        log = b"".join(self.lines[:count])
        files = {
            path: {"sha256": digest(data), "size": len(data)}
            | ({"derived": True} if path in (SNAPSHOT, INDEX) else {})
            for path, data in self.files.items()
        }
        return {
            "capsule": self.ids[0] if self.ids else digest("nothing"),
            "epoch": 1,
            "features": {"optional": [], "required": []},
            "files": files | self.listed,
            "format": {"name": "sojourn.capsule", "read": 1, "write": 1},
            "holder": digest("machine a"),
            "name": "example",
            "timeline": {
                "heads": self.heads_at[count - 1] if count else [],
                "length": len(log),
                "sha256": digest(log),
            },
        }

    def seal(self, **changes: Any) -> dict[str, Any]:
        """Write the manifest with these fields changed; done by itself when nobody did."""
        value = self.manifest() | changes
        self.files[MANIFEST] = canonical(value) + b"\n"
        return value

    def tail(self, data: bytes) -> None:
        """Bytes after the last line."""
        self.lines.append(data)


def plain_files(notes: str = NOTES) -> dict[str, bytes]:
    """The files of a capsule beside manifest, log and blobs."""
    return {
        SNAPSHOT: canonical({"entries": [], "format": "sojourn.snapshot/1"}) + b"\n",
        SPEC: b'{\n  "format": "sojourn.environment/1",\n  "env": {"LANG": "C.UTF-8"}\n}\n',
        INDEX: canonical({"entries": [], "format": "sojourn.index/1"}) + b"\n",
        MEMORY: notes.encode(),
    }


@dataclass
class Scenario:
    """A vector in the making."""

    name: str
    says: str
    build: Callable[[], Capsule]
    expect: tuple[Expected, ...]


@dataclass(frozen=True)
class Value:
    """A vector of one value: what reads it, its bytes, and the failure with its line, if any."""

    name: str
    says: str
    read: str
    data: bytes
    expect: tuple[tuple[str, int], ...]

    def stored(self) -> dict[str, Any]:
        return {
            "says": self.says,
            "read": self.read,
            "expect": [list(failure) for failure in self.expect],
            "data": pieces(self.data),
        }


def pieces(data: bytes, *, run: int = 10_000) -> list[Any]:
    """A file as text, base64 or runs of one byte, at least `run` of it; what is short to read."""
    made: list[Any] = []
    at = 0
    for same in re.finditer(rb"(?s)([\0-\x7f])\1{%d,}" % (run - 1), data):
        made += _piece(data[at : same.start()])
        made.append({"repeat": same[1].decode("ascii"), "times": len(same[0])})
        at = same.end()
    return made + _piece(data[at:])


def _piece(data: bytes) -> list[Any]:
    if not data:
        return []
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [{"base64": base64.b64encode(data).decode()}]
    return [text]


def vector(scenario: Scenario) -> dict[str, Any]:
    """The vector as it is stored."""
    capsule = scenario.build()
    if MANIFEST not in capsule.files:
        capsule.seal()
    files = dict(capsule.files)
    files.setdefault(LOG, b"".join(capsule.lines))
    files |= {f"artifacts/blobs/{name}": data for name, data in capsule.blobs.items()}
    blob = f"artifacts/blobs/{next(iter(capsule.blobs), None)}"
    stored = {path: pieces(data) for path, data in sorted(files.items()) if data != GONE}
    return {
        "says": scenario.says,
        **capsule.options,
        "expect": [
            [code, file.replace("BLOB", blob), line] for code, file, line in scenario.expect
        ],
        "files": stored,
    }


GONE = b"\0gone"
"""The content that stands for a file that is not there."""

ALL: list[Scenario] = []


def scenario(*expect: Expected) -> Callable[[Callable[[], Capsule]], Callable[[], Capsule]]:
    """Makes a vector of a function: its name is the vector's, its docstring says the rule."""

    def take(build: Callable[[], Capsule]) -> Callable[[], Capsule]:
        says = " ".join((build.__doc__ or "").split())
        ALL.append(Scenario(build.__name__, says, build, expect))
        return build

    return take


def log(code: str, line: int | None) -> Expected:
    """A failure in the log."""
    return (code, LOG, line)
