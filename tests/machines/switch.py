"""A network switch in this process: TAP devices as its cables, with delay, loss and cut links.

The kernel's own netem is not in every kernel. This one does the same, and its dice are seeded.
"""

import fcntl
import heapq
import itertools
import os
import select
import struct
import threading
import time
from dataclasses import dataclass, field
from random import Random

TUNSETIFF = 0x400454CA
TAP_WITHOUT_HEADER = 0x1002
FRAME = 65_600


def tap(name: str) -> int:
    """The end in this process of a new network interface of that name."""
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH", name.encode(), TAP_WITHOUT_HEADER))
    return handle


@dataclass
class Switch:
    """Frames go on after `delay` plus up to `jitter` seconds, unless they are lost.

    Whoever is in `cut` neither sends nor gets any; nobody is told.
    """

    dice: Random
    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    cut: set[str] = field(default_factory=set[str])
    passed: int = 0
    lost: int = 0
    _cables: dict[str, int] = field(default_factory=dict[str, int])
    _known: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _under_way: list[tuple[float, int, str, bytes]] = field(
        default_factory=list[tuple[float, int, str, bytes]]
    )
    _number: "itertools.count[int]" = field(default_factory=itertools.count)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def plug(self, host: str, handle: int) -> None:
        """The cable of a host, before `start`."""
        self._cables[host] = handle

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="switch", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Also closes the cables, which removes their interfaces."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)
        for handle in self._cables.values():
            os.close(handle)

    def _run(self) -> None:
        hosts = {handle: host for host, handle in self._cables.items()}
        while not self._stop.is_set():
            wait = 0.05
            if self._under_way:
                wait = min(wait, max(0.0, self._under_way[0][0] - time.monotonic()))
            for handle in select.select(list(hosts), [], [], wait)[0]:
                self._take(hosts[handle], handle)
            self._deliver()

    def _take(self, host: str, handle: int) -> None:
        for _ in range(64):
            try:
                frame = os.read(handle, FRAME)
            except OSError:
                return
            self._known[frame[6:12]] = host
            to = self._known.get(frame[:6])
            for other in self._cables if to is None else (to,):
                if other != host:
                    self._send(host, other, frame)

    def _send(self, host: str, other: str, frame: bytes) -> None:
        if {host, other} & self.cut or self.dice.random() < self.loss:
            self.lost += 1
            return
        due = time.monotonic() + self.delay + self.jitter * self.dice.random()
        heapq.heappush(self._under_way, (due, next(self._number), other, frame))

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._under_way and self._under_way[0][0] <= now:
            _, _, to, frame = heapq.heappop(self._under_way)
            if to in self.cut:
                self.lost += 1
                continue
            try:
                os.write(self._cables[to], frame)
                self.passed += 1
            except OSError:
                self.lost += 1
