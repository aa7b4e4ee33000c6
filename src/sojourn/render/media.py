"""Images and files: where an API takes them, how many, how large; the rest become words.

docs/rendering.md#media.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from sojourn.ids import EventId
from sojourn.render import says
from sojourn.render.draft import (
    Answer,
    Answers,
    Draft,
    FromModel,
    Media,
    Message,
    Piece,
    Words,
    file_scope,
    with_losses,
)
from sojourn.render.profile import Profile
from sojourn.render.request import Loss, Target

PDF: Final = "application/pdf"
_STARTS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def place_media(draft: Draft, target: Target) -> Draft:
    """Media of a result that may not hold them follow the whole batch, as user content."""
    where = target.profile.result_media
    if where == "always":
        return draft
    messages: list[Message] = []
    for message in draft.messages:
        if not isinstance(message, Answers):
            messages.append(message)
            continue
        after: list[Piece] = [*message.after]
        answers = tuple(
            _moved(answer, after) if where == "never" or answer.failed else answer
            for answer in message.answers
        )
        messages.append(replace(message, answers=answers, after=tuple(after)))
    return replace(draft, messages=tuple(messages))


def _moved(answer: Answer, after: list[Piece]) -> Answer:
    media = [piece for piece in answer.pieces if isinstance(piece, Media)]
    if not media:
        return answer
    after.append(Words(says.MEDIA_ABOVE.format(tool=answer.tool, id=answer.wire_id)))
    after += media
    kept = tuple(piece for piece in answer.pieces if not isinstance(piece, Media))
    return replace(answer, pieces=(*kept, Words(says.MEDIA_BELOW)))


def cap_media(draft: Draft, target: Target) -> Draft:
    """What the target would refuse becomes words; of too many, the oldest do.

    Oldest go in large steps, so that the earlier messages change rarely (not at each new image).
    """
    losses: list[Loss] = []
    messages = draft.messages
    if not any(_media_of(message) for message in messages):
        return draft

    def fitting(media: Media, message: Message) -> Piece:
        if isinstance(message, FromModel):
            return _left_out(media, says.BY_MODEL, losses, message.event)
        return _fit(media, target, losses, message.event)

    messages = _rewritten(messages, fitting)
    found = [media for message in messages for media in _media_of(message)]
    dropped = _too_many(found, target.profile)
    crowded = len(found) - dropped > target.profile.crowd
    number = 0

    def capped(media: Media, message: Message) -> Piece:
        nonlocal number
        number += 1
        if number <= dropped:
            return _left_out(media, says.TOO_MANY, losses, message.event)
        if crowded and media.side > target.profile.crowd_side:
            return _left_out(media, says.TOO_LARGE, losses, message.event)
        return media

    messages = _rewritten(messages, capped)
    return with_losses(draft, list(messages), losses)


def _media_of(message: Message) -> list[Media]:
    if isinstance(message, Answers):
        inner = [piece for answer in message.answers for piece in answer.pieces]
        return [piece for piece in (*inner, *message.after) if isinstance(piece, Media)]
    return [piece for piece in message.pieces if isinstance(piece, Media)]


def _rewritten(
    messages: tuple[Message, ...], rule: Callable[[Media, Message], Piece]
) -> tuple[Message, ...]:
    def pieces(found: Sequence[Piece], message: Message) -> tuple[Piece, ...]:
        return tuple(rule(one, message) if isinstance(one, Media) else one for one in found)

    result: list[Message] = []
    for message in messages:
        if not _media_of(message):
            result.append(message)
        elif isinstance(message, Answers):
            answers = tuple(
                replace(answer, pieces=pieces(answer.pieces, message)) for answer in message.answers
            )
            after = pieces(message.after, message)
            result.append(replace(message, answers=answers, after=after))
        else:
            result.append(replace(message, pieces=pieces(message.pieces, message)))
    return tuple(result)


def _left_out(media: Media, why: str, losses: list[Loss], event: EventId | None) -> Words:
    losses.append(Loss(code="media_left_out", event=event, detail=f"{media.title}: {why}"))
    return Words(says.LEFT_OUT.format(what=media.title, why=why))


def _fit(media: Media, target: Target, losses: list[Loss], event: EventId | None) -> Piece:
    profile = target.profile
    if media.file_id is not None and media.file_scope == file_scope(target.issuer):
        return replace(media, data=None, url=None)
    media = replace(media, file_id=None)
    why = ""
    if media.data is None and media.url is None:
        why = says.NOT_HERE
    elif media.data is None:
        why = _why_no_url(media, profile)
    elif not media.data:
        why = says.NO_BYTES
    elif media.media_type == PDF:
        why = "" if profile.documents else says.NOT_TAKEN
    elif not media.media_type.startswith("image/") or not profile.image_types:
        why = says.NOT_TAKEN
    else:
        return _fit_image(media, media.data, profile, losses, event)
    return _left_out(media, why, losses, event) if why else media


def _why_no_url(media: Media, profile: Profile) -> str:
    known = media.media_type in profile.image_types
    document = media.media_type == PDF and profile.documents
    reachable = (media.url or "").startswith("https://")
    return "" if reachable and (known or document) else says.NOT_TAKEN


def _fit_image(
    media: Media, data: bytes, profile: Profile, losses: list[Loss], event: EventId | None
) -> Piece:
    kind = image_type(data)
    side = max(pixels(data) or (media.side, 0))
    if kind is None:
        return _left_out(media, says.WRONG_BYTES, losses, event)
    if kind not in profile.image_types:
        return _left_out(media, says.NOT_TAKEN, losses, event)
    if len(data) > profile.max_image_bytes or side > profile.max_side:
        return _left_out(media, says.TOO_LARGE, losses, event)
    return replace(media, media_type=kind, side=side)


def _too_many(found: Sequence[Media], profile: Profile) -> int:
    """How many of the oldest go: a multiple of half the limit, so that the rest stays put."""
    step = max(1, profile.max_images // 2)
    count = _in_steps(len(found) - profile.max_images, step)
    sizes = [len(media.data or b"") for media in found]
    too_much = _in_steps(sum(sizes) - profile.max_media_bytes, max(1, profile.max_media_bytes // 2))
    gone = 0
    for index, size in enumerate(sizes):
        if gone >= too_much:
            return max(count, index)
        gone += size
    return max(count, len(found) if too_much > 0 else 0)


def _in_steps(over: int, step: int) -> int:
    return 0 if over <= 0 else -(-over // step) * step


def image_type(data: bytes) -> str | None:
    """The media type that an image's own bytes show, None when they show none that is known."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _STARTS if data.startswith(start)), None)


def pixels(data: bytes) -> tuple[int, int] | None:
    """Width and height that a PNG or GIF names; None for what is not measured here."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return int(width), int(height)
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        width, height = struct.unpack("<HH", data[6:10])
        return int(width), int(height)
    return None
