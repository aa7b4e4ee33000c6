"""What the operating system knows: time, randomness, this boot, this host, other processes."""

import os
import time
from hashlib import sha256
from typing import Final

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_HOST_IDS: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_START_FIELD: Final = 19
"""Place of the start time among the fields of /proc/PID/stat that follow the command's name."""


class OsClock:
    """The `WallClock` port."""

    def __init__(self) -> None:
        self._second = (-1, "")

    def now(self) -> str:
        """RFC 3339, UTC, milliseconds, ending in Z."""
        second, rest = divmod(time.time_ns() // 1_000_000, 1000)
        known, text = self._second
        if second != known:
            # Asked for with each append: all but the milliseconds is made once a second.
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = (second, text)
        return f"{text}.{rest:03d}Z"

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def wait(self, seconds: float) -> None:
        """Return after that long."""
        import asyncio

        await asyncio.sleep(seconds)


class OsRandomness:
    """The `Randomness` port."""

    def token(self, size: int) -> bytes:
        """`size` random bytes."""
        return os.urandom(size)


def boot_id() -> str:
    """Another value after each boot of this host, empty where none is to be had."""
    return _line(_BOOT_ID)


def host_digest() -> str | None:
    """A digest that tells this host's installation from others, None where it has no id."""
    for path in _HOST_IDS:
        text = _line(path)
        if text:
            return sha256(f"sojourn.host/1 {text}".encode()).hexdigest()
    return None


def process_start(pid: int) -> str:
    """When a process started, in the kernel's ticks since boot; empty when there is none.

    With the pid it names one process, since pids come back. Where the kernel does not say it, the
    text is `alive`.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except OSError:
        return "" if os.path.isdir("/proc/self") else _alive(pid)
    fields = data[data.rfind(b")") + 1 :].split()
    if fields[:1] in ([b"Z"], [b"X"]):
        return ""
    return fields[_START_FIELD].decode() if len(fields) > _START_FIELD else ""


def _alive(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "alive"
    return "alive"


def _line(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""
