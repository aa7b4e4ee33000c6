"""Options of the commands that read archives."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Wrapped = TypeVar("Wrapped", bound=Callable[..., Any])


def identity_option(what: str) -> Callable[[Wrapped], Wrapped]:
    """`--identity`, which decrypts `what`."""
    return click.option(
        "--identity",
        metavar="FILE",
        multiple=True,
        type=click.Path(dir_okay=False),
        help=f"Decrypt {what} with the age or SSH key in FILE; may be repeated.",
    )


def signers_option(otherwise: str) -> Callable[[Wrapped], Wrapped]:
    """`--allowed-signers`, which says what happens to what none of them signed."""
    return click.option(
        "--allowed-signers",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help=f"{otherwise} unless someone in FILE signed it.",
    )
