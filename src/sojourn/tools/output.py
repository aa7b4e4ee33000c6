"""What a tool says, brought to a size that a prompt can bear; the only place that shortens."""

from typing import Final

from sojourn.format.event import DocumentChange, FileDigest
from sojourn.format.parts import TextPart
from sojourn.ports import ToolResult

TO_MODEL: Final = 16 * 1024
"""Bytes of UTF-8 that a model gets of one result; more would also become a blob."""

FULL: Final = 8 * 1024 * 1024
"""Bytes of one output that are kept in all."""

NOTHING: Final = "(nothing)"
_NOTE_ROOM: Final = 100


def text_result(
    text: str,
    *,
    failed: bool = False,
    code: str = "",
    full: bytes | None = None,
    documents: tuple[DocumentChange, ...] = (),
    files: tuple[FileDigest, ...] = (),
    memory: str | None = None,
    synced: bool = True,
) -> ToolResult:
    """A result of one text; where that must be shortened, `full` keeps all of it.

    `full` is given by a tool that has shortened by itself. Lone surrogates become U+FFFD.
    """
    sound = without_surrogates(text) or NOTHING
    short = shortened(sound)
    if full is None and short is not sound:
        full = sound.encode()
    return ToolResult(
        parts=(TextPart(text=short),),
        failed=failed,
        code=code,
        full=full,
        documents=documents,
        files=files,
        memory=memory,
        synced=synced,
    )


def shortened(text: str, limit: int = TO_MODEL) -> str:
    """The text, or its beginning and end in at most `limit` bytes of UTF-8, and how much is gone.

    Cut between code points.
    """
    if len(text) * 4 <= limit:
        return text
    data = text.encode()
    if len(data) <= limit:
        return text
    half = (limit - _NOTE_ROOM) // 2
    head = data[:half].decode(errors="ignore")
    tail = data[-half:].decode(errors="ignore")
    gone = len(text) - len(head) - len(tail)
    return f"{head}\n[... {gone:,} characters are left out here ...]\n{tail}"


def without_surrogates(text: str) -> str:
    """The text with pairs of surrogates joined, and U+FFFD for each lone one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class Output:
    """What a program writes, in bounded memory: its first and last bytes, and how many it were."""

    def __init__(self, limit: int = FULL) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Cut at twice the size, so that many small pieces are not moved one by one.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def dropped(self) -> int:
        """Bytes that are kept nowhere."""
        return self.total - len(self._head) - min(len(self._tail), self._half)

    def kept(self) -> bytes:
        """All that is kept; a line says how many bytes are missing between, if any are."""
        tail = bytes(self._tail[-self._half :])
        if not self.dropped:
            return bytes(self._head) + tail
        note = f"\n[... {self.dropped:,} bytes were too many to keep ...]\n"
        return bytes(self._head) + note.encode() + tail
