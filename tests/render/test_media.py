"""Media: what is too much goes from the oldest on, in steps, and what is left fits."""

import struct
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.core.view import Prompt, Said
from sojourn.format.event import Issuer, Options
from sojourn.format.parts import BlobRef, MediaPart
from sojourn.ids import BlobId, EventId
from sojourn.render import Target, blobs_needed
from sojourn.render.draft import FromUser, Media
from sojourn.render.media import image_type, pixels
from sojourn.render.profile import PROFILES
from sojourn.render.prompt import prepare

ISSUER = Issuer(provider="anthropic", api="anthropic", scope="default", model="m")
HEAD = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 4, 4)


def image(size: int) -> bytes:
    return HEAD + b"\x00" * (size - len(HEAD))


def kept(sizes: list[int], *, most: int, budget: int) -> list[bool]:
    """For images of these sizes, whether each is sent."""
    datas = [image(size) for size in sizes]
    blobs = {BlobId(sha256(data).hexdigest()): data for data in datas}
    parts = [
        MediaPart(
            media_type="image/png",
            blob=BlobRef(
                sha256=BlobId(sha256(data).hexdigest()), size=len(data), media_type="image/png"
            ),
        )
        for data in datas
    ]
    entries = [
        Said(event=EventId(str(number)), author="p", parts=(part,))
        for number, part in enumerate(parts)
    ]
    profile = msgspec.structs.replace(
        PROFILES["anthropic"], max_images=most, max_media_bytes=budget
    )
    prompt = Prompt(system="", tools=(), options=Options(), memory="", entries=entries)
    assert blobs_needed(prompt) == set(blobs)
    draft = prepare(prompt, Target(issuer=ISSUER, profile=profile), blobs)
    found = [message for message in draft.messages if isinstance(message, FromUser)]
    return [isinstance(message.pieces[0], Media) for message in found][: len(sizes)]


sizes_of = st.lists(st.integers(30, 120), max_size=14)


@settings(max_examples=60)
@given(sizes=sizes_of, most=st.integers(1, 6), budget=st.integers(40, 400))
def test_what_is_left_fits_and_is_the_newest(sizes: list[int], most: int, budget: int) -> None:
    flags = kept(sizes, most=most, budget=budget)
    sent = [size for size, flag in zip(sizes, flags, strict=True) if flag]
    assert len(sent) <= most
    assert sum(sent) <= budget
    assert flags == sorted(flags)
    if len(sizes) <= most and sum(sizes) <= budget:
        assert all(flags)


def test_too_many_bytes_take_no_more_than_the_next_step() -> None:
    assert kept([100] * 10, most=100, budget=1000) == [True] * 10
    assert kept([100] * 11, most=100, budget=1000) == [False] * 5 + [True] * 6


def test_the_prefix_changes_once_in_half_a_limit_of_images() -> None:
    flags = [kept([50] * count, most=10, budget=10_000) for count in range(10, 21)]
    gone = [row.count(False) for row in flags]
    assert gone == [0, 5, 5, 5, 5, 5, 10, 10, 10, 10, 10]


@pytest.mark.parametrize(
    ("data", "kind", "size"),
    [
        (image(60), "image/png", (4, 4)),
        (b"GIF89a\x02\x00\x03\x00", "image/gif", (2, 3)),
        (b"\xff\xd8\xff\xe0", "image/jpeg", None),
        (b"RIFF\x00\x00\x00\x00WEBP", "image/webp", None),
        (b"RIFF\x00\x00\x00\x00WAVE", None, None),
        (b"\x89PNG\r\n\x1a\n", "image/png", None),
        (b"GIF89a", "image/gif", None),
        (b"", None, None),
    ],
)
def test_an_images_own_bytes_say_what_it_is(
    data: bytes, kind: str | None, size: tuple[int, int] | None
) -> None:
    assert image_type(data) == kind
    assert pixels(data) == size
