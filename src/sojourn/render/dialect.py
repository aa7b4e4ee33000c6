"""A dialect: one API's way to write requests and to read replies, and the list of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from sojourn.core.view import Prompt
from sojourn.errors import UsageError
from sojourn.ids import BlobId
from sojourn.render import anthropic, openai_chat
from sojourn.render.anthropic_reply import MessagesReader
from sojourn.render.check import self_check
from sojourn.render.draft import Ask, Draft, FromModel, Pass
from sojourn.render.kept import Kept
from sojourn.render.openai_chat_reply import ChatReader
from sojourn.render.prompt import PASSES, prepare
from sojourn.render.reply import ReplyReader
from sojourn.render.request import Constraints, Rendered, Target
from sojourn.render.source import mend


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One API; `shape` gives a prepared draft its form, `new_reader` makes a reader of replies."""

    name: str
    shape: Callable[[Draft, Target], dict[str, object]]
    new_reader: Callable[[], ReplyReader]

    def render(
        self,
        prompt: Prompt,
        target: Target,
        blobs: Mapping[BlobId, bytes],
        *,
        kept: Kept | None = None,
    ) -> Rendered:
        """The request for this target: the same prompt and target give the same bytes.

        `blobs` holds at least those that `blobs_needed` names. Pure (docs/rendering.md#purity):
        `kept` spares work where an earlier request began alike, and changes nothing else.

        Raises: FormatError `blob_missing`; CallError `request_unsound`.
        """
        if kept is None:
            kept = Kept()
            draft = prepare(prompt, target, blobs)
        else:
            draft = kept.prepare(prompt, target, blobs)
        self_check(draft, target, kept.seen)
        return self._rendered(draft, target)

    def render_without(
        self,
        left_out: Pass,
        prompt: Prompt,
        target: Target,
        blobs: Mapping[BlobId, bytes],
    ) -> Rendered:
        """The same with one pass left out and unchecked: for the proof that each is needed."""
        passes = tuple(one for one in PASSES if one is not left_out)
        return self._rendered(prepare(prompt, target, blobs, passes=passes), target)

    def reader(self) -> ReplyReader:
        """A reader for one reply."""
        return self.new_reader()

    def _rendered(self, draft: Draft, target: Target) -> Rendered:
        calls = any(
            isinstance(piece, Ask)
            for message in draft.messages
            if isinstance(message, FromModel)
            for piece in message.pieces
        )
        return Rendered(
            payload=self.shape(draft, target),
            constraints=Constraints(thinking_allowed=draft.thinking_allowed, needs_tools=calls),
            losses=tuple(replace(loss, detail=mend(loss.detail)) for loss in draft.losses),
        )


_DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        one.name: one
        for one in (
            Dialect(name="anthropic", shape=anthropic.shape, new_reader=MessagesReader),
            Dialect(name="openai_chat", shape=openai_chat.shape, new_reader=ChatReader),
        )
    }
)


def dialects() -> tuple[str, ...]:
    """The names of every API that requests can be written for."""
    return tuple(_DIALECTS)


def dialect(name: str) -> Dialect:
    """The dialect of that name.

    Raises: UsageError `unknown_dialect`.
    """
    found = _DIALECTS.get(name)
    if found is None:
        raise UsageError(
            f"there is no dialect {name!r}",
            code="unknown_dialect",
            hint="known: " + ", ".join(_DIALECTS),
        )
    return found
