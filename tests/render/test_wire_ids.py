"""Wire ids: legal for the target, one to one, and never changed by what comes later."""

import re
from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.ids import CallKey
from sojourn.render.profile import PROFILES, Profile
from sojourn.render.wire_ids import WireIds, wire_name

NAMED = ("anthropic", "openai", "mistral_like", "kimi")
LEGAL = {
    "anthropic": r"[a-zA-Z0-9_-]{1,64}",
    "openai": r"[a-zA-Z0-9_-]{1,40}",
    "kimi": r"[a-zA-Z0-9_-]{1,40}",
    "mistral_like": r"[a-zA-Z0-9]{9}",
}
keys = st.integers(0, 40).map(lambda n: CallKey(sha256(str(n).encode()).hexdigest()))
natives = st.one_of(
    st.none(),
    st.sampled_from(
        ("call_1", "call_1 ", "call_a|fc_b", "functions.x:0", "", "123456789", "é" * 9)
    ),
    st.text(alphabet="ab_-", min_size=38, max_size=66),
    keys.map(lambda key: WireIds(PROFILES["openai"]).take(key, None)),
    keys.map(lambda key: WireIds(PROFILES["mistral_like"]).take(key, None)),
)
asked = st.lists(st.tuples(keys, natives), max_size=30, unique_by=lambda pair: pair[0])


def given_ids(profile: Profile, calls: list[tuple[CallKey, str | None]]) -> list[str]:
    ids = WireIds(profile)
    return [ids.take(key, native) for key, native in calls]


@given(calls=asked, name=st.sampled_from(NAMED))
def test_ids_are_legal_and_one_to_one(calls: list[tuple[CallKey, str | None]], name: str) -> None:
    found = given_ids(PROFILES[name], calls)
    assert len(set(found)) == len(calls)
    assert all(re.fullmatch(LEGAL[name], one) for one in found)


@given(calls=asked, more=asked, name=st.sampled_from(NAMED))
def test_later_calls_never_change_earlier_ids(
    calls: list[tuple[CallKey, str | None]], more: list[tuple[CallKey, str | None]], name: str
) -> None:
    profile = PROFILES[name]
    assert given_ids(profile, calls + more)[: len(calls)] == given_ids(profile, calls)


def test_a_legal_native_id_is_kept_and_its_second_use_is_not() -> None:
    ids = WireIds(PROFILES["anthropic"])
    first, second = CallKey("a" * 64), CallKey("b" * 64)
    assert ids.take(first, "call_1") == "call_1"
    assert ids.take(second, "call_1") not in ("call_1", "")
    assert ids.take(first, "call_1") == "call_1"
    assert ids.of(second) == ids.take(second, None)


def test_an_id_that_looks_like_a_later_derived_one_does_not_take_it_twice() -> None:
    key, other = CallKey("a" * 64), CallKey("b" * 64)
    derived = WireIds(PROFILES["openai"]).take(key, None)
    ids = WireIds(PROFILES["openai"])
    assert ids.take(other, derived) == derived
    assert ids.take(key, None) != derived


@settings(max_examples=50)
@given(name=st.text(max_size=80), other=st.text(max_size=80))
def test_names_are_legal_and_different_ones_stay_different(name: str, other: str) -> None:
    wired = wire_name(name, longest=64)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wired)
    assert (wire_name(other, longest=64) == wired) == (name == other)
    assert wire_name(wired, longest=64) == wired
