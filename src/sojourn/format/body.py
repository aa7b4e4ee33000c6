"""What bodies of every kind are made of: the salt, and the heads that some of them name.

docs/format.md#events is the specification.
"""

from typing import Annotated, TypeAlias

import msgspec

from sojourn.format.layout import MAX_INT
from sojourn.format.parts import Count
from sojourn.ids import EventId, Incarnation, MachineId, Seq

AnySeq: TypeAlias = Annotated[Seq, msgspec.Meta(ge=0, le=MAX_INT)]


class Head(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The last event of one chain."""

    machine: MachineId
    incarnation: Incarnation
    seq: AnySeq
    id: EventId


class Body(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What every body has: a random salt (22 characters of base64url, 128 bits).

    The writer sets both: `mended` counts the lone surrogates that became U+FFFD in this body.
    """

    salt: str = ""
    mended: Count = 0
