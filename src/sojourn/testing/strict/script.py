"""Replies and faults from JSON files, for a strict server that runs as a process of its own."""

import json
from pathlib import Path
from typing import Final

from sojourn.errors import UsageError
from sojourn.testing.strict.faults import (
    FAIL_KINDS,
    Cut,
    End,
    Fail,
    FailKind,
    Fault,
    Garbage,
    StreamError,
    Trickle,
)
from sojourn.testing.strict.refusal import Refused
from sojourn.testing.strict.reply import STOPS, Reply, Stop, ToolCall
from sojourn.testing.strict.shape import (
    ARRAY,
    INTEGER,
    STRING,
    STRING_OR_OBJECT,
    Shape,
    as_array,
    as_object,
    check_shape,
    is_array,
    is_integer,
    is_object,
    one_of,
    or_null,
)

_REPLY: Final = Shape(
    {},
    {
        "text": STRING,
        "calls": ARRAY,
        "thinking": or_null(STRING),
        "redacted": or_null(STRING),
        "stop": or_null(one_of(*STOPS)),
        "input_tokens": or_null(INTEGER),
        "output_tokens": or_null(INTEGER),
    },
)
_CALL: Final = Shape({"name": STRING, "arguments": STRING_OR_OBJECT}, {"id": or_null(STRING)})
_FAULTS: Final = {
    "fail": Shape({"fault": STRING, "kind": one_of(*FAIL_KINDS)}, {"retry_after": or_null(STRING)}),
    "cut": Shape({"fault": STRING, "after_bytes": or_null(INTEGER)}),
    "end": Shape({"fault": STRING, "after_events": INTEGER}),
    "garbage": Shape({"fault": STRING, "after_events": INTEGER}, {"text": STRING}),
    "stream_error": Shape(
        {"fault": STRING, "after_events": INTEGER}, {"kind": one_of(*FAIL_KINDS)}
    ),
    "trickle": Shape({"fault": STRING, "size": INTEGER}),
}


def read_replies(path: Path) -> list[Reply]:
    """The replies of a file: a JSON array, one object a reply, with the keys of `Reply`.

    Raises: UsageError.
    """
    try:
        items = as_array(_load(path), ())
        return [_reply(item, index) for index, item in enumerate(items)]
    except Refused as refused:
        raise _wrong(path, refused) from None


def read_faults(path: Path) -> dict[int, Fault]:
    """The faults of a file: a JSON object from a request's number to
    `{"fault": "cut", "after_bytes": 100}` and its like.

    Raises: UsageError.
    """
    try:
        found = as_object(_load(path), ())
        return {_number(key, path): _fault(value, key) for key, value in found.items()}
    except Refused as refused:
        raise _wrong(path, refused) from None


def _load(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None


def _wrong(path: Path, refused: Refused) -> UsageError:
    where = ".".join(str(step) for step in refused.path)
    words = f"{path}: {refused.rule} at {where or 'the top'} {refused.message}"
    return UsageError(words.rstrip())


def _number(key: str, path: Path) -> int:
    if not key.isdecimal():
        raise UsageError(f"{path}: {key!r} is not the number of a request")
    return int(key)


def _reply(item: object, index: int) -> Reply:
    value = check_shape(item, (index,), _REPLY)
    calls = value.get("calls", [])
    return Reply(
        text=str(value.get("text", "")),
        calls=tuple(
            _call(call, index, place) for place, call in enumerate(calls if is_array(calls) else [])
        ),
        thinking=_text(value.get("thinking")),
        redacted=_text(value.get("redacted")),
        stop=_stop(value.get("stop")),
        input_tokens=_count(value.get("input_tokens")),
        output_tokens=_count(value.get("output_tokens")),
    )


def _call(item: object, index: int, place: int) -> ToolCall:
    value = check_shape(item, (index, "calls", place), _CALL)
    arguments = value["arguments"]
    return ToolCall(
        name=str(value["name"]),
        arguments=arguments if is_object(arguments) else str(arguments),
        id=_text(value.get("id")),
    )


def _fault(item: object, key: str) -> Fault:
    value = as_object(item, (key,))
    name = str(value.get("fault"))
    if name not in _FAULTS:
        raise UsageError(f"{name!r} is not one of the faults {', '.join(_FAULTS)}")
    check_shape(value, (key,), _FAULTS[name])
    events = _count(value.get("after_events")) or 0
    kind = _kind(value.get("kind"))
    if name == "fail":
        return Fail(kind=kind, retry_after=_text(value.get("retry_after")))
    if name == "cut":
        return Cut(after_bytes=_count(value["after_bytes"]))
    if name == "end":
        return End(after_events=events)
    if name == "garbage":
        text = _text(value.get("text"))
        plain = Garbage(after_events=events)
        return plain if text is None else Garbage(after_events=events, text=text)
    if name == "stream_error":
        return StreamError(after_events=events, kind=kind)
    return Trickle(size=_count(value["size"]) or 1)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if is_integer(value) else None


def _stop(value: object) -> Stop | None:
    return next((stop for stop in STOPS if stop == value), None)


def _kind(value: object) -> FailKind:
    for kind in FAIL_KINDS:
        if kind == value:
            return kind
    return "overloaded"
