"""The Messages API as a strict server speaks it."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.testing.strict.anthropic import wire as bytes_of
from sojourn.testing.strict.anthropic.checker import check, in_words
from sojourn.testing.strict.anthropic.rules import AnthropicRules
from sojourn.testing.strict.api import bearer, is_json
from sojourn.testing.strict.faults import FailKind
from sojourn.testing.strict.refusal import Refusal, Refused, Rule
from sojourn.testing.strict.reply import Reply, Wire


@dataclass(frozen=True, slots=True)
class MessagesApi:
    """Answers as the Messages API does, under these rules."""

    rules: AnthropicRules

    @property
    def name(self) -> str:
        return "anthropic"

    @property
    def max_bytes(self) -> int:
        return self.rules.max_bytes

    def check(self, payload: object) -> Refusal | None:
        return check(payload, rules=self.rules)

    def check_headers(
        self, headers: Mapping[str, str], keys: frozenset[str] | None
    ) -> Refusal | None:
        key = headers.get("x-api-key") or bearer(headers)
        if not key:
            return _denied(Rule.KEY_MISSING, "x-api-key header is required")
        if keys is not None and key not in keys:
            return _denied(Rule.KEY_WRONG, "invalid x-api-key")
        if not headers.get("anthropic-version"):
            return _refusal(400, Rule.VERSION_MISSING, "anthropic-version: header is required")
        if not is_json(headers):
            return _refusal(400, Rule.CONTENT_TYPE, "content-type: must be application/json")
        return None

    def unknown_model(self, model: str) -> Refusal:
        return Refusal(
            status=404,
            type="not_found_error",
            message=f"model: {model}",
            rule=Rule.UNKNOWN_MODEL,
        )

    def in_words(self, refused: Refused) -> Refusal:
        return in_words(refused)

    def refusal_body(self, refusal: Refusal, seed: str) -> bytes:
        return bytes_of.error_body(refusal.type, refusal.message, seed)

    def failure(self, kind: FailKind, seed: str) -> tuple[int, bytes]:
        status, name, message = bytes_of.FAILURES[kind]
        return status, bytes_of.error_body(name, message, seed)

    def error_event(self, kind: FailKind) -> bytes:
        return bytes_of.error_event(kind)

    def whole(self, reply: Reply, wire: Wire) -> bytes:
        return bytes_of.whole(reply, wire)

    def events(self, reply: Reply, wire: Wire) -> list[bytes]:
        return bytes_of.events(reply, wire)


def _refusal(status: int, rule: Rule, message: str) -> Refusal:
    return Refusal(status=status, type="invalid_request_error", message=message, rule=rule)


def _denied(rule: Rule, message: str) -> Refusal:
    return Refusal(status=401, type="authentication_error", message=message, rule=rule)
