"""A model's name leads to the model, or to an error that says what to do."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from models.loopback import Clock, Dice, saying, served
from sojourn.errors import CallError, NotFoundError, SojournError, UsageError
from sojourn.models.choose import (
    AnyModel,
    keys_seen,
    ollama_answers,
    open_model,
    provider_names,
    secret_values,
)
from sojourn.models.providers import PROVIDERS

CLOSED = {"OLLAMA_HOST": "127.0.0.1:9"}


def opened(name: str, **environment: str) -> AnyModel:
    return open_model(name, environment={**CLOSED, **environment}, clock=Clock(), randomness=Dice())


def refused(name: str, kind: type[SojournError], **environment: str) -> SojournError:
    with pytest.raises(kind) as caught:
        opened(name, **environment)
    return caught.value


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name != "openai-compatible"])
def test_every_provider_opens_with_its_key(name: str) -> None:
    model = opened(f"{name}/some/model:1", **{PROVIDERS[name].keys[0]: "k"})
    issuer = model.issuer
    assert (issuer.provider, issuer.model) == (name, "some/model:1")
    assert issuer.api == model.profile.dialect == PROVIDERS[name].dialect


def test_the_table_for_people_names_every_provider_with_its_address_and_variables() -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    for provider in PROVIDERS.values():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{provider.name}` |"))
        for word in (*provider.urls, *provider.keys, *([provider.url] if provider.url else [])):
            assert f"`{word}`" in row


def test_a_compatible_host_is_any_address() -> None:
    model = opened("openai-compatible/m", SOJOURN_BASE_URL="http://127.0.0.1:1/v1")
    assert model.issuer.scope.startswith("at-")
    assert model.profile.dialect == "openai_chat"


def test_a_provider_that_is_not_known_is_answered_with_the_nearest_and_the_list() -> None:
    error = refused("antropic/x", NotFoundError)
    assert error.code == "provider_unknown"
    assert "Did you mean anthropic?" in error.hint
    assert all(name in error.hint for name in provider_names())


@pytest.mark.parametrize("name", ["", "openai", "openai/", "gpt-5", "/x"])
def test_a_name_without_its_two_halves_is_wrong_use(name: str) -> None:
    with pytest.raises((UsageError, NotFoundError)) as caught:
        opened(name)
    assert "/NAME" in caught.value.hint or "Providers:" in caught.value.hint


def test_without_a_key_the_error_says_what_else_works() -> None:
    error = refused("anthropic/x", CallError, GROQ_API_KEY="secret-of-groq")
    assert error.code == "key_missing"
    assert "groq/NAME, scripted/FILE, echo" in error.hint
    assert "ollama" not in error.hint and "secret-of-groq" not in error.hint


def test_ollama_is_offered_when_it_answers() -> None:
    async def run() -> str:
        async with served(saying(b"")) as url:
            error = await asyncio.to_thread(
                refused, "openai/x", CallError, OLLAMA_HOST=url.removeprefix("http://")
            )
            return error.hint

    assert "ollama/NAME, which answers here" in asyncio.run(run())
    assert not ollama_answers(CLOSED)
    assert not ollama_answers({"OLLAMA_HOST": "http://u:p@nowhere"})


def test_keys_are_seen_by_name_and_given_only_for_masking() -> None:
    environment = {"OPENAI_API_KEY": "one", "XAI_API_KEY": " ", "OTHER_KEY": "two"}
    assert keys_seen(environment) == ("OPENAI_API_KEY",)
    assert secret_values(environment) == ("one",)


def test_a_scripted_model_is_known_by_the_name_of_its_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    path.write_text('{"steps": [{"text": "hi"}]}')
    issuer = opened(f"scripted/{path}").issuer
    assert (issuer.provider, issuer.model, issuer.scope) == ("scripted", "demo.json", "default")
    assert str(tmp_path) not in repr(issuer)


def test_a_script_that_is_missing_is_not_found(tmp_path: Path) -> None:
    assert refused(f"scripted/{tmp_path}/no.json", NotFoundError).code == "script_missing"


def test_opening_a_model_imports_no_http_client() -> None:
    code = (
        "import sys; from models.loopback import model_at; model_at('http://127.0.0.1:1');"
        "print([m for m in ('httpx2', 'anyio', 'rich') if m in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    assert ran.stdout.strip() == "[]"
