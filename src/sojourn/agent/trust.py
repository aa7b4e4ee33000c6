"""Whether a capsule may be trusted with others: what it would give away."""

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from sojourn.agent.places import Place
from sojourn.drive.scan import Suspect
from sojourn.drive.scan import scan as scan_files
from sojourn.errors import FormatError
from sojourn.store.files import FolderFiles


def scan(place: Place) -> Iterator[Suspect]:
    """What is likely a secret in the capsule, never its value."""
    return scan_files(FolderFiles(place.folder))


class _Files(Protocol):
    def paths(self) -> Iterable[str]: ...

    def chunks(self, path: str) -> Iterator[bytes]: ...


class _Leaving:
    """A capsule's files, and of its blobs only those that leave."""

    def __init__(self, files: _Files, blobs: Collection[str]) -> None:
        self._blobs = blobs
        self.paths = files.paths
        self.chunks = files.chunks

    def blobs(self) -> Iterable[str]:
        """The names of the blobs."""
        return self._blobs


def refuse_secrets(files: _Files, blobs: Collection[str], *, accepted: Collection[str]) -> None:
    """Nothing, when every likely secret in what leaves was accepted by its id.

    Raises: FormatError `secrets_found` with the first place.
    """
    found = [one for one in scan_files(_Leaving(files, blobs)) if one.id not in accepted]
    if not found:
        return
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    ids = " ".join(f"--accept {one.id}" for one in found[:3])
    raise FormatError(
        f"the archive would give away what is likely a secret: {first.rule}{more}",
        code="secrets_found",
        state="Nothing was sealed or written.",
        hint="`sojourn scan` lists them all. Redact them, or let one go that is none or may leave: "
        f" {ids}",
        file=first.file,
        line=first.line,
    )
