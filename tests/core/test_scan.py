"""Likely secrets are found, and ordinary text is left alone."""

import random
import string

import pytest

from sojourn.core.scan import find_secrets

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
