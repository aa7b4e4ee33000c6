"""Strict fakes: loopback servers that refuse what the real providers refuse.

For people who test their own agents. `StrictServer` (or `serve_in_thread`) answers on the paths of
the Anthropic Messages API and of the OpenAI Chat Completions API, streamed and not, with the
replies it is given and the faults it is told to make; what the real API would refuse it refuses, in
the same words, and records it. `anthropic.check` and `openai_chat.check` are the rules alone,
without any server.
"""

from sojourn.testing.strict.answers import Recorded
from sojourn.testing.strict.anthropic.rules import AnthropicRules
from sojourn.testing.strict.faults import (
    Cut,
    End,
    Fail,
    Fault,
    Garbage,
    Gate,
    Hold,
    StreamError,
    Trickle,
)
from sojourn.testing.strict.openai_chat.hosts import HOSTS, HostRules
from sojourn.testing.strict.refusal import Refusal, Rule
from sojourn.testing.strict.reply import Reply, ToolCall, in_order
from sojourn.testing.strict.server import StrictServer, serve_in_thread
from sojourn.testing.strict.signatures import redact, sign

__all__ = [
    "HOSTS",
    "AnthropicRules",
    "Cut",
    "End",
    "Fail",
    "Fault",
    "Garbage",
    "Gate",
    "Hold",
    "HostRules",
    "Recorded",
    "Refusal",
    "Reply",
    "Rule",
    "StreamError",
    "StrictServer",
    "ToolCall",
    "Trickle",
    "in_order",
    "redact",
    "serve_in_thread",
    "sign",
]
