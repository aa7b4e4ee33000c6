"""Reads the vectors of tests/vectors/render/replies: a stream of events, and the reply it makes."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from sojourn.errors import CallError
from sojourn.ports import ServerEvent
from sojourn.render import dialect

FOLDER = Path(__file__).resolve().parent.parent / "vectors" / "render" / "replies"


@dataclass(frozen=True, kw_only=True)
class ReplyVector:
    """One file, parsed; `events` is a stream, or `whole` a body that was not streamed."""

    path: Path
    raw: dict[str, Any]


@cache
def replies() -> tuple[ReplyVector, ...]:
    found = sorted(FOLDER.glob("*.json"))
    return tuple(ReplyVector(path=p, raw=json.loads(p.read_text("utf-8"))) for p in found)


def text_of(value: object) -> str:
    """Event data as it stands in a vector: text as it is, anything else as JSON in ASCII."""
    return value if isinstance(value, str) else json.dumps(value)


def read(vector: ReplyVector) -> dict[str, Any]:
    """The reply, and what was shown while it came; or the error that it ended with."""
    reader = dialect(vector.raw["dialect"]).reader()
    shown: list[list[str]] = []
    try:
        if "whole" in vector.raw:
            reply = reader.read_whole(text_of(vector.raw["whole"]).encode())
        else:
            for event in vector.raw["events"]:
                given = ServerEvent(event=event.get("event", ""), data=text_of(event["data"]))
                shown += [[delta.kind, delta.text] for delta in reader.feed(given)]
            reply = reader.finish()
    except CallError as error:
        return {"error": error.code, "message": error.message, "retry": error.retry}
    return {**msgspec.to_builtins(reply), "shown": shown}
