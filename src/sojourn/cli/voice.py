"""What a command says: data to stdout, talk and progress to stderr, each safe to show.

Text reaches a stream through `Channel.put` alone, which cleans every piece (see `cli/clean.py`);
colours are added after that, and only for a terminal.
"""

import os
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from sojourn.cli.clean import clean, escaped_json
from sojourn.cli.settings import Settings

if TYPE_CHECKING:
    from sojourn.cli.shapes import Answer

STYLES: Final = {
    "plain": "",
    "bold": "1",
    "dim": "2",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "name": "36",
    "alarm": "1;33",
}
"""Names of styles and their codes; sixteen colours, so they follow the person's own theme."""

ERASE_LINE: Final = "\r\x1b[K"


class Painted(NamedTuple):
    """A piece of text in a style; it is cleaned like any other."""

    text: str
    style: str


class Channel:
    """One stream of text; after a failure nothing more is written to it."""

    def __init__(self, stream: TextIO | None, settings: Settings) -> None:
        self._stream = stream
        self.terminal = stream is not None and stream.isatty()
        self.colour = self.terminal and settings.colour and os.environ.get("TERM") != "dumb"
        self.tolerant = False
        self.fresh = True
        self.failure: OSError | None = None

    def put(self, *pieces: str | Painted) -> None:
        """Write the pieces, without a line end.

        Raises: OSError when it cannot be written; BrokenPipeError is one. A `tolerant` channel
        keeps that as its `failure` instead, and writes no more.
        """
        self._write("".join(map(self._shown, pieces)))

    def line(self, *pieces: str | Painted) -> None:
        """Write exactly one line: a line feed within it is shown as `\\n`."""
        self._write("".join(map(self._shown, pieces)).replace("\n", "\\n") + "\n")

    def raw(self, text: str) -> None:
        """Write text that is data for a program, not to be shown: as it is."""
        self._write(text)

    def raw_bytes(self, data: bytes) -> None:
        """Write exactly these bytes."""
        if self._stream is not None:
            self._write("")
            self._guarded(data)

    def erase(self) -> None:
        """Forget what stands on the terminal's current line."""
        self._write(ERASE_LINE)
        self.fresh = True

    def _shown(self, piece: str | Painted) -> str:
        if isinstance(piece, str):
            return clean(piece)
        code = STYLES[piece.style]
        text = clean(piece.text)
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        if text:
            self.fresh = text.endswith("\n")
        self._guarded(text)

    def _guarded(self, data: str | bytes) -> None:
        if self._stream is None:
            return
        try:
            if isinstance(data, bytes):
                self._stream.buffer.write(data)
            else:
                self._stream.write(data)
            self._stream.flush()
        except OSError as failure:
            silence(self._stream)
            self._stream = None
            self.failure = failure
            if not self.tolerant:
                raise


def silence(stream: TextIO | None) -> None:
    """Nothing more can go wrong with a stream that nobody reads, not even at exit."""
    if stream is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Voice:
    """Both channels of a command, and how much it should say."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.out = Channel(sys.stdout, settings)
        self.err = Channel(sys.stderr, settings)
        self.both = self.out.terminal and self.err.terminal

    def data(self, *pieces: str | Painted) -> None:
        """One line of what was asked for."""
        self.out.line(*pieces)

    def talk(self, *pieces: str | Painted) -> None:
        """One line for people, not with -q."""
        if not self.settings.quiet:
            self.before_talk()
            self.err.line(*pieces)

    def detail(self, *pieces: str | Painted) -> None:
        """One line for people who said -v."""
        if self.settings.verbose:
            self.talk(*pieces)

    def answer(self, answer: "Answer") -> None:
        """One JSON object on one line."""
        self.out.raw(as_json(answer) + "\n")

    def check(self) -> None:
        """After a run that nothing must end half-way: from here on a failure to write counts.

        Raises: OSError when data was lost, unless nobody read it any more.
        """
        self.out.tolerant = False
        failure = self.out.failure
        if failure is not None and not isinstance(failure, BrokenPipeError):
            raise failure

    def before_talk(self) -> None:
        """Talk begins on a line of its own, on a terminal that shows data too."""
        if self.both and not self.out.fresh:
            self.out.line()
        if self.err.terminal and not self.err.fresh:
            self.err.line()

    def before_data(self) -> None:
        """Data begins on a line of its own, on a terminal that shows talk too."""
        if self.both and not self.err.fresh:
            self.err.line()


def as_json(answer: "Answer") -> str:
    """The answer's JSON text: no line feed in it, nothing in it acts on a terminal."""
    import json

    import msgspec

    plain = msgspec.to_builtins(answer)
    return escaped_json(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
