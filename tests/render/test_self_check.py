"""The last look finds on its own what a missing pass leaves behind, and passes what is sound."""

import msgspec
import pytest

from render.vectors import requests
from sojourn.errors import CallError, FormatError, UsageError
from sojourn.ids import CallKey, EventId
from sojourn.render import Target, dialect, dialects, render_bytes
from sojourn.render.check import Seen, self_check
from sojourn.render.draft import (
    Answer,
    Answers,
    Ask,
    Draft,
    FromModel,
    FromUser,
    Message,
    Pass,
    Piece,
    Words,
)
from sojourn.render.pairs import drop_unfinished, hold_messages, mend_ends, repair_pairs
from sojourn.render.private import filter_private
from sojourn.render.prompt import PASSES, prepare
from sojourn.render.text import clean_text, omit_empty
from sojourn.render.wire_ids import map_ids, offer_stubs

SEEN = (
    filter_private,
    repair_pairs,
    hold_messages,
    map_ids,
    offer_stubs,
    clean_text,
    omit_empty,
    mend_ends,
)


@pytest.mark.parametrize("left_out", SEEN, ids=lambda one: one.__name__)
def test_what_a_missing_pass_leaves_is_found_before_it_is_sent(left_out: Pass) -> None:
    passes = tuple(one for one in PASSES if one is not left_out)
    found = 0
    for vector in requests():
        draft = prepare(vector.prompt, vector.target, vector.blobs, passes=passes)
        try:
            self_check(draft, vector.target)
        except CallError as error:
            assert error.code == "request_unsound"
            assert not error.retry
            found += 1
    assert found


def test_the_passes_that_the_check_sees_are_passes() -> None:
    assert set(SEEN) < set(PASSES)
    assert drop_unfinished in PASSES


KEY, EVENT = CallKey("k"), EventId("e")
ASK = Ask(KEY, "id_1", "read", "{}")
GOOD = Answer(KEY, "id_1", "read", failed=False, pieces=(Words("x"),))
LATE = Answer(KEY, "id_2", "read", failed=False, pieces=(Words("x"),))
GO = FromUser(None, (Words("go"),))


def said(*pieces: Piece) -> FromModel:
    return FromModel(EVENT, own=True, completed=True, stop="rest", pieces=pieces, calls=())


def results(*answers: Answer) -> Answers:
    return Answers(EVENT, answers)


def plain() -> tuple[Draft, Target]:
    vector = next(one for one in requests() if one.path.stem == "plain-turn-anthropic")
    return prepare(vector.prompt, vector.target, vector.blobs), vector.target


def test_a_sound_draft_passes() -> None:
    draft, target = plain()
    self_check(draft, target)
    self_check(with_messages(draft, GO, said(Words("x"), ASK), results(GOOD)), target)


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (said(Words("first")), GO),
        (GO, said(ASK)),
        (GO, said(ASK), GO),
        (GO, said(ASK), results()),
        (GO, said(ASK), results(GOOD, GOOD)),
        (GO, said(ASK), results(LATE)),
        (GO, results(GOOD)),
        (GO, said(Words("x")), said(Words("y")), GO),
        (GO, said(Words("x"))),
        (GO, said(), GO),
        (GO, said(ASK), results(GOOD), GO, said(ASK), results(GOOD)),
        (FromUser(None, (Words(" "),)),),
        (FromUser(None, (Words("\ud800"),)),),
    ],
)
def test_planted_faults_are_found(messages: tuple[Message, ...]) -> None:
    draft, target = plain()
    with pytest.raises(CallError) as caught:
        self_check(with_messages(draft, *messages), target)
    assert caught.value.code == "request_unsound"


LONG = (GO, said(Words("x"), ASK), results(GOOD), *(said(Words("y")), GO) * 9)


@pytest.mark.parametrize(
    "messages",
    [
        (FromUser(None, (Words(" "),)), *LONG[1:]),
        (GO, said(ASK), *LONG[3:]),
        (GO, said(Words("x"), ASK), results(LATE), *LONG[3:]),
        (*LONG, said(ASK), results(GOOD)),
        (*LONG, said()),
        (*LONG, said(Words("z"))),
    ],
)
def test_faults_before_and_behind_what_was_seen_are_found(messages: tuple[Message, ...]) -> None:
    draft, target = plain()
    seen = Seen()
    for _ in range(2):
        self_check(with_messages(draft, *LONG), target, seen)
    assert len(seen.messages) == len(LONG) - 2
    with pytest.raises(CallError) as caught:
        self_check(with_messages(draft, *messages), target, seen)
    assert caught.value.code == "request_unsound"


def with_messages(draft: Draft, *messages: Message) -> Draft:
    return msgspec.structs.replace(draft, messages=messages)


def test_a_log_that_asks_for_one_call_twice_is_not_sent() -> None:
    vector = next(one for one in requests() if one.path.stem == "plain-turn-anthropic")
    twice = msgspec.structs.replace(vector.prompt, entries=[*vector.prompt.entries] * 2)
    with pytest.raises(CallError) as caught:
        vector.dialect.render(twice, vector.target, vector.blobs)
    assert caught.value.code == "request_unsound"


def test_a_blob_that_was_not_given_is_named() -> None:
    vector = next(one for one in requests() if one.blobs)
    with pytest.raises(FormatError) as caught:
        vector.dialect.render(vector.prompt, vector.target, {})
    assert caught.value.code == "blob_missing"
    assert caught.value.file is not None
    assert caught.value.file.removeprefix("artifacts/blobs/") in vector.blobs


def test_dialects_are_found_by_name_and_an_unknown_one_is_refused() -> None:
    assert dialects() == ("anthropic", "openai_chat")
    assert [dialect(name).name for name in dialects()] == list(dialects())
    with pytest.raises(UsageError) as caught:
        dialect("gopher")
    assert caught.value.code == "unknown_dialect"


def test_bytes_are_compact_utf8_in_the_order_of_the_keys() -> None:
    assert (
        render_bytes({"b": "é😀", "a": [1, 2.5, None]}) == '{"b":"é😀","a":[1,2.5,null]}'.encode()
    )
    with pytest.raises(ValueError, match="JSON"):
        render_bytes({"a": float("nan")})
