"""Whoever sends requests to a daemon as they are made in a test, true or not."""

import os
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpcore2
import msgspec

from daemon.daemons import CAPSULE, MOVE, Running, machine, running
from sojourn.agent import Machine
from sojourn.agent.links import identity_of, socket_of
from sojourn.peers.shapes import Refusal
from sojourn.peers.signing import Asked, ask_headers, digest, is_signed, read_answered

CHECK = f"/v1/moves/{MOVE}/check"
CONTENTS = f"/v1/moves/{MOVE}/contents?capsule={CAPSULE}"


@dataclass
class Answer:
    status: int
    code: str
    signed: bool


class Stranger:
    """Sends requests as they are made here, true or not."""

    def __init__(self, here: Running, me: Machine, pool: httpcore2.AsyncConnectionPool) -> None:
        self.here = here
        self.identity = identity_of(me)
        self.pool = pool

    def asked(self, method: str, target: str, body: bytes = b"") -> Asked:
        return Asked(
            method=method,
            target=target,
            key=b64encode(self.identity.public).decode(),
            to=identity_of(self.here.machine).machine,
            boot=self.here.begun.boot,
            nonce=os.urandom(16).hex(),
            body=digest(body),
        )

    async def say(
        self,
        asked: Asked,
        body: bytes = b"",
        *,
        headers: dict[str, str] | None = None,
        target: str | None = None,
        method: str | None = None,
    ) -> Answer:
        """Send it; `target` and `method` are what is really sent."""
        signed = ask_headers(asked, self.identity) if headers is None else headers
        response = await self.pool.request(
            method or asked.method,
            f"http://peer{target or asked.target}",
            headers=list({"host": "peer", **signed}.items()),
            content=body,
        )
        found = {name.decode().lower(): text.decode() for name, text in response.headers}
        answered = read_answered(asked, response.status, found)
        signed_well = answered is not None and is_signed(answered, found, self.identity)
        code = ""
        if response.status != 200:
            code = msgspec.json.decode(response.content, type=Refusal).error.code
        return Answer(response.status, code, signed_well)


@asynccontextmanager
async def stranger(tmp_path: Path) -> AsyncGenerator[Stranger]:
    """Over the unix socket of a daemon."""
    async with running(tmp_path / "a") as here:
        pool = httpcore2.AsyncConnectionPool(uds=socket_of(here.machine))
        async with pool:
            yield Stranger(here, machine(tmp_path / "b"), pool)


def request_text(other: Stranger, asked: Asked, *, length: int) -> bytes:
    """The head of a request as bytes."""
    headers = {"host": "peer", **ask_headers(asked, other.identity), "content-length": str(length)}
    lines = [f"{asked.method} {asked.target} HTTP/1.1"]
    lines += [f"{name}: {text}" for name, text in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()
