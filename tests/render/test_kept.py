"""A request that goes on from what was kept of the last one is the one that is made anew."""

import sys
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from render.prompts import (
    BLOBS,
    HOSTS,
    Host,
    contents,
    event,
    prompts,
    replied,
    served,
    words,
)
from sojourn.core.view import Call, Entry, Notice, Prompt, Replied, Result, Said
from sojourn.errors import SojournError
from sojourn.format.event import Options, ToolSpec
from sojourn.format.parts import BlobRef, CallPart, MediaPart, TextPart
from sojourn.ids import BlobId, CallKey, EventId
from sojourn.render import Kept, Needed, Rendered, blobs_needed, dialect, render_bytes

hosts = st.sampled_from(HOSTS)


def outcome(prompt: Prompt, host: Host, kept: Kept | None) -> tuple[object, ...]:
    """Everything that rendering gives, or how it failed."""
    try:
        found: Rendered = dialect(host.target.profile.dialect).render(
            prompt, host.target, BLOBS, kept=kept
        )
    except SojournError as error:
        return error.code, error.message
    return render_bytes(found.payload), found.constraints, found.losses


def grown(prompt: Prompt) -> list[Prompt]:
    """The prompt after each of its entries."""
    entries = tuple(prompt.entries)
    return [replace(prompt, entries=entries[: n + 1]) for n in range(len(entries))]


def step(number: int) -> Replied:
    event = EventId(f"{number:064d}")
    part = CallPart(tool="look", args=f'{{"n": {number}}}', native_id=f"call{number}")
    done = Result(event=event, status="done", parts=(TextPart(text=f"found {number}"),))
    call = Call(key=CallKey(f"{number:064x}"), part=part, started=True, result=done)
    words = TextPart(text=f"step {number}")
    return Replied(
        event=event,
        issuer=HOSTS[0].target.issuer,
        parts=(words, part),
        calls=(call,),
        stop="calls",
        completed=True,
    )


def long_prompt(steps: int) -> Prompt:
    first = Said(event=EventId("f" * 64), author="me", parts=(TextPart(text="Go."),))
    entries: list[Entry] = [first, *map(step, range(steps))]
    tool = ToolSpec(name="look", description="Look.", schema='{"type":"object"}', replay="safe")
    return Prompt(system="Be brief.", tools=(tool,), options=Options(), memory="", entries=entries)


@st.composite
def long_stories(draw: st.DrawFn) -> Prompt:
    """Mostly steps that nothing is odd about but their ids, and among them whatever there is."""
    made: list[Entry] = []
    kinds = draw(st.lists(st.sampled_from("ppppppprsn"), min_size=4, max_size=12))
    for number, kind in enumerate(kinds):
        match kind:
            case "p":
                made.append(draw(odd_step(number)))
            case "r":
                made.append(draw(replied(number)))
            case "s":
                made.append(Said(event=event(f"{number}"), author="me", parts=draw(contents)))
            case _:
                made.append(Notice(event=event(f"{number}"), text=draw(words)))
    return replace(draw(prompts()), entries=tuple(made))


@st.composite
def odd_step(draw: st.DrawFn, number: int) -> Replied:
    """A step whose call may have the id of another one, or one that no host takes."""
    plain = step(number)
    native = draw(st.sampled_from(("call1", "call2", "toolu_3", "i d", "x" * 70, None)))
    tool = draw(st.sampled_from(("look", "look", "look", "look", "lo ok")))
    part = CallPart(tool=tool, args=draw(st.sampled_from(('{"n":1}', "{", "[]"))), native_id=native)
    status = draw(st.sampled_from(("done", "done", "failed", "unknown")))
    said = TextPart(text=draw(words))
    done = Result(event=plain.event, status=status, parts=(said,))
    call = Call(key=plain.calls[0].key, part=part, started=True, result=done)
    texts = (TextPart(text=draw(words)),) if draw(st.booleans()) else ()
    return replace(plain, parts=(*texts, part), calls=(call,))


@settings(max_examples=40, deadline=None)
@given(host=hosts, prompt=long_stories())
def test_each_request_of_a_long_story_equals_the_one_made_anew(host: Host, prompt: Prompt) -> None:
    check_grown(host, prompt)


@settings(max_examples=60, deadline=None)
@given(host=hosts, prompt=prompts())
def test_each_request_of_a_growing_transcript_equals_the_one_made_anew(
    host: Host, prompt: Prompt
) -> None:
    check_grown(host, prompt)


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.target.profile.name)
def test_each_of_very_many_requests_equals_the_one_made_anew(host: Host) -> None:
    @settings(max_examples=80, deadline=None)
    @given(prompt=long_stories())
    def check(prompt: Prompt) -> None:
        check_grown(host, prompt)

    check()


def check_grown(host: Host, prompt: Prompt) -> None:
    kept, needed = Kept(), Needed()
    for now in grown(prompt):
        assert needed.of(now) == blobs_needed(now)
        assert outcome(now, host, kept) == outcome(now, host, None)


@settings(max_examples=60, deadline=None)
@given(host=hosts, prompt=prompts(), other=prompts(), another=hosts)
def test_what_was_kept_of_another_transcript_or_target_is_not_used(
    host: Host, prompt: Prompt, other: Prompt, another: Host
) -> None:
    kept = Kept()
    for now, target in ((prompt, host), (other, host), (prompt, another), (prompt, host)):
        assert outcome(now, target, kept) == outcome(now, target, None)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.target.profile.name)
def test_a_changed_entry_in_the_middle_is_rendered(host: Host) -> None:
    kept, prompt = Kept(), long_prompt(8)
    needed = Needed()
    needed.of(prompt)
    outcome(prompt, host, kept)
    entries = list(prompt.entries)
    entries[3] = step(77)
    changed = replace(prompt, entries=entries)
    assert outcome(changed, host, kept) == outcome(changed, host, None)
    assert outcome(changed, host, kept) != outcome(prompt, host, None)
    large = BlobRef(sha256=next(iter(BLOBS)), size=1, media_type="text/plain")
    entries[2] = Said(event=EventId("e" * 64), author="me", parts=(TextPart(text=large),))
    assert needed.of(replace(prompt, entries=entries)) == {large.sha256}


def check_each(host: Host, prompts: list[Prompt]) -> None:
    kept = Kept()
    for prompt in prompts:
        assert outcome(prompt, host, kept) == outcome(prompt, host, None)


def test_an_end_that_was_not_kept_leaves_no_ids_behind() -> None:
    prompt, end = long_prompt(4), step(2)
    first, second = (replace(end, event=EventId(name * 64)) for name in "ab")
    calls = [replace(end.calls[0], key=CallKey(name * 64)) for name in "ab"]
    ends = [replace(one, calls=(call,)) for one, call in zip((first, second), calls, strict=True)]
    check_each(HOSTS[0], [replace(prompt, entries=[*prompt.entries[:3], one]) for one in ends])


def test_images_of_all_groups_are_counted_together() -> None:
    host = HOSTS[0]
    name, data = next(iter(BLOBS.items()))
    picture = BlobRef(sha256=name, size=len(data), media_type="image/png")
    image = MediaPart(media_type="image/png", blob=picture)
    entries: list[Entry] = []
    for number in range(host.target.profile.max_images + 2):
        said = EventId(f"{number:064x}")
        entries += [Said(event=said, author="me", parts=(image,)), step(number)]
    prompt = replace(long_prompt(0), entries=entries)
    check_each(host, grown(prompt)[-4:])


def test_a_call_of_the_providers_own_may_end_in_the_next_group() -> None:
    prompt = long_prompt(1)
    own = step(7)
    begun = replace(own, parts=(served(1, is_result=False),), calls=(), stop="paused")
    over = replace(begun, parts=(served(1, is_result=True), TextPart(text="so")), stop="rest")
    said = Said(event=EventId("d" * 64), author="me", parts=(TextPart(text="And?"),))
    entries = [*prompt.entries, begun, over, said, step(9)]
    check_each(HOSTS[0], grown(replace(prompt, entries=entries)))


def calls_of(prompt: Prompt, host: Host, kept: Kept | None) -> int:
    """How many Python functions a rendering calls."""
    number = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal number
        del frame, arg
        number += event == "call"

    found = dialect(host.target.profile.dialect)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found.render(prompt, host.target, {}, kept=kept)
    finally:
        sys.setprofile(before)
    return number


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.target.profile.name)
def test_finished_groups_are_prepared_once(host: Host) -> None:
    kept = Kept()
    outcome(long_prompt(200), host, kept)
    prompt = long_prompt(201)
    assert calls_of(prompt, host, kept) * 3 < calls_of(prompt, host, None)


def test_a_blob_that_reads_otherwise_now_is_rendered_so() -> None:
    host, prompt, kept = HOSTS[0], long_prompt(3), Kept()
    name = BlobId("b" * 64)
    large = TextPart(text=BlobRef(sha256=name, size=4, media_type="text/plain"))
    first = Said(event=EventId("e" * 64), author="me", parts=(large,))
    prompt = replace(prompt, entries=[first, *prompt.entries])
    found = dialect(host.target.profile.dialect)
    for text in (b"here", b"gone"):
        rendered = found.render(prompt, host.target, {name: text}, kept=kept)
        assert rendered == found.render(prompt, host.target, {name: text})
