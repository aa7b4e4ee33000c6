"""A strict server as a process: `python -m sojourn.testing.strict --api anthropic --replies FILE`.

Prints its URL as one line, then serves until it gets SIGTERM or SIGINT, or until its standard input
ends when `--until-eof` is given.
"""

import argparse
import asyncio
import signal
import sys
import threading
from pathlib import Path

from sojourn.errors import UsageError
from sojourn.testing.strict.openai_chat.hosts import HOSTS
from sojourn.testing.strict.script import read_faults, read_replies
from sojourn.testing.strict.server import StrictServer


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sojourn.testing.strict", description=__doc__)
    parser.add_argument("--api", choices=("anthropic", "openai", "both"), default="both")
    parser.add_argument("--host", choices=tuple(HOSTS), default="openai", help="rules for openai")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--replies", type=Path, required=True, help="JSON array of replies")
    parser.add_argument("--faults", type=Path, help="JSON object: number of request to fault")
    parser.add_argument("--log", type=Path, help="gets one JSON line a request")
    parser.add_argument("--payloads", action="store_true", help="log the bodies too")
    parser.add_argument("--until-eof", action="store_true", help="stop when standard input ends")
    return parser


async def _serve(server: StrictServer, *, until_eof: bool) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        if until_eof:
            _watch_input(loop, ended)
        await ended.wait()


def _watch_input(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    def wait() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to stop; 2 when a file cannot be used."""
    options = _parser().parse_args(arguments)
    try:
        server = StrictServer(
            replies=read_replies(options.replies),
            faults=read_faults(options.faults) if options.faults else None,
            api=options.api,
            host=options.host,
            log=options.log,
            with_payloads=options.payloads,
            port=options.port,
        )
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit
    asyncio.run(_serve(server, until_eof=options.until_eof))
    return 0


if __name__ == "__main__":
    sys.exit(main())
