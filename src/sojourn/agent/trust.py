"""Whether a capsule may be trusted with others: what it would give away."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator

from sojourn.agent.places import Place
from sojourn.drive.scan import Found, ScannedFiles, Suspect, Unseen
from sojourn.drive.scan import scan as scan_files
from sojourn.errors import FormatError
from sojourn.format import layout
from sojourn.store.files_strict import StrictFiles


def scan(place: Place) -> Iterator[Found]:
    """What is likely a secret in the capsule, never its value, and what was not looked into."""
    return scan_files(StrictFiles(place.folder))


class _Leaving:
    """A capsule's files, and of its blobs only those that leave.

    The index is left out: an archive holds an empty one.
    """

    def __init__(self, files: ScannedFiles, blobs: Collection[str]) -> None:
        self._files = files
        self._blobs = blobs
        self.chunks = files.chunks

    def paths(self) -> list[str]:
        """Every file but the blobs and the index."""
        return [path for path in self._files.paths() if path != layout.INDEX]

    def blobs(self) -> Collection[str]:
        """The names of the blobs."""
        return self._blobs


def refuse_secrets(
    folder: str,
    blobs: Collection[str],
    *,
    accepted: Collection[str],
    note: Callable[[str], None],
) -> None:
    """Nothing, when every likely secret in what leaves was accepted by its id.

    `note` is told how many files hide their text, so that nobody looked into them. Raises:
    FormatError `secrets_found` with the first place, `scan_incomplete` with the first file that
    could not be read.
    """
    suspects: list[Suspect] = []
    unseen: list[Unseen] = []
    for found in scan_files(_Leaving(StrictFiles(folder), blobs)):
        match found:
            case Suspect(id=id):
                suspects += [] if id in accepted else [found]
            case Unseen():
                unseen.append(found)
    if suspects:
        raise _would_give_away(suspects)
    for one in unseen:
        if one.why == "unreadable":
            raise _not_looked(one)
    if unseen:
        note(said_of(unseen))


def said_of(unseen: Collection[Unseen]) -> str:
    """In words how many files hide their text, so that nobody looked into them, and how."""
    counts = Counter(one.why for one in unseen)
    kinds = ", ".join(f"{count:,} {why}" for why, count in sorted(counts.items()))
    return f"not looked into for secrets: {kinds} (`sojourn scan --json` names each file)"


def _would_give_away(suspects: list[Suspect]) -> FormatError:
    first = suspects[0]
    more = f" (and {len(suspects) - 1} more)" if len(suspects) > 1 else ""
    ids = " ".join(f"--accept {one.id}" for one in suspects[:3])
    return FormatError(
        f"the archive would give away what is likely a secret: {first.rule}{more}",
        code="secrets_found",
        state="Nothing was sealed or written.",
        hint="`sojourn scan` lists them all. Redact them, or let one go that is none or may leave: "
        f" {ids}",
        file=first.file,
        line=first.line,
    )


def _not_looked(unseen: Unseen) -> FormatError:
    return FormatError(
        f"nobody can tell whether the archive would give a secret away: {unseen.message}",
        code="scan_incomplete",
        state="Nothing was sealed or written.",
        hint="Make it readable, or take it out of the capsule's folder. `sojourn scan` names every "
        "file that could not be read.",
        file=unseen.file,
    )
