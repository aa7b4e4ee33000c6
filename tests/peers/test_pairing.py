"""The code of a pairing: equal for two who speak with each other, different for anybody between."""

import os

from hypothesis import given
from hypothesis import strategies as st

from sojourn.peers.pairing import Side, code, commitment


def side(key: bytes | None = None, certificate: bytes = b"c", nonce: str = "") -> Side:
    return Side(
        key=os.urandom(32) if key is None else key,
        certificate=certificate,
        nonce=nonce or os.urandom(32).hex(),
    )


def test_a_code_is_eight_digits_in_two_groups() -> None:
    first, second = code(asks=side(), answers=side()).split(" ")
    assert len(first) == len(second) == 4
    assert (first + second).isdecimal()


def test_both_ends_of_one_pairing_have_the_same_code() -> None:
    asks, answers = side(), side()
    assert code(asks=asks, answers=answers) == code(asks=asks, answers=answers)


def test_whoever_stands_between_two_makes_their_codes_differ() -> None:
    asks, answers, between = side(), side(), side()
    for _ in range(50):
        one = code(asks=asks, answers=side(between.key))
        other = code(asks=side(between.key), answers=answers)
        assert one != other


@given(st.sampled_from(["key", "certificate", "nonce"]))
def test_the_first_word_binds_key_certificate_and_nonce(what: str) -> None:
    true = side(b"k" * 32, b"c", "a" * 64)
    other = side(
        b"l" * 32 if what == "key" else b"k" * 32,
        b"d" if what == "certificate" else b"c",
        "b" * 64 if what == "nonce" else "a" * 64,
    )
    assert commitment(true) != commitment(other)
    assert code(asks=true, answers=true) != code(asks=other, answers=true)
    assert code(asks=true, answers=true) != code(asks=true, answers=other)


def test_the_two_sides_are_not_exchangeable() -> None:
    one, other = side(), side()
    assert code(asks=one, answers=other) != code(asks=other, answers=one)
