"""Requests that must not be done: unsigned, changed, replayed, foreign, stale, too large, too slow,
cut."""

import asyncio
import os
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpcore2
import msgspec
import pytest

from daemon.daemons import CAPSULE, MOVE, acquaint, check, machine, piece, running
from daemon.strangers import CHECK, CONTENTS, Answer, Stranger, stranger
from sojourn.agent.links import certificate_of, identity_of
from sojourn.daemon import door
from sojourn.daemon.door import Door
from sojourn.daemon.origin import Origin
from sojourn.daemon.refusal import Refused
from sojourn.peers.connect import Connector
from sojourn.peers.frames import Packer
from sojourn.peers.limits import SMALL, TEXT
from sojourn.peers.places import read_way
from sojourn.peers.shapes import Said
from sojourn.peers.signing import (
    ANYONE,
    STREAMED,
    Asked,
    ask_headers,
    digest,
)


def test_a_true_request_is_done(tmp_path: Path) -> None:
    """What the others differ from."""

    async def both() -> None:
        async with stranger(tmp_path) as other:
            body = msgspec.json.encode(check())
            asked = other.asked("POST", CHECK, body)
            assert await other.say(asked, body) == Answer(200, "", True)
            assert len(other.here.fake.said) == 1

    asyncio.run(both())


Wrong = Callable[[Stranger, Asked], tuple[Asked, dict[str, str] | None]]


def unsigned(_other: Stranger, asked: Asked) -> tuple[Asked, dict[str, str] | None]:
    return asked, {}


def by_another_key(other: Stranger, asked: Asked) -> tuple[Asked, dict[str, str] | None]:
    """Signed by one key, in the name of another."""
    key = b64encode(identity_of(other.here.machine).public).decode()
    return asked, ask_headers(replace(asked, key=key), other.identity)


def of_another_body(_other: Stranger, asked: Asked) -> tuple[Asked, dict[str, str] | None]:
    return replace(asked, body=digest(b"other")), None


def for_another_machine(_other: Stranger, asked: Asked) -> tuple[Asked, dict[str, str] | None]:
    return replace(asked, to="e" * 64), None


def for_anybody(_other: Stranger, asked: Asked) -> tuple[Asked, dict[str, str] | None]:
    return replace(asked, to=ANYONE, boot=ANYONE), None


def of_an_earlier_start(_other: Stranger, asked: Asked) -> tuple[Asked, dict[str, str] | None]:
    return replace(asked, boot="0" * 32), None


def malformed_nonce(_other: Stranger, asked: Asked) -> tuple[Asked, dict[str, str] | None]:
    return replace(asked, nonce="x"), None


@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        (unsigned, 401, "unsigned"),
        (malformed_nonce, 401, "unsigned"),
        (by_another_key, 401, "signature_wrong"),
        (of_another_body, 401, "signature_wrong"),
        (for_another_machine, 421, "wrong_machine"),
        (for_anybody, 421, "wrong_machine"),
        (of_an_earlier_start, 409, "stale_boot"),
    ],
)
def test_a_request_that_is_not_for_here_by_who_it_says_is_not_done(
    tmp_path: Path, wrong: Wrong, status: int, code: str
) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            body = msgspec.json.encode(check())
            asked, headers = wrong(other, other.asked("POST", CHECK, body))
            answer = await other.say(asked, body, headers=headers)
            assert (answer.status, answer.code) == (status, code)
            assert other.here.fake.said == []

    asyncio.run(both())


def test_a_signature_holds_for_one_path_and_one_method(tmp_path: Path) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            asked = other.asked("GET", "/v1/capsules")
            log = f"/v1/capsules/{CAPSULE}/log?start=0"
            assert (await other.say(asked, target=log)).code == "signature_wrong"
            asked = other.asked("GET", log)
            longer = await other.say(asked, target=f"{log}&follow=1")
            assert longer.code == "signature_wrong"
            asked = other.asked("POST", "/v1/pairing")
            assert (await other.say(asked, method="DELETE")).code == "signature_wrong"

    asyncio.run(both())


def test_a_request_is_done_once(tmp_path: Path) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            body = msgspec.json.encode(check())
            asked = other.asked("POST", CHECK, body)
            assert (await other.say(asked, body)).status == 200
            assert await other.say(asked, body) == Answer(409, "replayed", True)
            assert len(other.here.fake.said) == 1

    asyncio.run(both())


def test_only_so_many_requests_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "NONCES", 3)
    identity = identity_of(machine(tmp_path / "a"))
    from sojourn.agent.links import book_of

    kept = Door(identity=identity, boot="0" * 32, book=book_of(machine(tmp_path / "a")))
    asked = Asked(
        method="GET",
        target="/",
        key=b64encode(identity.public).decode(),
        to=identity.machine,
        boot="0" * 32,
        nonce="",
        body=digest(b""),
    )
    for number in range(10):
        one = replace(asked, nonce=f"{number:032x}")
        kept.admit(
            one,
            ask_headers(one, identity),
            Origin(near=True),
            need="look",
            body=digest(b""),
        )
    assert len(kept._seen) == 3


def test_another_account_is_refused_at_the_socket(tmp_path: Path) -> None:
    from sojourn.agent.links import book_of

    here = machine(tmp_path / "a")
    identity = identity_of(here)
    kept = Door(identity=identity, boot="0" * 32, book=book_of(here))
    asked = Asked(
        method="GET",
        target="/",
        key=b64encode(identity.public).decode(),
        to=identity.machine,
        boot="0" * 32,
        nonce="1" * 32,
        body=digest(b""),
    )
    with pytest.raises(Refused) as caught:
        kept.admit(
            asked,
            ask_headers(asked, identity),
            Origin(near=True, uid=os.getuid() + 1),
            need="anyone",
            body=digest(b""),
        )
    assert caught.value.fault.code == "not_allowed"


def test_a_body_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            body = b" " * (SMALL + 1)
            asked = other.asked("POST", CHECK, body)
            assert await other.say(asked, body) == Answer(413, "too_large", True)
            said = msgspec.json.encode(Said(request="1", text="x" * TEXT))
            asked = other.asked("POST", f"/v1/capsules/{CAPSULE}/messages", said)
            assert (await other.say(asked, said)).code == "too_large"

    asyncio.run(both())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"message":"abort"}',
        b"\xff\xfe",
        msgspec.json.encode(check(move="1" * 32)),
    ],
)
def test_what_is_no_message_of_this_move_is_refused_by_name(tmp_path: Path, body: bytes) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            asked = other.asked("POST", CHECK, body)
            assert await other.say(asked, body) == Answer(422, "malformed", True)
            assert other.here.fake.said == []

    asyncio.run(both())


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/"),
        ("GET", "/v1/other"),
        ("PUT", CHECK),
        ("GET", CHECK),
        ("POST", f"/v1/moves/{MOVE}/claim"),
        ("GET", f"/v1/capsules/{CAPSULE}/../log"),
    ],
)
def test_a_path_that_is_not_there_is_said_so_and_signed(
    tmp_path: Path, method: str, target: str
) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            answer = await other.say(other.asked(method, target))
            assert answer.status in (404, 405)
            assert (answer.code, answer.signed) == ("no_such_path", True)

    asyncio.run(both())


def test_bad_frames_are_refused_and_what_came_before_is_kept(tmp_path: Path) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            body = Packer(compress=False).frames(piece(b"whole")) + b"rubbish" * 20
            asked = replace(other.asked("POST", CONTENTS), body=STREAMED)
            assert await other.say(asked, body) == Answer(422, "bad_frames", True)
            assert other.here.fake.contents == {piece(b"whole").digest: b"whole"}

    asyncio.run(both())


def test_contents_are_never_taken_unsigned_or_for_another_move(tmp_path: Path) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            body = Packer(compress=False).frames(piece(b"whole"))
            asked = replace(other.asked("POST", CONTENTS), body=STREAMED)
            assert (await other.say(asked, body, headers={})).code == "unsigned"
            signed = replace(asked, body=digest(body))
            assert (await other.say(signed, body)).code == "signature_wrong"
            foreign = replace(asked, target=CONTENTS.replace(MOVE, "9" * 32), nonce="1" * 32)
            assert (await other.say(foreign, body)).code == "not_wanted"
            nameless = replace(asked, target=CONTENTS.partition("?")[0], nonce="2" * 32)
            assert (await other.say(nameless, body)).code == "malformed"
            assert other.here.fake.contents == {}

    asyncio.run(both())


def test_only_this_machine_opens_itself_for_a_pairing(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen="127.0.0.1:0") as here:
            acquaint(here.machine, other, name="other")
            known = acquaint(other, here.machine, name="there")
            way = read_way(here.far)
            assert way is not None
            connector = Connector(way, pin=known.pin, own=certificate_of(other))
            async with httpcore2.AsyncConnectionPool(network_backend=connector) as pool:
                far = Stranger(here, other, pool)
                for method, target in (("GET", "/v1/pairing"), ("DELETE", "/v1/pairing")):
                    answer = await far.say(far.asked(method, target))
                    assert (answer.status, answer.code) == (403, "not_allowed")

    asyncio.run(both())


def test_who_was_never_paired_may_only_ask_who_is_there_and_to_be_paired(tmp_path: Path) -> None:
    async def both() -> None:
        async with running(tmp_path / "a", listen="127.0.0.1:0") as here:
            way = read_way(here.far)
            assert way is not None
            async with httpcore2.AsyncConnectionPool(network_backend=Connector(way)) as pool:
                far = Stranger(here, machine(tmp_path / "b"), pool)
                assert (await far.say(far.asked("GET", "/v1/hello"))).status == 200
                offer = await far.say(far.asked("POST", "/v1/pairings", b"{}"), b"{}")
                assert offer.code == "malformed"
                body = msgspec.json.encode(check())
                for asked, sent in (
                    (far.asked("GET", "/v1/capsules"), b""),
                    (far.asked("POST", CHECK, body), body),
                    (replace(far.asked("POST", CONTENTS), body=STREAMED), b""),
                ):
                    assert (await far.say(asked, sent)).code == "not_paired"
                assert here.fake.said == []

    asyncio.run(both())


def test_a_paired_machine_that_does_not_show_its_certificate_is_not_let_in(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen="127.0.0.1:0") as here:
            acquaint(here.machine, other, name="other")
            way = read_way(here.far)
            assert way is not None
            async with httpcore2.AsyncConnectionPool(network_backend=Connector(way)) as pool:
                far = Stranger(here, other, pool)
                assert (await far.say(far.asked("GET", "/v1/capsules"))).code == "not_paired"

    asyncio.run(both())
