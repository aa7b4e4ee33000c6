"""What a provider said when it refused: the many shapes of an error, read into one.

Shapes: `{"error": {"message", "type", "code"}}`, `{"error": "text"}`, the same without `error`
around it, `{"detail": ...}`, a list of any of these, or plain text.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

# What the texts of providers have in common when the request is longer than the model's window
# (docs/models.md#overflow). A byte limit and a rate limit also speak of "too large" and "tokens".
OVERFLOW: Final = re.compile(
    r"""
      (prompt|input|request|messages?)\ (is\ |are\ )?too\ long
    | max(imum|\.)?\ ?(allowed\ )?(context|prompt|input|sequence)([ _-](window|token))?[ _-]length
    | max_model_len | max_prompt_tokens | max_tokens_exceeded
    | context[ _-](length|window|size|limit)[ _]?(is\ |was\ )?(overflow|exceed)
    | exceed\w*\ [^.]{0,60}(context|token\ (limit|count)|number\ of\ tokens)
    | exceed_context_size
    | token\ (count|limit)[^.]{0,60}exceed
    | (greater|larger|longer|more)\ than\ [^.]{0,40}context
    | reduce\ the\ (length|size)\ of\ (the|your)\ (messages|prompt|input)
    | too\ many\ (input\ )?tokens
    | too\ large\ for\ (the\ )?model
    | range\ of\ input\ length
    """,
    re.IGNORECASE | re.VERBOSE,
)
THROTTLED: Final = re.compile(
    r"rate.?limit|throttl|per (minute|hour|day|second)|\b[TR]P[MD]\b|quota", re.IGNORECASE
)
SPENT: Final = re.compile(
    r"insufficient.?(quota|balance|credit|fund)|credit balance|billing.?(hard.?limit|not.?active)"
    r"|out of credits",
    re.IGNORECASE,
)
POLICY: Final = re.compile(
    r"content.?(policy|filter|management)|moderation|usage polic|safety system|flagged"
    r"|cyber_policy",
    re.IGNORECASE,
)
BAD_KEY: Final = re.compile(
    r"(invalid|incorrect|wrong|no|expired).{0,12}(api|auth\w*).?key|api.?key.{0,20}"
    r"(not valid|invalid|expired|required)|authentication_error|unauthori[sz]ed",
    re.IGNORECASE,
)
NO_MODEL: Final = re.compile(
    r"model_not_found|\bmodel\b.{0,80}(not (found|exist)|does not exist)|^model: "
    r"|(unknown|no such|invalid) model|not a valid model|no endpoints found",
    re.IGNORECASE | re.DOTALL,
)
WORD: Final = re.compile(r"[^\s'\",;)]+")
HIDDEN: Final = "[key]"
SAID_CHARACTERS: Final = 8192
"""Of a provider's text no more than this is looked at."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's own words: `kind` and `code` as it names them, `message` for people."""

    kind: str = ""
    code: str = ""
    message: str = ""

    @property
    def all(self) -> str:
        """Everything that it said, to look for words in."""
        return "\n".join(text[:SAID_CHARACTERS] for text in (self.message, self.kind, self.code))


def read_refusal(body: bytes) -> Said:
    """What the body of a refusal says."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body.decode("utf-8", "replace").strip()
        return Said(message="a page of HTML" if text.startswith("<") else text)
    return read_error(value)


def read_error(value: object) -> Said:
    """What an error value of any of the known shapes says."""
    if isinstance(value, list) and value:
        return read_error(cast("list[object]", value)[0])
    if not isinstance(value, dict):
        return Said(message=value if isinstance(value, str) else "")
    fields = cast("dict[str, object]", value)
    inner = fields.get("error")
    if isinstance(inner, dict):
        return _fields(cast("dict[str, object]", inner))
    if isinstance(inner, str):
        return Said(message=inner, kind=_text(fields.get("type")))
    return _fields(fields)


def _fields(fields: Mapping[str, object]) -> Said:
    message = fields.get("message", fields.get("detail"))
    kind = _text(fields.get("type")) or _text(fields.get("status"))
    return Said(kind=kind, code=_text(fields.get("code")), message=_text(message))


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def shown(text: str, *, secrets: tuple[str, ...], limit: int) -> str:
    """A provider's text on one line, bounded, without any of the secrets.

    A provider may repeat a key half masked: words with stars, and words from where they begin as a
    secret does, are hidden too.
    """
    text = text[:SAID_CHARACTERS]
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    starts = [secret[:6] for secret in secrets if len(secret) >= 12]
    text = WORD.sub(lambda found: _hide(found[0], starts), text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _hide(word: str, starts: list[str]) -> str:
    if "***" in word:
        return HIDDEN
    for start in starts:
        before, found, _ = word.partition(start)
        word = before + HIDDEN if found else word
    return word
