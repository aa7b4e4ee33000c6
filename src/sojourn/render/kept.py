"""Rendering again what has grown: the finished groups of a transcript are prepared once.

A group is a reply and what follows it up to the next one. Most passes look at one group at a time,
and so what they made of a group holds as long as the same entries stand before it. A request made
so equals the one that is made anew (docs/rendering.md#kept).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from sojourn.core.view import Entry, Prompt, Replied
from sojourn.format.event import Options
from sojourn.ids import BlobId
from sojourn.render.check import Seen
from sojourn.render.draft import (
    Answers,
    Ask,
    Draft,
    FromModel,
    Media,
    Message,
    Pass,
    Piece,
    Served,
    lay_out,
)
from sojourn.render.private import settle_thinking
from sojourn.render.prompt import PASSES, prepare
from sojourn.render.request import Loss, Target, blobs_needed
from sojourn.render.wire_ids import WireIds, give_ids, map_ids, offer_stubs, wire_name

_AT: Final = PASSES.index(settle_thinking)
OF_GROUPS: Final[tuple[Pass, ...]] = tuple(one for one in PASSES[:_AT] if one != offer_stubs)
"""Passes that see no further than a group, or only what no kept group holds."""
OF_ALL: Final[tuple[Pass, ...]] = PASSES[_AT:]

_Losses: TypeAlias = list[tuple[Loss, ...]]
"""What each pass lost, the laying out first."""


class Kept:
    """What of the last request can stand in the next one; of one target, so it stays bounded.

    Whoever renders a transcript again and again gives the same object each time.
    """

    def __init__(self) -> None:
        self.seen = Seen()
        self._groups: _Groups | None = None

    def prepare(self, prompt: Prompt, target: Target, blobs: Mapping[BlobId, bytes]) -> Draft:
        """As `prompt.prepare`, in time for what is new.

        Raises: FormatError `blob_missing`.
        """
        if not prompt.tools and target.profile.calls_need_tools:
            # What is declared instead of tools depends on every call.
            return prepare(prompt, target, blobs)
        # What fails half way, whatever the reason, is forgotten.
        groups, self._groups = self._groups, None
        if groups is None or not groups.begin(prompt.entries, target, blobs):
            groups = _Groups(target)
        groups.keep_finished(prompt.entries, blobs)
        self._groups = groups
        draft = groups.joined_with(prompt, blobs)
        for one in OF_ALL:
            draft = one(draft, target)
        return draft


class _Groups:
    """The first groups of a transcript as the passes of groups left them."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._entries: list[Entry] = []
        self._blobs: dict[BlobId, bytes] = {}
        self._messages: list[Message] = []
        self._losses: _Losses = [()] * (1 + len(OF_GROUPS))
        self._ids = WireIds(target.profile)
        self._legal: set[str] = set()

    def begin(
        self, entries: Sequence[Entry], target: Target, blobs: Mapping[BlobId, bytes]
    ) -> bool:
        """Whether a transcript for this target begins with these very groups."""
        return (
            self._target == target
            and list(entries[: len(self._entries)]) == self._entries
            and all(blobs.get(name) == data for name, data in self._blobs.items())
        )

    def keep_finished(self, entries: Sequence[Entry], blobs: Mapping[BlobId, bytes]) -> None:
        """Take in the groups that have come to their end, up to one that cannot be kept."""
        taken, messages = list[Entry](), list[Message]()
        for group in _finished(entries, len(self._entries)):
            more = lay_out(_alone(group), self._target, blobs).messages
            if not all(map(self._is_plain, more)):
                break
            taken += group
            messages += more
        if not taken:
            return
        laid = lay_out(_alone(()), self._target, blobs)
        laid = replace(laid, messages=tuple(messages))
        draft, losses = _passed(laid, self._target, self._ids)
        self._messages += draft.messages
        self._losses = _added(self._losses, losses)
        self._blobs |= {name: blobs[name] for name in blobs_needed(_alone(taken))}
        self._entries += taken

    def joined_with(self, prompt: Prompt, blobs: Mapping[BlobId, bytes]) -> Draft:
        """The draft of the whole prompt, which begins with these groups."""
        rest = replace(prompt, entries=prompt.entries[len(self._entries) :])
        laid = lay_out(rest, self._target, blobs)
        draft, losses = _passed(laid, self._target, self._ids.copy())
        lost = [loss for one in _added(self._losses, losses) for loss in one]
        messages = (*self._messages, *draft.messages)
        return replace(draft, messages=messages, losses=tuple(lost))

    def _is_plain(self, message: Message) -> bool:
        """Whether the message bears on nothing that other groups become, but for the ids."""
        if isinstance(message, Answers):
            return not any(_is_far(piece) for one in message.answers for piece in one.pieces)
        if isinstance(message, FromModel) and not message.completed and not message.calls:
            return True
        if any(map(_is_far, message.pieces)):
            return False
        if not isinstance(message, FromModel):
            return True
        asked = [piece for piece in message.pieces if isinstance(piece, Ask)]
        return len(asked) == len(message.calls) and all(map(self._is_legal, asked))

    def _is_legal(self, ask: Ask) -> bool:
        name = ask.tool
        if (
            name not in self._legal
            and wire_name(name, longest=self._target.profile.name_max) == name
        ):
            self._legal.add(name)
        return name in self._legal


class Needed:
    """Finds the blobs that a prompt needs, in time for what came since the last one."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._found: frozenset[BlobId] = frozenset()

    def of(self, prompt: Prompt) -> frozenset[BlobId]:
        """As `blobs_needed`."""
        if list(prompt.entries[: len(self._entries)]) != self._entries:
            self._entries, self._found = [], frozenset()
        rest = prompt.entries[len(self._entries) :]
        new = _alone(rest[:-1])
        self._found |= blobs_needed(new)
        self._entries += new.entries
        return self._found | blobs_needed(replace(prompt, entries=rest[-1:]))


def _alone(entries: Sequence[Entry]) -> Prompt:
    return Prompt(system="", tools=(), options=Options(), memory="", entries=entries)


def _is_far(piece: Piece) -> bool:
    """Media are counted through the whole list; calls of a provider's own may go on in it."""
    return isinstance(piece, Media | Served)


def _finished(entries: Sequence[Entry], start: int) -> Iterator[list[Entry]]:
    """The groups from `start` on but for the last, which may still grow."""
    group: list[Entry] = []
    for entry in entries[start:]:
        if isinstance(entry, Replied) and group:
            yield group
            group = []
        group.append(entry)


def _passed(draft: Draft, target: Target, ids: WireIds) -> tuple[Draft, _Losses]:
    """What the passes make of a group, and what each of them lost; `ids` takes its calls."""
    losses: _Losses = [draft.losses]
    for one in OF_GROUPS:
        draft = replace(draft, losses=())
        draft = give_ids(draft, ids) if one == map_ids else one(draft, target)
        losses.append(draft.losses)
    return draft, losses


def _added(before: _Losses, after: _Losses) -> _Losses:
    return [one + other for one, other in zip(before, after, strict=True)]
