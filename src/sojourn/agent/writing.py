"""Writing an archive: signed, compressed, encrypted, and read back before it has its name.

docs/format.md#archive.
"""

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256

from sojourn.drive import export
from sojourn.drive.export import Purpose
from sojourn.errors import NotFoundError
from sojourn.format import archive, signature
from sojourn.format.manifest import Manifest
from sojourn.store import zstd
from sojourn.store.archive_file import (
    Wrapping,
    Write,
    check_same,
    check_target,
    digest_of,
    not_written,
    open_archive,
    sweep_half_made,
    write_archive,
)
from sojourn.store.files import FolderFiles

Progress = Callable[[int, int], None]
"""Told how many bytes of how many are done; of 0 when that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How an archive is to be made; `sign` is a key's file, `encrypt_to` are recipients.

    `accept` are ids of likely secrets that may leave.
    """

    file: str
    purpose: Purpose = "backup"
    sign: str | None = None
    encrypt_to: Sequence[str] = ()
    accept: Sequence[str] = ()
    without_workspace: bool = False
    compress: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An archive that was written and read back; `new` when the capsule was sealed for it.

    `redacted` counts what was redacted since the seal before: archives of earlier seals hold it.
    """

    file: str
    size: int
    members: int
    manifest: Manifest
    digest: str
    new: bool
    signer: str | None
    wrapped: tuple[Wrapping, ...]
    redacted: int = 0


def prepared(wanted: Wanted) -> list[object]:
    """The recipients, when nothing that is known beforehand keeps the archive from being made.

    Raises: UsageError `exists` and those of `sojourn.keys.age`; NotFoundError `key_missing`.
    """
    sweep_half_made(wanted.file)
    check_target(wanted.file, force=wanted.force)
    recipients: list[object] = []
    if wanted.encrypt_to:
        from sojourn.keys.age import recipients as read_recipients

        recipients = read_recipients(wanted.encrypt_to)
    if wanted.sign is not None and not os.path.isfile(wanted.sign):
        raise NotFoundError(
            f"there is no key in {wanted.sign}", code="key_missing", state="Nothing was written."
        )
    return recipients


def write_sealed(
    wanted: Wanted,
    made: export.Seal,
    files: FolderFiles,
    *,
    recipients: Sequence[object],
    progress: Progress | None,
) -> Exported:
    """Write the sealed capsule whose bytes are in `files`.

    Raises: FormatError when the folder holds other bytes than were sealed; StorageError.
    """
    signed = None if wanted.sign is None else sign(made.data, wanted.sign)
    members = export.members(made, files, signature=signed)
    sizes = sorted(export.sizes(made, signature=signed).items())
    digests = export.digests(made, signature=signed)
    with interrupted_at_once():
        write(wanted, members, sizes, digests, recipients, progress)
    return Exported(
        file=wanted.file,
        size=os.stat(wanted.file).st_size,
        members=len(sizes),
        manifest=made.manifest,
        digest=made.digest,
        new=made.new,
        signer=None if signed is None else signature.load(signed).fingerprint,
        wrapped=_wrapping(wanted),
        redacted=made.redacted,
    )


def write(
    wanted: Wanted,
    members: Iterable[export.Content],
    sizes: Sequence[tuple[str, int]],
    digests: dict[str, str],
    recipients: Sequence[object],
    progress: Progress | None,
) -> None:
    """The file, written and read back."""
    total = archive.length(sizes)
    written = sha256()

    def fill(write: Write) -> None:
        def put(data: bytes) -> None:
            written.update(data)
            write(data)

        pieces = watched(_joined(archive.write(members)), total, progress)
        if wanted.compress:
            pieces = zstd.compressed(pieces, size=total)
        if recipients:
            from sojourn.keys.age import encrypted

            encrypted(pieces, recipients, put)
            return
        for piece in pieces:
            put(piece)

    def read_back(path: str) -> None:
        if not recipients:
            with open_archive(path, decrypt=None) as opened:
                check_same(opened.pieces(), digests)
        elif digest_of(path) != written.hexdigest():
            # Nobody here can decrypt it: that it holds what went in is age's word.
            raise not_written()

    write_archive(wanted.file, fill, read_back, force=wanted.force)


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of about 1 MiB: small ones cost a call each."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= 1 << 20:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def watched(pieces: Iterable[bytes], total: int, progress: Progress | None) -> Iterator[bytes]:
    """The same pieces, and `progress` told of each."""
    done = 0
    for piece in pieces:
        yield piece
        done += len(piece)
        if progress is not None:
            progress(done, total)


def sign(data: bytes, key: str) -> bytes:
    """The signature of a manifest's bytes with the SSH key in a file."""
    from sojourn.keys import ssh

    return ssh.sign(data, key=key)


def _wrapping(wanted: Wanted) -> tuple[Wrapping, ...]:
    made: tuple[Wrapping, ...] = ("zstd",) if wanted.compress else ()
    return ("age", *made) if wanted.encrypt_to else made


@contextmanager
def interrupted_at_once() -> Generator[None]:
    """Ctrl-C ends what runs inside at once, although the event loop does not get a turn."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
