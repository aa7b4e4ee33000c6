"""The OpenAI Chat Completions API and hosts that copy it: a pure checker and the reply's bytes."""

from sojourn.testing.strict.openai_chat.checker import check
from sojourn.testing.strict.openai_chat.hosts import HOSTS, HostRules

__all__ = ["HOSTS", "HostRules", "check"]
