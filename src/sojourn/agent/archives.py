"""Capsules as files to carry: export, sign and verify archives (docs/format.md#archive)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from sojourn.agent.aftermath import Target, of_export, telling
from sojourn.agent.machine import Machine
from sojourn.agent.places import Place
from sojourn.agent.trust import refuse_secrets
from sojourn.agent.writing import (
    Exported,
    Progress,
    Wanted,
    interrupted_at_once,
    prepared,
    sign,
    write,
    write_sealed,
)
from sojourn.drive import export
from sojourn.drive.observe import Observer, Unwatched
from sojourn.drive.opening import hold_capsule
from sojourn.errors import FormatError
from sojourn.format import layout, manifest, signature
from sojourn.format.failures import Finding
from sojourn.format.manifest import Manifest
from sojourn.format.signature import Signed
from sojourn.format.verify import CapsuleFiles, verify
from sojourn.store.archive_file import (
    ArchiveFiles,
    Decrypt,
    Wrapping,
    Write,
    open_archive,
)
from sojourn.store.files import FolderFiles


class _Bytes(Protocol):
    def read(self, path: str, limit: int) -> bytes | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a verification of an archive found; `refused` is the signature's or archive's failure.

    `manifest` is None while it cannot be read, `signed` when there is no good signature.
    """

    findings: tuple[Finding, ...]
    refused: FormatError | None
    manifest: Manifest | None
    digest: str
    signed: Signed | None
    log_bytes: int
    blobs: int
    wrapped: tuple[Wrapping, ...] = ()


async def export_capsule(
    machine: Machine,
    place: Place,
    wanted: Wanted,
    *,
    observer: Observer | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Seal the capsule and write it as one file, which is read back before it has its name.

    Raises: HeldElsewhereError; FormatError; UsageError `exists`; NotFoundError; StorageError.
    """
    recipients = prepared(wanted)
    observer = observer or Unwatched()
    target = Target(wanted.file)
    with telling(lambda: of_export(target)):
        async with hold_capsule(machine.ports, place.folder, observer=observer) as hold:
            files = FolderFiles(place.folder)
            made = await export.seal_capsule(
                hold,
                files,
                purpose=wanted.purpose,
                without_workspace=wanted.without_workspace,
                check=lambda blobs: refuse_secrets(
                    place.folder, blobs, accepted=wanted.accept, note=observer.note
                ),
            )
            written = write_sealed(wanted, made, files, recipients=recipients, progress=progress)
            export.remember(hold, made, signer=written.signer)
    return written


def verify_archive(
    file: str, *, identities: Sequence[str] = (), allowed_signers: str | None = None
) -> Checked:
    """Check every byte of the archive in a file, and its signature; nothing is kept.

    With `allowed_signers` an archive that none of them signed is refused. Raises: NotFoundError,
    UsageError, LimitError; FormatError only when it cannot be decrypted.
    """
    with open_archive(file, decrypt=decrypting(identities)) as opened:
        try:
            files = ArchiveFiles(opened.plain())
        except FormatError as error:
            if error.code == "decryption_failed":
                raise
            return _unreadable(error, opened.wrapped)
        return check(files, allowed_signers=allowed_signers, wrapped=opened.wrapped)


def check(
    files: CapsuleFiles,
    *,
    allowed_signers: str | None,
    wrapped: tuple[Wrapping, ...] = (),
) -> Checked:
    """What is wrong with a sealed capsule and its signature, wherever its bytes are."""
    findings = tuple(verify(files))
    data = files.read(layout.MANIFEST, layout.MAX_MANIFEST) or b""
    refused: FormatError | None = None
    found: Manifest | None = None
    signed: Signed | None = None
    try:
        found = manifest.load(data)
        if found.seal is None:
            refused = _live()
        else:
            signed = check_signature(files, data, allowed_signers=allowed_signers)
    except FormatError as error:
        refused = error if found is not None else None
    return Checked(
        findings=findings,
        refused=refused,
        manifest=found,
        digest=sha256(data).hexdigest(),
        signed=signed,
        log_bytes=files.size(layout.TIMELINE) or 0,
        blobs=len(tuple(files.blobs())),
        wrapped=wrapped,
    )


def check_folder(folder: str, *, allowed_signers: str | None) -> Checked:
    """The seal and signature of a capsule in a folder, whose files somebody else checks."""
    files = FolderFiles(folder)
    data = files.read(layout.MANIFEST, layout.MAX_MANIFEST) or b""
    found: Manifest | None = None
    refused: FormatError | None = None
    signed: Signed | None = None
    try:
        found = manifest.load(data)
        if found.seal is not None or allowed_signers is not None:
            signed = check_signature(files, data, allowed_signers=allowed_signers)
    except FormatError as error:
        refused = error if found is not None else None
    return Checked(
        findings=(),
        refused=refused,
        manifest=found,
        digest=sha256(data).hexdigest(),
        signed=signed,
        log_bytes=0,
        blobs=0,
    )


def check_signature(files: _Bytes, data: bytes, *, allowed_signers: str | None) -> Signed | None:
    """Who signed the manifest with these bytes, None for nobody or when nothing here can tell.

    Raises: FormatError `signature_missing` and those of `sojourn.keys.ssh.check`.
    """
    from sojourn.keys import ssh

    found = files.read(layout.SIGNATURE, layout.MAX_SIGNATURE)
    if found is None:
        if allowed_signers is None:
            return None
        raise FormatError(
            "the capsule is not signed, and a signature of an allowed signer is wanted",
            code="signature_missing",
            hint="Ask whoever sent it to sign it, or take it without --allowed-signers.",
            file=layout.SIGNATURE,
        )
    signature.load(found)
    if allowed_signers is None and not ssh.can_check():
        return None
    return ssh.check(data, found, allowed_signers=allowed_signers)


def sign_archive(file: str, *, key: str) -> Signed:
    """Put a signature of the manifest into an archive, in place of one that is there.

    The archive is checked whole first, and replaced at once. Raises: FormatError when it is not
    sound; UsageError `identity_needed` for an encrypted one; NotFoundError; CallError;
    StorageError.
    """
    with open_archive(file, decrypt=None) as opened:
        files = ArchiveFiles(opened.plain())
        checked = check(files, allowed_signers=None, wrapped=opened.wrapped)
        for found in checked.findings:
            raise FormatError(found.message, code=found.code, file=found.file, line=found.line)
        if checked.refused is not None and not checked.refused.code.startswith("signature_"):
            raise checked.refused
        data = files.read(layout.MANIFEST, layout.MAX_MANIFEST) or b""
        signed = sign(data, key)
        paths = (*files.paths(), *map(_blob, files.blobs()))
        sizes = {path: files.size(path) or 0 for path in paths} | {layout.SIGNATURE: len(signed)}
        digests = {path: files.digest(path) or "" for path in paths}
        digests[layout.SIGNATURE] = sha256(signed).hexdigest()
        members = (
            (path, size, (signed,) if path == layout.SIGNATURE else files.chunks(path))
            for path, size in sorted(sizes.items())
        )
        wanted = Wanted(file=file, compress="zstd" in opened.wrapped, force=True)
        target = Target(file)
        with telling(lambda: of_export(target)), interrupted_at_once():
            write(wanted, members, sorted(sizes.items()), digests, [], None)
    told = signature.load(signed)
    return Signed(fingerprint=told.fingerprint, kind=told.kind, principal=None)


def decrypting(identities: Sequence[str]) -> Decrypt | None:
    """What opens an encrypted archive with the keys in these files; None without any."""
    if not identities:
        return None

    def decrypt(pieces: Iterable[bytes], put: Write) -> None:
        from sojourn.keys import age

        age.decrypted(pieces, age.identities(identities), put)

    return decrypt


def _blob(name: str) -> str:
    return f"{layout.BLOBS}/{name}"


def _live() -> FormatError:
    return FormatError(
        "the archive does not hold a sealed capsule",
        code="archive_live",
        hint="Have it exported anew with `sojourn export`.",
        file=layout.MANIFEST,
    )


def _unreadable(error: FormatError, wrapped: tuple[Wrapping, ...]) -> Checked:
    return Checked(
        findings=(),
        refused=error,
        manifest=None,
        digest="",
        signed=None,
        log_bytes=0,
        blobs=0,
        wrapped=wrapped,
    )
