"""Digests of many open files: long ones by two threads, since hashing lets others run."""

import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from hashlib import sha256
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

CHUNK: Final = 1 << 20
"""Bytes read at once of files that are only hashed."""

LARGE: Final = 1 << 20
"""Bytes from which on a file is worth a thread."""

THREADS: Final = 2
WAITING: Final = 2 * THREADS
"""Long files that are open at once."""

_Key = TypeVar("_Key")


def digest_of(handle: int, size: int) -> str | None:
    """The sha256 of an open regular file, None when it cannot be read; `size` saves a read."""
    try:
        data = os.read(handle, min(size, CHUNK) + 1)
        digest = sha256(data)
        # As long as it is said to be: its end was met. Else somebody changes it meanwhile.
        whole = len(data) == size
        while not whole and (data := os.read(handle, CHUNK)):
            digest.update(data)
    except OSError:
        return None
    return digest.hexdigest()


def read_ahead(handle: int) -> None:
    """Let the disk begin with a file that is read soon, where the kernel can be told."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_WILLNEED)


class Digester(Generic[_Key]):
    """Hashes long files in threads; what was added comes back in any order, with its key."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._running: dict[Future[str | None], _Key] = {}
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._stopped = True
        if self._pool is not None:
            self._pool.shutdown()

    def takes(self, size: int) -> bool:
        """Whether a file of so many bytes is worth a thread."""
        return size >= LARGE

    def add(self, key: _Key, handle: int) -> Iterator[tuple[_Key, str | None]]:
        """Take an open file, which is closed here; give what is done when many wait."""
        self._pool = self._pool or ThreadPoolExecutor(THREADS)
        self._running[self._pool.submit(self._digest, handle)] = key
        return self._done(WAITING - 1)

    def rest(self) -> Iterator[tuple[_Key, str | None]]:
        """Give all that is left."""
        return self._done(0)

    def _done(self, most: int) -> Iterator[tuple[_Key, str | None]]:
        while len(self._running) > most:
            for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                yield self._running.pop(future), future.result()

    def _digest(self, handle: int) -> str | None:
        digest = sha256()
        try:
            while not self._stopped and (data := os.read(handle, CHUNK)):
                digest.update(data)
        except OSError:
            return None
        finally:
            os.close(handle)
        return digest.hexdigest()
