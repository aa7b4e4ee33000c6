"""Profiles: which one a model gets, and that each names a dialect that exists."""

import pytest

from sojourn.render import dialects
from sojourn.render.profile import PROFILES, profile_for


def test_every_profile_is_named_as_it_is_listed_and_has_a_dialect() -> None:
    for name, profile in PROFILES.items():
        assert profile.name == name
        assert profile.dialect in dialects()


@pytest.mark.parametrize(
    ("provider", "model", "profile"),
    [
        ("anthropic", "claude-sonnet-4-5", "anthropic"),
        ("anthropic", "claude-opus-4-20250514", "anthropic"),
        ("anthropic", "claude-3-7-sonnet-latest", "anthropic"),
        ("anthropic", "claude-opus-4-6", "anthropic_adaptive"),
        ("anthropic", "claude-opus-4-8", "anthropic_adaptive"),
        ("anthropic", "claude-fable-5-2", "anthropic_adaptive"),
        ("anthropic", "glm-5", "anthropic"),
        ("openai", "gpt-4.1", "openai"),
        ("openai", "gpt-5.5", "openai_reasoning"),
        ("openai", "o3", "openai_reasoning"),
        ("openai", "openai/o4-mini", "openai_reasoning"),
        ("deepseek", "deepseek-v4", "deepseek"),
        ("deepseek", "deepseek-r1", "deepseek_r1"),
        ("kimi", "kimi-k2-thinking", "kimi"),
        ("ollama", "qwen3", "ollama"),
        ("openai-compatible", "anything", "compatible"),
        ("scripted", "demo.json", "scripted"),
    ],
)
def test_a_model_gets_the_profile_of_its_host(provider: str, model: str, profile: str) -> None:
    assert profile_for(provider, model).name == profile


def test_the_cautious_limits_hold_on_every_host() -> None:
    for profile in PROFILES.values():
        assert 9 <= profile.id_max <= (64 if profile.dialect == "anthropic" else 40)
        assert profile.name_max <= 64
        assert set(profile.id_signs) <= set("_-")
