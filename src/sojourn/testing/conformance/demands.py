"""How the suites say what they demand."""

from collections.abc import Generator
from contextlib import contextmanager

from sojourn.errors import SojournError


def demand(fulfilled: bool, complaint: str) -> None:
    """Raises: AssertionError with the complaint, unless fulfilled."""
    if not fulfilled:
        raise AssertionError(complaint)


def demand_equal(found: object, wanted: object, what: str) -> None:
    """Raises: AssertionError when the two differ."""
    demand(found == wanted, f"{what}: found {found!r}, wanted {wanted!r}")


@contextmanager
def refused(kind: type[SojournError], code: str | None, what: str) -> Generator[None]:
    """What is done inside must be refused by such an error, with this code when one is given."""
    try:
        yield
    except kind as error:
        if code is not None:
            demand_equal(error.code, code, f"the code of the refusal of {what}")
        return
    raise AssertionError(f"not refused: {what}")
