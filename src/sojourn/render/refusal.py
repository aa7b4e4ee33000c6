"""Every way in which a provider fails a call: one name, one sentence, one advice for each.

docs/models.md#failures is the list for people. What a provider said, with an HTTP status or inside
a stream, is read into a `Said`, and `code_of` or `code_in_stream` names the failure that it means.

Shapes of an error: `{"error": {"message", "type", "code"}}`, `{"error": "text"}`, the same without
`error` around it, `{"detail": ...}`, a list of any of these, or plain text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from sojourn.errors import CallError
from sojourn.render.source import mend

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
    r"|billing_error|out of credits",
    re.IGNORECASE,
)
POLICY: Final = re.compile(
    r"content.?(policy|filter|management)|moderation|usage polic|safety system|flagged"
    r"|cyber_policy",
    re.IGNORECASE,
)
BAD_KEY: Final = re.compile(
    r"(invalid|incorrect|wrong|no|expired).{0,12}(api|auth\w*).?key|api.?key.{0,20}"
    r"(not valid|invalid|expired|required)|authentication_error|permission_error"
    r"|unauthori[sz]ed",
    re.IGNORECASE,
)
NO_MODEL: Final = re.compile(
    r"model_not_found|\bmodel\b.{0,80}(not (found|exist)|does not exist)|^model: "
    r"|(unknown|no such|invalid) model|not a valid model|no endpoints found",
    re.IGNORECASE | re.DOTALL,
)
LIMITED: Final = frozenset({"rate_limit_error", "rate_limit_exceeded"})
BUSY: Final = frozenset({"overloaded_error", "service_unavailable"})
BROKEN: Final = frozenset({"api_error", "server_error", "internal_server_error", "timeout_error"})
SAID_CHARACTERS: Final = 8192
"""Of a provider's text no more than this is looked at."""

WORDS: Final[dict[str, tuple[str, str]]] = {
    "key_missing": ("{who} wants a key, and none was sent", "Set {key}."),
    "key_refused": ("{who} refused the key", "Check {key}; it goes to {address}."),
    "model_unknown": (
        "{who} does not know {model}, or not for this key",
        "Check the model's name.",
    ),
    "url_wrong": ("{who} has nothing at the address that was asked", "Check {address}."),
    "request_refused": ("{who} refused the request", "`sojourn context` prints what was sent."),
    "request_too_large": (
        "the request has more bytes than {who} accepts",
        "Large files and images in the log are what fills it; `sojourn context` prints it.",
    ),
    "context_overflow": (
        "the request is longer than {model} can read",
        "Go on with a model that reads more, or give it less to answer with: `max_tokens`.",
    ),
    "rate_limited": ("{who} limits how often this account may ask", "Try again later."),
    "credit_used_up": (
        "the account at {who} has no credit left",
        "Add credit to the account of {key}, or go on with another model.",
    ),
    "overloaded": ("{who} is overloaded", "Try again later, or go on with another model."),
    "server_failed": ("{who} failed inside", "Try again later, or go on with another model."),
    "refused_by_policy": (
        "{who} refused the request by its policy",
        "Asking the same again is useless: change what is asked, or the model.",
    ),
    "unreachable": ("{who} could not be reached", "Check {address} and the network."),
    "timed_out": ("{who} went silent", "Try again later."),
    "stream_cut": ("the answer of {who} broke off before its end", "Try again."),
    "stream_malformed": ("{who} did not answer as a model server does", "Check {address}."),
}
"""Message and advice for each code; the names in braces are the fields of `Facts`."""

LATER: Final = frozenset({"rate_limited", "overloaded", "server_failed", "timed_out", "stream_cut"})
"""The codes after which the same request may succeed."""

NOT_SENT: Final = "Nothing was answered: the request did not reach the provider whole."
REFUSED: Final = "The provider refused the request; nothing was answered."
MAYBE: Final = (
    "The request was sent whole: the provider may have answered it, and may charge for it."
)


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's own words: `kind` and `code` as it names them, `message` for people."""

    kind: str = ""
    code: str = ""
    message: str = ""

    @property
    def all(self) -> str:
        """Everything that it said, to look for words in."""
        return "\n".join(text[:SAID_CHARACTERS] for text in (self.message, self.kind, self.code))

    @property
    def shortest(self) -> str:
        """The best of it for people, empty when it said nothing."""
        return self.message or self.kind or self.code

    def names(self, words: frozenset[str]) -> bool:
        """Whether it calls the failure by one of these words."""
        return self.kind in words or self.code in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How the call's provider, model, key and address are called in `WORDS`."""

    who: str = "the provider"
    model: str = "the model"
    key: str = "the key"
    address: str = "the provider's address"


def words_for(code: str, facts: Facts) -> tuple[str, str]:
    """Message and advice for a code, about this call."""
    named = {
        "who": facts.who,
        "model": facts.model,
        "key": facts.key,
        "address": facts.address,
    }
    message, advice = WORDS[code]
    return message.format(**named), advice.format(**named)


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
        return Said(message=inner, kind=_text(fields.get("type")), code=_text(fields.get("code")))
    return _fields(fields)


def _fields(fields: Mapping[str, object]) -> Said:
    message = fields.get("message", fields.get("detail"))
    kind = _text(fields.get("type")) or _text(fields.get("status"))
    return Said(kind=kind, code=_text(fields.get("code")), message=_text(message))


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def code_of(said: Said, status: int) -> str:
    """The code for a refusal; `status` is 0 where there is none."""
    text = said.all
    if status == 402 or SPENT.search(text):
        return "credit_used_up"
    if status == 429 or said.names(LIMITED):
        return "rate_limited"
    if status in (503, 529) or said.names(BUSY):
        return "overloaded"
    if OVERFLOW.search(text) and not THROTTLED.search(text):
        return "context_overflow"
    if status == 413 or said.kind == "request_too_large":
        return "request_too_large"
    if status >= 500 or said.names(BROKEN):
        return "server_failed"
    return _of_request(text, status)


def _of_request(text: str, status: int) -> str:
    """The code for a refusal that is about the request, the key or the address."""
    if status == 408:
        return "timed_out"
    if status == 409:
        return "server_failed"
    if status == 451 or POLICY.search(text):
        return "refused_by_policy"
    if NO_MODEL.search(text):
        return "model_unknown"
    if status in (401, 403) or BAD_KEY.search(text):
        return "key_refused"
    if status in (404, 405, 501) or 300 <= status < 400:
        return "url_wrong"
    return "request_refused"


def code_in_stream(said: Said) -> str:
    """The code for an error that came as an event; a status may stand in its `code` or `kind`."""
    numbers = (int(text) for text in (said.code, said.kind) if re.fullmatch(r"[1-5]\d\d", text))
    status = next(numbers, 0)
    code = code_of(said, status)
    if code != "request_refused" or status != 0 or "invalid" in said.kind:
        return code
    # An address that answers with a stream is right, so what was not found is the model.
    return "model_unknown" if said.kind == "not_found_error" else "server_failed"


def call_error(said: Said) -> CallError:
    """The failure of a provider that reported an error as an event of its answer."""
    code = code_in_stream(said)
    message, advice = words_for(code, Facts())
    detail = mend(said.shortest)[:SAID_CHARACTERS]
    return CallError(
        f"{message}: {detail}" if detail else message,
        code=code,
        hint=advice,
        retry=code in LATER,
    )


def malformed(detail: str) -> CallError:
    """The failure of a provider whose answer is not what its API promises."""
    message, advice = words_for("stream_malformed", Facts())
    return CallError(
        f"{message}: {detail}",
        code="stream_malformed",
        state=MAYBE,
        hint=advice,
        may_have_happened=True,
    )
