"""The OpenAPI document is what the daemon serves, and the daemon is what the document says."""

import json
import os
import re
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import httpcore2
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from daemon.daemons import Process, machine, process
from sojourn.agent.links import identity_of
from sojourn.daemon import openapi
from sojourn.daemon.paths import ENDPOINTS
from sojourn.peers.shapes import Refusal
from sojourn.peers.signing import STREAMED, Asked, ask_headers, digest, is_signed, read_answered
from sojourn.ports_link import Identity

if TYPE_CHECKING:
    import schemathesis


def test_the_shipped_document_is_up_to_date() -> None:
    assert openapi.main(["--check"]) == 0
    assert openapi.shipped().decode() == openapi.document()


def test_a_stale_document_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = tmp_path / "openapi.json"
    stale.write_text("{}\n")
    monkeypatch.setattr(openapi, "DOCUMENT", stale)
    assert openapi.main(["--check"]) == 1
    assert openapi.main([]) == 0
    assert openapi.main(["--check"]) == 0


def test_the_document_has_every_path_and_no_other() -> None:
    document = json.loads(openapi.shipped())
    listed = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert listed == {(one.method, one.path) for one in ENDPOINTS}
    names = re.findall(r'"#/components/schemas/(\w+)"', openapi.document())
    assert set(names) <= set(document["components"]["schemas"])


def gives(method: str, path: str) -> object:
    """What the endpoint answers with."""
    return next(one.gives for one in ENDPOINTS if (one.method, one.path) == (method, path))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_whatever_is_asked_is_answered_as_the_document_says(tmp_path: Path, mode: str) -> None:
    """Requests made from the document, sound and unsound; every answer is signed and fits."""
    import schemathesis

    schema = schemathesis.openapi.from_dict(json.loads(openapi.shipped()))
    wanted = schemathesis.GenerationMode[mode]
    me, statuses = identity_of(machine(tmp_path / "b")), Counter[int]()
    with (
        process(tmp_path / "a", "--no-work") as there,
        httpcore2.ConnectionPool(uds=there.said["socket"]) as pool,
    ):
        for found in schema.get_all_operations():
            operation = found.ok()

            @settings(
                max_examples=12,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=wanted))
            def answers(case: "schemathesis.Case") -> None:
                statuses[one_answer(case, pool, there, me)] += 1

            answers()
        assert there.end() == 0
    assert not [status for status in statuses if status >= 500]
    assert {200, 404, 422} <= set(statuses)


def one_answer(
    case: "schemathesis.Case", pool: httpcore2.ConnectionPool, there: Process, me: Identity
) -> int:
    """Sign the request of a case, send it, check the answer; its status."""
    import requests

    kept = {"method", "url", "params", "json", "data"}
    given_out = case.as_transport_kwargs(base_url="http://peer")
    made = requests.Request(**{key: given_out[key] for key in kept & set(given_out)}).prepare()
    body = made.body or b""
    data = body.encode() if isinstance(body, str) else body
    assert made.url is not None
    asked = Asked(
        method=case.method.upper(),
        target=made.url.removeprefix("http://peer"),
        key=b64encode(me.public).decode(),
        to=there.said["machine"],
        boot=there.said["boot"],
        nonce=os.urandom(16).hex(),
        body=STREAMED if case.operation.path.endswith("/contents") else digest(data),
    )
    response = pool.request(
        asked.method,
        httpcore2.URL(scheme=b"http", host=b"peer", port=None, target=asked.target.encode()),
        headers=list({"host": "peer", **ask_headers(asked, me)}.items()),
        content=data,
    )
    headers = {name.decode().lower(): text.decode() for name, text in response.headers}
    answered = read_answered(asked, response.status, headers)
    assert answered is not None
    assert is_signed(answered, headers, me)
    if response.status != 200:
        msgspec.json.decode(response.content, type=Refusal)
    elif gives(asked.method, case.operation.path) is not None:
        msgspec.json.decode(
            response.content,
            type=gives(asked.method, case.operation.path),
        )
    return response.status
