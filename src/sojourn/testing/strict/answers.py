"""What a strict server answers: pure, from one request and its number to the bytes to write."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from sojourn.testing.strict.api import Api, bad_method
from sojourn.testing.strict.faults import (
    Break,
    Cut,
    Fail,
    Fault,
    Faults,
    Step,
    StreamError,
    fault_at,
    steps,
)
from sojourn.testing.strict.http11 import HttpRequest
from sojourn.testing.strict.refusal import Refusal, Refused, Rule
from sojourn.testing.strict.reply import OutOfReplies, Replies, Reply, Wire, pick
from sojourn.testing.strict.shape import JsonObject, is_object

_GATEWAY_PAGE: Final = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
    b"<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"
)
_JSON: Final = {"content-type": "application/json"}
_STREAM: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "transfer-encoding": "chunked",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """How a server answers: its APIs by path, its replies, and what it lets pass."""

    routes: Mapping[str, Api]
    replies: Replies
    faults: Faults
    keys: frozenset[str] | None
    models: frozenset[str] | None
    key_header: str
    """The header that carries an idempotency key, in lower case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """One request as a server saw it, and what came of it.

    `number` counts from 1 over the requests to a known path; others have 0. `payload` is None when
    the body is no JSON, `digest` the sha256 of its bytes in hex. `problem` says why the server
    itself had no answer.
    """

    number: int
    api: str | None
    path: str
    headers: Mapping[str, str]
    payload: object
    digest: str
    idempotency_key: str | None
    refusal: Refusal | None = None
    fault: Fault | None = None
    reply: Reply | None = None
    problem: str | None = None

    @property
    def verdict(self) -> Literal["accepted", "refused", "failed", "broken"]:
        """Answered, refused by a rule, failed on demand, or the server had no reply."""
        if self.refusal is not None:
            return "refused"
        if self.problem is not None:
            return "broken"
        return "failed" if isinstance(self.fault, Fail) else "accepted"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The response: a head, and the steps of its body.

    Without a `content-length` the body goes in chunks. `silent`: the connection breaks before the
    status line.
    """

    status: int
    headers: Mapping[str, str]
    steps: list[Step] = field(default_factory=list[Step])
    silent: bool = False


def answer(request: HttpRequest, number: int, setup: Setup) -> tuple[Answer, Recorded]:
    """The answer to a request, and the record of it.

    A refusal comes before a fault, so that no fault hides a request that is wrong.
    """
    api = setup.routes.get(request.path)
    payload, unreadable = _parse(request.body)
    record = Recorded(
        number=number if api else 0,
        api=api.name if api else None,
        path=request.path,
        headers=request.headers,
        payload=payload,
        digest=hashlib.sha256(request.body).hexdigest(),
        idempotency_key=request.headers.get(setup.key_header),
    )
    seed = hashlib.sha256(f"{record.digest} {number}".encode()).hexdigest()
    if api is None:
        return _no_route(request, seed, record, setup)
    refusal = _refusal(request, payload, unreadable, api, setup)
    if refusal is not None:
        body = api.refusal_body(refusal, seed)
        return _whole(refusal.status, body), replace(record, refusal=refusal)
    fault = fault_at(setup.faults, number)
    if isinstance(fault, Fail):
        return _failure(fault, api, seed), replace(record, fault=fault)
    known: JsonObject = payload if is_object(payload) else {}
    try:
        reply = pick(setup.replies, known)
    except OutOfReplies as error:
        refused = Refused(Rule.BAD_VALUE, f"strict fake: {error}")
        body = api.refusal_body(api.in_words(refused), seed)
        return _whole(400, body), replace(record, problem=str(error))
    record = replace(record, reply=reply, fault=fault)
    return _reply(reply, known, fault, api, seed), record


def _parse(body: bytes) -> tuple[object, Refused | None]:
    try:
        value: object = json.loads(body.decode(), parse_constant=_no_such_number)
    except (ValueError, RecursionError) as error:
        words = f"The request body is not valid JSON: {error}"
        return None, Refused(Rule.NOT_JSON, words)
    return value, None


def _no_such_number(text: str) -> object:
    raise ValueError(f"{text} is no JSON number")


def _refusal(
    request: HttpRequest, payload: object, unreadable: Refused | None, api: Api, setup: Setup
) -> Refusal | None:
    if request.method != "POST":
        return api.in_words(bad_method(request.method))
    denied = api.check_headers(request.headers, setup.keys)
    if denied is not None:
        return denied
    if len(request.body) > api.max_bytes:
        return api.in_words(Refused(Rule.BODY_TOO_LARGE, "", status=413))
    if unreadable is not None:
        return api.in_words(unreadable)
    wrong = api.check(payload)
    if wrong is not None or setup.models is None or not is_object(payload):
        return wrong
    model = str(payload["model"])
    return None if model in setup.models else api.unknown_model(model)


def _no_route(
    request: HttpRequest, seed: str, record: Recorded, setup: Setup
) -> tuple[Answer, Recorded]:
    words = f"Invalid URL ({request.method} {request.path})"
    api = next(iter(setup.routes.values()))
    refusal = replace(api.in_words(Refused(Rule.NO_ROUTE, words)), status=404)
    body = api.refusal_body(refusal, seed)
    return _whole(404, body), replace(record, refusal=refusal)


def _failure(fault: Fail, api: Api, seed: str) -> Answer:
    headers = dict(fault.headers)
    if fault.retry_after is not None:
        headers["retry-after"] = fault.retry_after
    if fault.kind == "gateway_page":
        return _whole(502, _GATEWAY_PAGE, {**headers, "content-type": "text/html"})
    status, body = api.failure(fault.kind, seed)
    return _whole(status, body, headers)


def _reply(reply: Reply, payload: JsonObject, fault: Fault | None, api: Api, seed: str) -> Answer:
    given = reply.input_tokens
    size = len(str(payload)) // 4 + 1
    wire = Wire(payload=payload, seed=seed, input_tokens=size if given is None else given)
    streamed = payload.get("stream") is True
    body = api.events(reply, wire) if streamed else [api.whole(reply, wire)]
    error = api.error_event(fault.kind if isinstance(fault, StreamError) else "overloaded")
    plan = steps(body, fault, error)
    silent = isinstance(fault, Cut) and fault.after_bytes is None
    request_id = {"request-id": f"req_01{seed[:22]}"}
    if streamed:
        return Answer(status=200, headers={**_STREAM, **request_id}, steps=plan, silent=silent)
    cut = any(isinstance(step, Break) for step in plan)
    length = sum(len(step) for step in (body if cut else plan) if isinstance(step, bytes))
    headers = {**_JSON, "content-length": str(length), **request_id}
    return Answer(status=200, headers=headers, steps=plan, silent=silent)


def _whole(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
    known = {**_JSON, "content-length": str(len(body)), **(headers or {})}
    return Answer(status=status, headers=known, steps=[body])
