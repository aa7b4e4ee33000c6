"""The notes are what the memory events make them, whatever the order of two edits."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from sojourn.format import working_memory
from sojourn.format.event import Memory
from sojourn.format.parts import BlobRef, Text
from sojourn.format.working_memory import EMPTY, START, Fold, add, compare, digest_of, join
from sojourn.ids import BlobId

LONG = "a long text\n"
REF = BlobRef(sha256=digest_of(LONG), size=len(LONG), media_type="text/plain")


def read_text(ref: BlobRef) -> str:
    return {REF.sha256: LONG}[ref.sha256]


def edit(before: Text | None, text: Text) -> Memory:
    old = None if before is None else digest_of_text(before)
    return Memory(origin="tool", before=old, result=digest_of_text(text), text=text)


def digest_of_text(text: Text) -> BlobId:
    return text.sha256 if isinstance(text, BlobRef) else digest_of(text)


def fold(*edits: Memory) -> Fold:
    state = START
    for event in edits:
        state = add(state, event, read_text=read_text)
    return state


def test_no_event_is_no_text() -> None:
    assert (START.text, START.digest) == ("", EMPTY)
    assert compare(START, b"") == "equal"
    assert compare(START, b"x") == "hand_edit"


def test_the_last_edit_of_the_text_counts() -> None:
    state = fold(edit(None, "one"), edit("one", "two"), edit("two", REF))
    assert (state.text, state.digest) == (REF, REF.sha256)
    assert compare(state, LONG.encode()) == "equal"
    for earlier in ("", "one", "two"):
        assert compare(state, earlier.encode()) == "stale"
    assert compare(state, b"three") == "hand_edit"


def test_two_edits_of_one_text_are_both_kept() -> None:
    state = fold(edit(None, "one"), edit("one", "two \n"), edit("one", "\n three"))
    assert state.text == join("two", "three")
    assert state.digest == digest_of(join("two", "three"))
    assert "<<<" not in str(state.text)
    assert compare(state, b"two \n") == "stale"


def test_an_edit_of_the_joined_text_continues_it() -> None:
    joined = join("two", LONG)
    state = fold(edit(None, "one"), edit("one", "two"), edit("one", REF), edit(joined, "four"))
    assert state.text == "four"


def test_an_edit_of_one_version_takes_its_place_beside_the_other() -> None:
    here, there = [edit("one", "a1"), edit("a1", "a2"), edit("a2", "a3")], edit("one", "b1")
    state = fold(edit(None, "one"), here[0], there, *here[1:])
    assert state.text == join("a3", "b1")
    for file in ("one", "a1", "a2", "a3", "b1"):
        assert compare(state, file.encode()) == "stale", file


def test_edits_of_three_machines_are_all_kept() -> None:
    apart = [edit("one", text) for text in ("a", "b", "c")]
    state = fold(edit(None, "one"), *apart)
    assert state.text == join(join("a", "b"), "c")
    assert fold(edit(None, "one"), *apart, edit(state.text, "all")).text == "all"


def test_a_version_that_becomes_equal_to_the_other_is_no_version_of_its_own() -> None:
    state = fold(edit(None, "one"), edit("one", "a"), edit("one", "b"), edit("b", "a"))
    assert (state.text, len(state.versions)) == ("a", 1)


def test_the_same_edit_on_two_machines_is_one() -> None:
    state = fold(edit(None, "one"), edit("one", "two"), edit("one", "two"))
    assert state.text == "two"


def test_a_first_text_needs_no_base_and_may_name_the_empty_one() -> None:
    assert fold(edit(None, "one")).text == fold(edit("", "one")).text == "one"
    assert fold(edit(None, "one"), edit(None, "two")).text == join("one", "two")


@given(st.lists(st.text(max_size=3), max_size=40))
def test_every_earlier_text_is_stale_and_never_a_hand_edit(texts: list[str]) -> None:
    before: list[str] = [""]
    edits: list[Memory] = []
    for text in texts:
        edits.append(edit(before[-1], text))
        before.append(text)
    state = fold(*edits)
    assert state.text == before[-1]
    for text in before:
        expected = "equal" if text == before[-1] else "stale"
        assert compare(state, text.encode()) == expected
    assert sum(map(len, state.earlier)) <= len(texts)
    assert len(state.earlier) <= 1 + len(texts).bit_length()


def test_the_digest_is_that_of_the_bytes() -> None:
    assert working_memory.digest_of("é") == sha256("é".encode()).hexdigest()
