"""Ids and names on the wire: legal for the target, one to one, and never changed by what follows.

docs/rendering.md#wire-ids.
"""

from collections.abc import Callable
from copy import copy
from hashlib import sha256
from string import ascii_letters, digits
from typing import Final

from msgspec.structs import replace

from sojourn.ids import CallKey
from sojourn.render import says
from sojourn.render.draft import (
    Answers,
    Ask,
    Draft,
    FromModel,
    Message,
    Offer,
    Piece,
    with_losses,
)
from sojourn.render.profile import Profile
from sojourn.render.request import Loss, Target

_LETTERS: Final = digits + ascii_letters
_WORD: Final = frozenset(_LETTERS)
_NAME: Final = frozenset(_LETTERS + "_-")
HASHED_ID: Final = 24
"""Characters of an id that is derived from a call key: 142 bits, where the target allows it."""
MARK: Final = 8
"""Characters that tell apart two names which look alike once they are legal."""


class WireIds:
    """Gives each call key its id, in the order in which the calls stand in the log.

    A native id is kept if the target allows it and no earlier call has it; otherwise the id is a
    short hash of the call key. So no call's id ever depends on a later call.
    """

    def __init__(self, profile: Profile) -> None:
        self._signs = frozenset(_LETTERS + profile.id_signs)
        self._max = profile.id_max
        self._exact = profile.id_exact
        self._given: dict[CallKey, str] = {}
        self._used: set[str] = set()

    def take(self, key: CallKey, native: str | None) -> str:
        """The id of the call with this key."""
        known = self._given.get(key)
        if known is not None:
            return known
        wire = native if native is not None and self._is_free(native) else self._hashed(key)
        self._given[key] = wire
        self._used.add(wire)
        return wire

    def copy(self) -> "WireIds":
        """One that goes on from here without changing this one."""
        other = copy(self)
        other._given, other._used = self._given.copy(), self._used.copy()
        return other

    def of(self, key: CallKey) -> str | None:
        """The id already given to this key."""
        return self._given.get(key)

    def _is_free(self, wire: str) -> bool:
        size = len(wire) == self._max if self._exact else 0 < len(wire) <= self._max
        return size and self._signs.issuperset(wire) and wire not in self._used

    def _hashed(self, key: CallKey) -> str:
        size = self._max if self._exact else min(self._max, HASHED_ID)
        attempt = 0
        while True:
            wire = _digest(f"sojourn.wire/1 {key} {attempt}", size)
            if wire not in self._used:
                return wire
            attempt += 1


def _digest(text: str, size: int) -> str:
    number = int.from_bytes(sha256(text.encode("utf-8", "replace")).digest(), "big")
    signs: list[str] = []
    for _ in range(size):
        number, rest = divmod(number, len(_LETTERS))
        signs.append(_LETTERS[rest])
    return "".join(signs)


def wire_name(name: str, *, longest: int) -> str:
    """The name itself when it is legal, else a legal one that no other name gets."""
    if 0 < len(name) <= longest and _NAME.issuperset(name):
        return name
    plain = "".join(sign if sign in _NAME else "_" for sign in name or says.UNNAMED_TOOL)
    mark = _digest(f"sojourn.name/1 {name}", MARK)
    return f"{plain[: longest - MARK - 1]}_{mark}"


def map_ids(draft: Draft, target: Target) -> Draft:
    """Give every call and its result their id."""
    return give_ids(draft, WireIds(target.profile))


def give_ids(draft: Draft, ids: WireIds) -> Draft:
    """The same, after the calls that `ids` knows already."""
    messages: list[Message] = []
    losses: list[Loss] = []
    for message in draft.messages:
        if isinstance(message, FromModel):
            messages.append(_with_ids(message, ids, losses))
        elif isinstance(message, Answers):
            answers = tuple(
                replace(answer, wire_id=ids.of(answer.key) or answer.wire_id)
                for answer in message.answers
            )
            messages.append(replace(message, answers=answers))
        else:
            messages.append(message)
    return with_losses(draft, messages, losses)


def _with_ids(message: FromModel, ids: WireIds, losses: list[Loss]) -> FromModel:
    if not any(isinstance(piece, Ask) for piece in message.pieces):
        return message
    native = {call.key: call.part.native_id for call in message.calls}
    pieces: list[Piece] = []
    for piece in message.pieces:
        if not isinstance(piece, Ask):
            pieces.append(piece)
            continue
        given = native.get(piece.key)
        wire = ids.take(piece.key, given)
        if given not in (None, wire):
            losses.append(Loss(code="id_changed", event=message.event, detail=wire))
        pieces.append(replace(piece, wire_id=wire))
    return replace(message, pieces=tuple(pieces))


def map_names(draft: Draft, target: Target) -> Draft:
    """Give every tool and every call a legal name, the same for both; of two tools the first."""
    losses: list[Loss] = []
    known: dict[str, str] = {}

    def named(name: str) -> str:
        wire = known.get(name)
        if wire is None:
            wire = known[name] = wire_name(name, longest=target.profile.name_max)
            if wire != name:
                losses.append(Loss(code="name_changed", event=None, detail=wire))
        return wire

    offers: dict[str, Offer] = {}
    for offer in draft.offers:
        if offers.setdefault(named(offer.name), offer) is not offer:
            losses.append(Loss(code="tool_dropped", event=None, detail=offer.name))
    renamed = tuple(replace(offer, name=name) for name, offer in offers.items())
    messages = [_renamed(message, named) for message in draft.messages]
    return with_losses(replace(draft, offers=renamed), messages, losses)


def _renamed(message: Message, named: Callable[[str], str]) -> Message:
    if isinstance(message, FromModel):
        asked = [piece for piece in message.pieces if isinstance(piece, Ask)]
        if all(named(ask.tool) == ask.tool for ask in asked):
            return message
        pieces = tuple(
            replace(piece, tool=named(piece.tool)) if isinstance(piece, Ask) else piece
            for piece in message.pieces
        )
        return replace(message, pieces=pieces)
    if isinstance(message, Answers):
        if all(named(answer.tool) == answer.tool for answer in message.answers):
            return message
        answers = tuple(replace(one, tool=named(one.tool)) for one in message.answers)
        return replace(message, answers=answers)
    return message


def offer_stubs(draft: Draft, target: Target) -> Draft:
    """Calls in the messages need declared tools: where none is offered, name those of the calls."""
    if draft.offers or not target.profile.calls_need_tools:
        return draft
    names = {
        piece.tool: None
        for message in draft.messages
        if isinstance(message, FromModel)
        for piece in message.pieces
        if isinstance(piece, Ask)
    }
    if not names:
        return draft
    stubs = tuple(Offer(name, says.STUB_TOOL, {"type": "object"}) for name in names)
    losses = [Loss(code="tools_stubbed", event=None, detail=", ".join(names))]
    return with_losses(replace(draft, offers=stubs, stubs=True), list(draft.messages), losses)
