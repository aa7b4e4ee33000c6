"""The plain capsules that the vectors start from."""

from collections.abc import Callable
from typing import Any

from format_builder import (
    ALL,
    NOTES,
    Capsule,
    Chain,
    Expected,
    Scenario,
    chain,
    digest,
    plain_files,
)

CALL = digest("call")
ISSUER = {"api": "scripted", "model": "m", "provider": "scripted", "scope": ""}


def empty() -> Capsule:
    """A capsule that holds nothing but its files."""
    capsule = Capsule()
    capsule.files = plain_files()
    return capsule


def born(notes: str = NOTES) -> tuple[Capsule, Chain]:
    """Three lines: made, configured, its first notes."""
    capsule, at = empty(), chain("a", 1)
    capsule.files = plain_files(notes)
    capsule.add("created", {"name": "example", "read": 1, "write": 1}, at)
    capsule.add("configured", {"model": "scripted/m", "system": "Be kind."}, at, more=True)
    capsule.add("memory", memory(None, notes), at, more=True)
    return capsule, at


def memory(before: str | None, text: str) -> dict[str, Any]:
    return {
        "before": None if before is None else digest(before),
        "origin": "created" if before is None else "tool",
        "result": digest(text),
        "text": text,
    }


def said(text: str, request: str = "r1") -> dict[str, Any]:
    return {"author": "you", "parts": [{"text": text, "type": "text"}], "request": request}


def taken(turn: str, heads: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    body = {"boot": "b1", "runner": digest("runner")[:32], "turn": turn}
    return body | ({"heads": heads} if heads else {})


def outcome(turn: str, text: str, **fields: Any) -> dict[str, Any]:
    parts = [{"text": text, "type": "text"}]
    return {"call": CALL, "parts": parts, "status": "done", "turn": turn, **fields}


def ended(turn: str) -> dict[str, Any]:
    return {"reason": "rest", "turn": turn}


def turn() -> tuple[Capsule, Chain]:
    """Ten lines: a whole turn with one tool call, in six appends."""
    capsule, at = born()
    first = capsule.add("input", said("Mend it."), at)
    capsule.add("turn_taken", taken(first), at)
    intent = {"call": CALL, "runner": digest("runner")[:32], "turn": first}
    capsule.add("model_intent", intent | {"configured": capsule.ids[1], "issuer": ISSUER}, at)
    call = {"args": '{"path":"a.py"}', "native_id": "c1", "tool": "read", "type": "call"}
    reply = {"call": CALL, "issuer": ISSUER, "parts": [call], "status": "done", "turn": first}
    asked = capsule.add("model_outcome", reply | {"stop": "calls"}, at)
    wanted = {"index": 0, "replay": "safe", "requested_by": asked, "tool": "read"}
    capsule.add("tool_intent", intent | wanted, at, more=True)
    capsule.add("tool_outcome", outcome(first, "x = 1\n"), at)
    capsule.add("turn_ended", ended(first), at, more=True)
    return capsule, at


def with_file(path: str, data: bytes) -> Capsule:
    """A sound turn with this file in place of its own, of which the manifest knows nothing."""
    capsule = turn()[0]
    capsule.seal()
    capsule.files[path] = data
    return capsule


def table(rows: dict[str, tuple[str, Callable[[], Capsule], tuple[Expected, ...]]]) -> None:
    """Scenarios that differ in one value."""
    for name, (says, build, expect) in rows.items():
        ALL.append(Scenario(name, says, build, expect))
