"""The notes are what the memory events make them, whatever the order of two edits."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from sojourn.format import working_memory
from sojourn.format.event import Memory
from sojourn.format.joining import AGAIN, join, sections
from sojourn.format.parts import BlobRef, Text
from sojourn.format.working_memory import EMPTY, START, Fold, add, compare, digest_of
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
    assert state.text == join("one", "two", "three")
    assert state.digest == digest_of(join("one", "two", "three"))
    assert "<<<" not in str(state.text)
    assert compare(state, b"two \n") == "stale"


def test_an_edit_of_the_joined_text_continues_it() -> None:
    joined = join("one", "two", LONG)
    state = fold(edit(None, "one"), edit("one", "two"), edit("one", REF), edit(joined, "four"))
    assert state.text == "four"


def test_an_edit_of_one_version_takes_its_place_beside_the_other() -> None:
    here, there = [edit("one", "a1"), edit("a1", "a2"), edit("a2", "a3")], edit("one", "b1")
    state = fold(edit(None, "one"), here[0], there, *here[1:])
    assert state.text == join("one", "a3", "b1")
    for file in ("one", "a1", "a2", "a3", "b1"):
        assert compare(state, file.encode()) == "stale", file


def test_edits_of_three_machines_are_all_kept() -> None:
    apart = [edit("one", text) for text in ("a", "b", "c")]
    state = fold(edit(None, "one"), *apart)
    assert state.text == join("one", join("one", "a", "b"), "c")
    assert fold(edit(None, "one"), *apart, edit(state.text, "all")).text == "all"


BASE = "Top\n\n# Plans\n\nnone\n\n# People\n\nnobody\n"


def test_sections_that_one_side_changed_are_taken_from_it_and_the_rest_is_kept_twice() -> None:
    here = BASE.replace("none", "buy milk") + "\n## Later\n\nsleep\n"
    there = BASE.replace("none", "buy tea").replace("nobody", "the neighbour").replace("Top", "")
    state = fold(edit(None, BASE), edit(BASE, here), edit(BASE, there))
    assert state.text == (
        f"# Plans\n\nbuy milk\n\n{AGAIN}\n\nbuy tea\n\n# People\n\nthe neighbour\n\n"
        "## Later\n\nsleep\n"
    )


def test_the_base_is_the_text_that_the_second_edit_was_made_of() -> None:
    """Not the first text of all: what one side wrote before they parted is no edit of it."""
    later = BASE.replace("none", "buy milk")
    here, there = later.replace("nobody", "you"), later.replace("buy milk", "none")
    edits = (edit(None, BASE), edit(BASE, later), edit(later, here), edit(later, there))
    assert fold(*edits).text == BASE.replace("nobody", "you")


def test_a_section_that_one_side_took_away_and_the_other_changed_is_kept() -> None:
    without, changed = BASE[: BASE.index("# People")], BASE.replace("nobody", "you")
    assert join(BASE, without, changed) == join(BASE, changed, without) == changed
    assert join(BASE, without, BASE) == join(BASE, BASE, without) == without.strip() + "\n"


def test_a_section_that_only_the_second_has_follows_the_one_that_it_follows_there() -> None:
    one, other = "# a\n\n# b\n", "# new\n\n# a\n\n## x\n\n# b\n\n# a\n\nagain\n"
    assert [*sections(join("", one, other))] == [
        ("# new", 0),
        ("# a", 0),
        ("## x", 0),
        ("# b", 0),
        ("# a", 1),
    ]


WORDS = st.lists(st.sampled_from(("one", "two", "three", "  ", "")), max_size=3).map("\n".join)
TITLES = st.lists(st.sampled_from(("# a", "# b", "## c", "#!")), max_size=5, unique=True)
TEXTS = (
    st.lists(st.just(""), max_size=1)
    .flatmap(lambda top: TITLES.map(top.__add__))
    .flatmap(
        lambda titles: st.tuples(*(WORDS for _ in titles)).map(
            lambda bodies: "\n".join(f"{t}\n{b}" for t, b in zip(titles, bodies, strict=True))
        )
    )
)


@given(TEXTS, TEXTS, TEXTS)
def test_a_join_keeps_every_edit_of_both_sides_whichever_comes_first(
    base: str, here: str, there: str
) -> None:
    before, ours, theirs = sections(base), sections(here), sections(there)
    for first, second in ((here, there), (there, here)):
        joined = sections(join(base, first, second))
        assert set(joined) <= {*ours, *theirs}
        for name in {*ours, *theirs}:
            sides = {ours.get(name), theirs.get(name)}
            edits = sides - {before.get(name)} or sides
            found = joined.get(name, "")
            for edited in edits - {None}:
                lines = [line.strip() for line in str(edited).split("\n")[1:]]
                assert all(line in found for line in lines)
            if len(edits) == 1:
                assert joined.get(name) == next(iter(edits))
    assert sections(join(base, here, there)).keys() == sections(join(base, there, here)).keys()


@given(TEXTS, TEXTS)
def test_an_edit_beside_no_edit_is_just_that_edit(base: str, text: str) -> None:
    for joined in (join(base, text, base), join(base, base, text), join(base, text, text)):
        assert sections(joined) == sections(text)


def test_a_version_that_becomes_equal_to_the_other_is_no_version_of_its_own() -> None:
    state = fold(edit(None, "one"), edit("one", "a"), edit("one", "b"), edit("b", "a"))
    assert (state.text, len(state.versions)) == ("a", 1)


def test_the_same_edit_on_two_machines_is_one() -> None:
    state = fold(edit(None, "one"), edit("one", "two"), edit("one", "two"))
    assert state.text == "two"


def test_a_first_text_needs_no_base_and_may_name_the_empty_one() -> None:
    assert fold(edit(None, "one")).text == fold(edit("", "one")).text == "one"
    assert fold(edit(None, "one"), edit(None, "two")).text == join("", "one", "two")


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
