"""Likely secrets are found, and ordinary text is left alone."""

import random
import string
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.core import scan
from sojourn.core.scan import Hit, find_secrets, may_hold_secret

LETTERS = string.ascii_letters + string.digits


def made(length: int, letters: str = LETTERS, seed: int = 1) -> str:
    """Letters that look random and are the same each time; no real key."""
    return "".join(random.Random(seed).choices(letters, k=length))


KEYS = {
    "Anthropic key": "sk-ant-" + "api03-" + made(40),
    "OpenAI key": "sk-" + "proj-" + made(40),
    "AWS key id": "AKIA" + made(16, string.ascii_uppercase + "234567"),
    "Google key": "AIza" + made(35),
    "Google OAuth secret": "GOCSPX-" + made(28),
    "GitHub token": "ghp_" + made(36),
    "GitLab token": "glpat-" + made(20),
    "Slack token": "xoxb-" + made(24),
    "Slack address": "https://hooks.slack.com/services/T"
    + made(9)
    + "/B"
    + made(9)
    + "/"
    + made(24),
    "Stripe key": "sk_live_" + made(24),
    "SendGrid key": "SG." + made(22) + "." + made(43),
    "Hugging Face token": "hf_" + made(34),
    "npm token": "npm_" + made(36),
    "PyPI token": "pypi-AgE" + made(60),
    "Docker token": "dckr_pat_" + made(27),
    "DigitalOcean token": "dop_v1_" + made(64, "0123456789abcdef"),
    "Telegram token": "123456789:AA" + made(33),
    "groq key": "gsk_" + made(52),
    "xAI key": "xai-" + made(80),
    "JSON web token": "eyJ" + made(20) + ".eyJ" + made(40) + "." + made(43),
    "private key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "age key": "AGE-SECRET-KEY-1" + made(58, string.ascii_uppercase + string.digits),
    "password in an address": "postgres://app:" + made(10) + "@db.internal/x",
    "authorization": "Authorization: Bearer " + made(30),
}


@pytest.mark.parametrize("rule", KEYS)
@pytest.mark.parametrize("frame", ["{}", 'the key is "{}", keep it', '{{"a":"{}"}}', "x=\n{}\n"])
def test_each_kind_of_key_is_found_once_where_it_stands(rule: str, frame: str) -> None:
    text = frame.format(KEYS[rule])
    found = list(find_secrets(text))
    assert [hit.rule for hit in found] == [rule]
    assert text[found[0].start : found[0].end] in KEYS[rule]


def plainly(text: str) -> Iterator[Hit]:
    """Every rule tried at every place, without a quick look first."""
    taken: list[tuple[int, int]] = []

    def free(start: int, end: int) -> bool:
        return all(end <= other or other_end <= start for other, other_end in taken)

    tries = (
        (rule, form, at)
        for rule, marks, form in scan._COMPILED
        for mark in marks
        for at in range(len(text))
        if text.startswith(mark, at)
    )
    for rule, form, at in tries:
        match = form.search(text, max(0, at - scan._BEFORE), at + scan.LONGEST)
        while match is not None and match.end() <= at:
            match = form.search(text, match.end(), at + scan.LONGEST)
        if match is None or match.start() > at or not free(*match.span()):
            continue
        if scan._is_random(rule, match[0]):
            taken.append(match.span())
            yield Hit(rule, *match.span())
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(c.lower() if c.isascii() else c for c in text)
    for at in range(len(text)):
        if lower.startswith(scan._NAMES, at):
            match = scan._ASSIGNMENT.match(text, at)
            if match is None or not free(*match.span("value")):
                continue
            if scan._looks_random(match["value"]):
                taken.append(match.span("value"))
                yield Hit(scan.ASSIGNED, *match.span("value"))


MARKS = [mark for _, marks, _ in scan._COMPILED for mark in marks]
NAMES = ["token", "SECRET", "passWord", "pass", "passphrase", "api_key", "Credentials", "auth-Key",
    "to\u212aen", "pa\u017f\u017fword", "client_secret_of_the_other_side_it"]  # fmt: skip
PIECES = st.one_of(
    st.sampled_from(sorted(KEYS.values())),
    st.sampled_from(sorted(KEYS.values())).flatmap(
        lambda key: st.integers(0, len(key)).map(lambda cut: key[:cut])
    ),
    st.sampled_from(MARKS),
    st.sampled_from(NAMES),
    st.sampled_from(["=", ":", ":=", "=>", ": ", " = ", "://", "@", '"', "'", "\\", "-", "_", "."]),
    st.sampled_from(["\n", " ", "\t", "\u0130", "\xe9", "\xa0", "x", "sk", "[", "="]),
    st.text(string.ascii_letters + string.digits + "+/_.=~!-", min_size=1, max_size=60),
    st.builds(made, st.integers(14, 44), seed=st.integers(0, 9)),
)


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_the_quick_look_hides_nothing(text: str) -> None:
    wanted = list(plainly(text))
    assert list(find_secrets(text)) == wanted
    assert may_hold_secret(text) or not wanted


@given(st.lists(st.lists(PIECES, max_size=4).map("".join), max_size=4))
def test_texts_that_are_looked_at_together_hide_nothing(texts: list[str]) -> None:
    if any(list(find_secrets(text)) for text in texts):
        assert may_hold_secret("\n".join(texts))


@pytest.mark.parametrize("rule", KEYS)
def test_each_kind_of_key_is_found_at_the_very_ends_of_a_text(rule: str) -> None:
    assert may_hold_secret(KEYS[rule])
    assert may_hold_secret(f"x\n{KEYS[rule]}")


def test_two_keys_side_by_side_are_two_findings() -> None:
    """Else one that was accepted would let the other go."""
    text = f"{KEYS['GitHub token']}\nghp_{made(36, seed=2)}\n"
    assert [hit.start for hit in find_secrets(text)] == [0, 41]


@pytest.mark.parametrize(
    "frame",
    ["API_KEY={}", "password: {}", '"client_secret": "{}"', "export DB_PASSWORD='{}'",
     "İİİ TOKEN={}", r'{{\"access_token\":\"{}\"}}', "auth-key => {}", "MY_TOKEN_V2 = {}"],
)  # fmt: skip
def test_an_assigned_value_that_looks_random_is_found(frame: str) -> None:
    value = made(24)
    text = frame.format(value)
    found = list(find_secrets(text))
    assert [(hit.rule, text[hit.start : hit.end]) for hit in found] == [("assigned secret", value)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_tokens: 8192, tokens_used=1234567890123456",
        "the token is kept by name: secrets.GH_TOKEN",
        "password = os.environ['DB_PASSWORD']",
        "api_key=your-api-key-goes-here-1234",
        "API_KEY=xxxxxxxxxxxxxxxxxxxxxxxx",
        "password: ${DB_PASSWORD}",
        "token: [masked GH_TOKEN]",
        "https://example.org:8080/path@2",
        "git@github.com:owner/name.git",
        "scheme://user:password@host".replace("password", "$PASSWORD"),
        "sk-learn and sk-image-processing-tools",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        f"sha256 {made(64, '0123456789abcdef')}",
        "key: tests/core/test_scan.py",
        "secret_values(environment: Mapping[str, str]) -> dict[str, str]",
        "primary_key = some_table.identifier_column",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert list(find_secrets(text)) == []


def test_the_repository_has_no_secret() -> None:
    """The rules do not cry wolf over sojourn's own sources."""
    from pathlib import Path

    import sojourn

    found = [
        (path.name, hit.rule, text[hit.start : hit.end])
        for path in Path(sojourn.__file__).parent.rglob("*.py")
        for text in [path.read_text("utf-8")]
        for hit in find_secrets(text)
    ]
    assert found == []
