"""From prompt to request: the passes that all dialects share, in their order.

Each pass keeps one rule of docs/rendering.md#passes and is a function of its own, so that a test
can leave out any one of them and see a strict provider refuse what comes out.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from sojourn.core.view import Prompt
from sojourn.ids import BlobId
from sojourn.render.draft import Draft, Pass, lay_out
from sojourn.render.media import cap_media, place_media
from sojourn.render.pairs import drop_unfinished, hold_messages, mend_ends, repair_pairs
from sojourn.render.private import filter_private, settle_thinking
from sojourn.render.request import Loss, Target
from sojourn.render.text import clean_text, omit_empty, wrap_arguments
from sojourn.render.wire_ids import map_ids, map_names, offer_stubs

MAX_STOPS: Final = 4
"""Stop texts that every host takes."""


def settle_options(draft: Draft, target: Target) -> Draft:
    """Options that the target would refuse are not sent."""
    profile, options = target.profile, draft.options
    losses: list[Loss] = []

    def drop(name: str) -> None:
        losses.append(Loss(code="option_changed", event=None, detail=name))

    if options.thinking is not None and profile.thinking == "none":
        options = replace(options, thinking=None)
        drop("thinking")
    fixed = profile.dialect == "anthropic" and options.thinking is not None
    if options.temperature is not None and (fixed or not profile.takes_temperature):
        options = replace(options, temperature=None)
        drop("temperature")
    stop = tuple(text for text in options.stop if text.strip())[:MAX_STOPS]
    if not profile.takes_stop:
        stop = ()
    if stop != options.stop:
        options = replace(options, stop=stop)
        drop("stop")
    return replace(draft, options=options, losses=draft.losses + tuple(losses))


PASSES: Final[tuple[Pass, ...]] = (
    drop_unfinished,
    filter_private,
    repair_pairs,
    hold_messages,
    wrap_arguments,
    map_ids,
    map_names,
    offer_stubs,
    place_media,
    cap_media,
    clean_text,
    omit_empty,
    settle_thinking,
    settle_options,
    mend_ends,
)
"""The order matters: docs/rendering.md#passes says why each stands where it does."""


def prepare(
    prompt: Prompt,
    target: Target,
    blobs: Mapping[BlobId, bytes],
    *,
    passes: tuple[Pass, ...] = PASSES,
) -> Draft:
    """The prompt as the target takes it, before it gets the shape of the target's API.

    Raises: FormatError `blob_missing`.
    """
    draft = lay_out(prompt, target, blobs)
    for one in passes:
        draft = one(draft, target)
    return draft
