"""Where a provider is reached and with which key follows from the environment alone."""

import pytest

from sojourn.errors import CallError, SojournError, UsageError
from sojourn.models.providers import PROVIDERS, Place, find_place

OLLAMA = "http://127.0.0.1:11434/v1/chat/completions"


def place(name: str, **environment: str) -> Place:
    return find_place(PROVIDERS[name], environment)


def code_of(name: str, **environment: str) -> str:
    with pytest.raises(SojournError) as caught:
        place(name, **environment)
    return caught.value.code


def test_a_provider_has_its_own_address_and_the_default_scope() -> None:
    found = place("anthropic", ANTHROPIC_API_KEY="k")
    assert found.url == "https://api.anthropic.com/v1/messages"
    assert (found.scope, found.variable) == ("default", "ANTHROPIC_BASE_URL")


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("http://h:1", "http://h:1/v1/messages"),
        ("http://h:1/v1/", "http://h:1/v1/messages"),
        ("HTTPS://H.example:443/proxy", "https://h.example/proxy/v1/messages"),
    ],
)
def test_an_anthropic_address_is_taken_with_and_without_its_version(value: str, url: str) -> None:
    assert place("anthropic", ANTHROPIC_BASE_URL=value).url == url


def test_another_address_has_a_scope_that_does_not_name_it() -> None:
    found = place("openai", OPENAI_BASE_URL="http://gpu-7.example:8000/v1/")
    assert found.url == "http://gpu-7.example:8000/v1/chat/completions"
    assert found.scope.startswith("at-") and len(found.scope) == 15
    assert "gpu" not in found.scope
    same = place("openai", OPENAI_BASE_URL="HTTP://GPU-7.example:8000/v1")
    other = place("openai", OPENAI_BASE_URL="http://gpu-8.example:8000/v1")
    assert same.scope == found.scope != other.scope


def test_a_variable_that_repeats_the_own_address_changes_nothing() -> None:
    found = place("openai", OPENAI_BASE_URL="https://api.openai.com:443/v1/", OPENAI_API_KEY="k")
    assert found.scope == "default"


def test_an_account_alias_is_part_of_the_scope() -> None:
    found = place("openai", OPENAI_API_KEY="k", SOJOURN_ACCOUNT="work")
    assert found.scope == "default+work"
    assert code_of("ollama", SOJOURN_ACCOUNT="not an alias") == "account_malformed"


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("", OLLAMA),
        ("127.0.0.1", OLLAMA),
        ("0.0.0.0", OLLAMA),
        ("0.0.0.0:11434", OLLAMA),
        (":11434", OLLAMA),
        ("http://127.0.0.1:11434/", OLLAMA),
        ("http://127.0.0.1:11434/v1", OLLAMA),
        (":9", "http://127.0.0.1:9/v1/chat/completions"),
        ("box:80", "http://box/v1/chat/completions"),
        ("https://box", "https://box/v1/chat/completions"),
        ("https://box/ollama", "https://box/ollama/v1/chat/completions"),
        ("[::1]", "http://[::1]:11434/v1/chat/completions"),
        ("[::1]:5", "http://[::1]:5/v1/chat/completions"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(value: str, url: str) -> None:
    found = place("ollama", OLLAMA_HOST=value)
    assert found.url == url
    assert (found.scope == "default") is (url == OLLAMA)


@pytest.mark.parametrize(
    "value",
    [
        "box",
        "ftp://box",
        "http://",
        "http://u:pw@box/v1",
        "http://box/v1?k=1",
        "http://box:x/v1",
        "http://a..b/v1",
        "http://-box/v1",
        "http://" + "x" * 64,
        "http://bücher.example",
        "http://[::1/v1",
        "http://[::g]/v1",
    ],
)
def test_an_address_that_is_none_is_refused_by_the_name_of_its_variable(value: str) -> None:
    with pytest.raises(UsageError, match="OPENAI_BASE_URL") as caught:
        place("openai", OPENAI_BASE_URL=value)
    assert caught.value.code == "base_url_malformed"
    assert "pw" not in f"{caught.value.message}{caught.value.hint}"


def test_a_compatible_host_needs_an_address() -> None:
    assert code_of("openai-compatible") == "base_url_missing"


def test_a_key_is_wanted_only_where_the_provider_itself_answers() -> None:
    assert code_of("openai", OPENAI_API_KEY="  ") == "key_missing"
    assert place("openai", OPENAI_BASE_URL="http://127.0.0.1:1/v1").key is None
    assert place("llamacpp").key is None


def test_a_missing_key_names_every_variable_that_was_looked_for() -> None:
    with pytest.raises(CallError, match="ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN") as caught:
        place("anthropic")
    assert caught.value.exit == 6


def test_each_kind_of_key_has_its_header() -> None:
    headers = {
        "x-api-key": place("anthropic", ANTHROPIC_API_KEY=" k\n", ANTHROPIC_AUTH_TOKEN="t").key,
        "Authorization": place("anthropic", ANTHROPIC_AUTH_TOKEN="t").key,
    }
    found = {name: key.header() for name, key in headers.items() if key is not None}
    assert found == {
        "x-api-key": ("x-api-key", "k"),
        "Authorization": ("Authorization", "Bearer t"),
    }


@pytest.mark.parametrize("value", ["a b", "a\nb", "schlüssel", "a\x7f"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(CallError) as caught:
        place("openai", OPENAI_API_KEY=value)
    assert caught.value.code == "key_malformed"
    assert value not in f"{caught.value.message}{caught.value.hint}"


def test_a_place_shows_its_key_by_the_name_of_the_variable() -> None:
    found = place("openai", OPENAI_API_KEY="sk-secret")
    assert "Key(OPENAI_API_KEY)" in repr(found) and "sk-secret" not in repr(found)
