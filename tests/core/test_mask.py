import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sojourn.core.mask import Mask, secret_values
from sojourn.format.environment import is_secret_name

VALUE = 'sk-ant/0+9 é"\\\nend'
MASK = Mask({"ANTHROPIC_API_KEY": VALUE, "OTHER_TOKEN": "sk-ant/0+9"})
SHOWN = "[masked ANTHROPIC_API_KEY]"


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "APIKEY",
        "github_token",
        "AWS_SECRET_ACCESS_KEY",
        "TOKENS",
        "DB_PASSWORD_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "X_PASSWD",
    ],
)
def test_a_part_that_ends_in_a_secret_word_makes_a_secret_name(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "PATH", "KEYBOARD", "PASS", "LC_ALL"])
def test_other_names_are_none(name: str) -> None:
    assert not is_secret_name(name)


def test_only_long_values_of_secret_names_are_masked() -> None:
    environment = {"A_KEY": "12345678", "B_KEY": "1234567", "HOME": "/long/enough"}
    assert secret_values(environment) == {"A_KEY": "12345678"}
    assert Mask({"B_KEY": "1234567", "C_KEY": ""}).text("1234567") == "1234567"


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        quote(VALUE, safe="").lower(),
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        json.dumps(VALUE)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(VALUE)[1:-1])[1:-1],
        base64.b64encode(VALUE.encode()).decode(),
        base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
    ],
)
def test_every_form_of_a_value_is_masked_in_text_and_bytes(form: str) -> None:
    assert MASK.text(f"a {form} b") == f"a {SHOWN} b"
    assert MASK.data(f"a {form} b".encode()) == f"a {SHOWN} b".encode()


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("behind", ["", "x", "xy"])
def test_a_value_inside_longer_base64_is_masked(before: str, behind: str) -> None:
    whole = base64.b64encode((before + VALUE + behind).encode()).decode()
    masked = MASK.text(whole)
    assert "[masked ANTHROPIC_API_KEY]" in masked
    left = masked.replace(SHOWN, "")
    assert len(left) <= 4 * (len(before) + len(behind)) // 3 + 6


def test_the_longer_of_two_values_is_masked_whole() -> None:
    assert MASK.text("sk-ant/0+9") == "[masked OTHER_TOKEN]"
    assert MASK.text(VALUE) == SHOWN


def test_a_newline_at_the_end_of_a_value_is_not_part_of_it() -> None:
    assert Mask({"A_KEY": "12345678\n"}).text("<12345678>") == "<[masked A_KEY]>"


def test_bytes_that_are_no_text_are_kept() -> None:
    data = b"\xff\x00" + VALUE.encode() + b"\xfe"
    assert MASK.data(data) == b"\xff\x00" + SHOWN.encode() + b"\xfe"


def test_odd_bytes_of_the_environment_are_masked() -> None:
    value = b"12345678\xff".decode(errors="surrogateescape")
    mask = Mask({"A_KEY": value})
    assert mask.data(b"<12345678\xff>") == b"<[masked A_KEY]>"
    assert mask.text("<12345678\N{REPLACEMENT CHARACTER}>") == "<[masked A_KEY]>"


STREAM = Mask({"A_KEY": "abababac", "B_KEY": "abababacabab", "C_KEY": "cabcabcabd"})


@given(st.lists(st.text("abcd", max_size=12), max_size=12))
@example(["abababac", "aba", "b"])
@example(["abababa", "cabab", "cabcabcab", "d"])
def test_a_stream_masks_what_the_whole_text_does(pieces: list[str]) -> None:
    stream, octets = STREAM.text_stream(), STREAM.data_stream()
    shown = [stream.feed(piece) for piece in pieces] + [stream.flush()]
    assert "".join(shown) == STREAM.text("".join(pieces))
    data = [octets.feed(piece.encode()) for piece in pieces] + [octets.flush()]
    assert b"".join(data).decode() == STREAM.text("".join(pieces))


def test_a_stream_holds_back_only_what_may_become_a_value() -> None:
    stream = STREAM.text_stream()
    assert stream.feed("hello abab") == "hello "
    assert stream.feed("x") == "ababx"
    assert stream.flush() == ""


def test_no_values_mask_nothing() -> None:
    none = Mask({})
    assert none.text("abc") == "abc"
    assert none.data(b"abc") == b"abc"
    assert none.text_stream().feed("abc") == "abc"
