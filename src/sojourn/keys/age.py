"""Encrypting archives to age and SSH recipients, as the `age` program does.

The library is pyrage, which has no types of its own: what is used of it is said here once.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, cast

from sojourn.errors import FormatError, NotFoundError, UsageError

FILE_LIMIT: Final = 1 << 20
"""Bytes of a file of recipients or identities."""

Recipient = object
Identity = object


class _Reading(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Writing(Protocol):
    def write(self, data: bytes, /) -> int: ...

    def flush(self) -> None: ...


class _Recipients(Protocol):
    def from_str(self, text: str) -> Recipient: ...


class _Identities(Protocol):
    def from_str(self, text: str) -> Identity: ...

    def from_buffer(self, data: bytes) -> Identity: ...


class _Kind(Protocol):
    Recipient: _Recipients
    Identity: _Identities


class _Pyrage(Protocol):
    ssh: _Kind
    x25519: _Kind
    encrypt_io: Callable[[_Reading, _Writing, Sequence[Recipient]], None]
    decrypt_io: Callable[[_Reading, _Writing, Sequence[Identity]], None]


def recipients(given: Iterable[str]) -> list[Recipient]:
    """The recipients of texts: an age or SSH public key, or a file with one a line.

    Raises: UsageError `recipient_unknown`; NotFoundError `recipient_missing`.
    """
    found: list[Recipient] = []
    for text in given:
        lines = [text] if _is_key(text) else _lines(text, "recipient_missing")
        if not lines:
            raise UsageError(f"{text} holds no recipient", code="recipient_unknown")
        found += map(_recipient, lines)
    return found


def identities(files: Iterable[str]) -> list[Identity]:
    """The identities in files: age's own, or private SSH keys without a passphrase.

    Raises: UsageError `identity_unknown`; NotFoundError `identity_missing`.
    """
    found: list[Identity] = []
    for file in files:
        lines = _lines(file, "identity_missing")
        try:
            if any("PRIVATE KEY-----" in line for line in lines):
                text = "\n".join(lines) + "\n"
                found.append(_pyrage().ssh.Identity.from_buffer(text.encode()))
            else:
                found += [_pyrage().x25519.Identity.from_str(line) for line in lines]
        except Exception as failure:
            raise UsageError(
                f"{file} holds no identity that can be used: {failure}",
                code="identity_unknown",
                hint="Use age's own identity, or a private Ed25519 or RSA SSH key without a "
                "passphrase.",
            ) from failure
    return found


def encrypted(
    pieces: Iterable[bytes], to: Sequence[Recipient], write: Callable[[bytes], None]
) -> None:
    """Hand the encrypted form of all pieces to `write`, as it is made.

    Whatever `pieces` or `write` raises goes on to the caller.
    """
    source, sink = _Source(pieces), _Sink(write)
    try:
        _pyrage().encrypt_io(source, sink, to)
    except Exception:
        raise_first(source, sink)
        raise
    raise_first(source, sink)


def decrypted(
    pieces: Iterable[bytes], identities: Sequence[Identity], write: Callable[[bytes], None]
) -> None:
    """Hand what the pieces hold to `write`, each part only once it is known to be genuine.

    Raises: FormatError `decryption_failed`; whatever `pieces` or `write` raises.
    """
    source, sink = _Source(pieces), _Sink(write)
    try:
        _pyrage().decrypt_io(source, sink, identities)
    except Exception as failure:
        raise_first(source, sink)
        raise FormatError(
            f"the archive cannot be decrypted: {failure}",
            code="decryption_failed",
            state="Nothing was kept.",
            hint="Give --identity with the key of one of its recipients; if it is the right one, "
            "the archive was damaged.",
        ) from failure
    raise_first(source, sink)


class _Source:
    """Pieces as a file to read; a failure is kept, since the library would hide it."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)
        self._held = b""
        self.failure: BaseException | None = None

    def read(self, size: int = -1, /) -> bytes:
        try:
            while not self._held:
                self._held = next(self._pieces)
        except StopIteration:
            return b""
        except BaseException as failure:
            self.failure = failure
            raise
        size = len(self._held) if size < 0 else size
        piece, self._held = self._held[:size], self._held[size:]
        return piece


class _Sink:
    """A file to write that hands everything on; a failure is kept."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self.failure: BaseException | None = None

    def write(self, data: bytes, /) -> int:
        try:
            self._write(bytes(data))
        except BaseException as failure:
            self.failure = failure
            raise
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""


def raise_first(source: _Source, sink: _Sink) -> None:
    """The failure of either side, if there was one."""
    failure = source.failure or sink.failure
    if failure is not None:
        raise failure


def _is_key(text: str) -> bool:
    return text.startswith(("age1", "ssh-")) and not os.path.exists(text)


def _recipient(text: str) -> Recipient:
    kind = _pyrage().ssh if text.startswith("ssh-") else _pyrage().x25519
    try:
        return kind.Recipient.from_str(text)
    except Exception as failure:
        raise UsageError(
            f"{text[:60]} is no recipient: {failure}",
            code="recipient_unknown",
            hint="Give an age public key (age1...), an Ed25519 or RSA SSH public key, or a file "
            "of them.",
        ) from failure


def _lines(file: str, code: str) -> list[str]:
    """The lines of a file that are not empty and no comment."""
    try:
        with open(file, "rb") as opened:
            text = opened.read(FILE_LIMIT).decode("utf-8", "replace")
    except OSError as failure:
        raise NotFoundError(
            f"cannot read {file}: {failure.strerror}", code=code, state="Nothing was done."
        ) from failure
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _pyrage() -> _Pyrage:
    # It comes without types: `_Pyrage` says what is used of it.
    import pyrage  # pyright: ignore[reportMissingTypeStubs]

    return cast(_Pyrage, cast(object, pyrage))
