"""The world outside: a service that counts, and writes down who called; it refuses nothing."""

import asyncio
import json
import threading
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One effect, in the order in which they happened.

    `host` is by the cable that it came in by; `epoch` and `state` are what that machine's ledger
    said to the tool.
    """

    number: int
    host: str
    tool: str
    key: str
    attempt: int
    epoch: int
    state: str


@dataclass
class Counter:
    """Listens on one address a host, in a thread of its own."""

    addresses: dict[str, str]
    answer_after: float = 0.1
    calls: list[Call] = field(default_factory=list[Call])
    enough: bool = False
    ports: dict[str, int] = field(default_factory=dict[str, int])
    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None
    _ready: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="counter", daemon=True)
        self._thread.start()
        if not self._ready.wait(30):
            raise RuntimeError("the counter does not listen")

    def end(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    def _run(self) -> None:
        loop = self._loop = asyncio.new_event_loop()
        servers = [loop.run_until_complete(self._listen(host)) for host in self.addresses]
        self._ready.set()
        loop.run_forever()
        for server in servers:
            server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    async def _listen(self, host: str) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self._serve(host, reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, self.addresses[host], 0)
        self.ports[host] = server.sockets[0].getsockname()[1]
        return server

    async def _serve(
        self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length:")[2].split()[0])
        said = json.loads(await reader.readexactly(size))
        self.calls.append(Call(number=len(self.calls), host=host, **said))
        number = len(self.calls)
        await asyncio.sleep(self.answer_after)
        answer = f"number {number}, {'enough' if self.enough else 'go on'}".encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
        await writer.drain()
