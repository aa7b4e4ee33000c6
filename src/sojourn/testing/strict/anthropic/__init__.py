"""The Anthropic Messages API, as strict as the real one: a pure checker and the reply's bytes."""

from sojourn.testing.strict.anthropic.checker import check
from sojourn.testing.strict.anthropic.rules import AnthropicRules

__all__ = ["AnthropicRules", "check"]
