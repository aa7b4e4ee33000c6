"""The Chat Completions API as a strict server speaks it."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.testing.strict.api import bearer, is_json
from sojourn.testing.strict.faults import FailKind
from sojourn.testing.strict.openai_chat import wire as bytes_of
from sojourn.testing.strict.openai_chat.checker import check, in_words
from sojourn.testing.strict.openai_chat.hosts import HostRules
from sojourn.testing.strict.refusal import Refusal, Refused, Rule
from sojourn.testing.strict.reply import Reply, Wire


@dataclass(frozen=True, slots=True)
class ChatApi:
    """Answers as the Chat Completions API of this host does."""

    host: HostRules

    @property
    def name(self) -> str:
        return "openai"

    @property
    def max_bytes(self) -> int:
        return self.host.max_bytes

    def check(self, payload: object) -> Refusal | None:
        return check(payload, host=self.host)

    def check_headers(
        self, headers: Mapping[str, str], keys: frozenset[str] | None
    ) -> Refusal | None:
        key = bearer(headers)
        if not key and self.host.key_needed:
            words = "You didn't provide an API key. Provide it in an Authorization header using"
            return _refusal(401, Rule.KEY_MISSING, f"{words} Bearer auth.")
        if keys is not None and key not in keys:
            words = "Incorrect API key provided."
            return _refusal(401, Rule.KEY_WRONG, words, code="invalid_api_key")
        if not is_json(headers):
            words = "Unsupported content type: must be 'application/json'."
            return _refusal(415, Rule.CONTENT_TYPE, words)
        return None

    def unknown_model(self, model: str) -> Refusal:
        words = f"The model `{model}` does not exist or you do not have access to it."
        return _refusal(404, Rule.UNKNOWN_MODEL, words, code="model_not_found")

    def in_words(self, refused: Refused) -> Refusal:
        return in_words(refused)

    def refusal_body(self, refusal: Refusal, seed: str) -> bytes:
        del seed  # this API's errors carry no id
        return bytes_of.refusal_body(refusal, self.host)

    def failure(self, kind: FailKind, seed: str) -> tuple[int, bytes]:
        del seed
        return bytes_of.FAILURES[kind][0], bytes_of.failure_body(kind, self.host)

    def error_event(self, kind: FailKind) -> bytes:
        return bytes_of.error_event(kind)

    def whole(self, reply: Reply, wire: Wire) -> bytes:
        return bytes_of.whole(reply, wire, self.host)

    def events(self, reply: Reply, wire: Wire) -> list[bytes]:
        return bytes_of.events(reply, wire, self.host)


def _refusal(status: int, rule: Rule, message: str, code: str | None = None) -> Refusal:
    kind = "invalid_request_error"
    return Refusal(status=status, type=kind, message=message, rule=rule, code=code)
