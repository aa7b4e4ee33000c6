"""Whether a capsule may be trusted with others: what it would give away."""

from collections.abc import Iterator

from sojourn.agent.places import Place
from sojourn.drive.scan import Suspect
from sojourn.drive.scan import scan as scan_files
from sojourn.store.files import FolderFiles


def scan(place: Place) -> Iterator[Suspect]:
    """What is likely a secret in the capsule, never its value."""
    return scan_files(FolderFiles(place.folder))
