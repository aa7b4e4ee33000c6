"""Every way in which a model call fails, as a CallError that says what to do.

docs/models.md#failures is the list for people. A message may end up in a log, so it holds no URL,
no host and no key; hints are for the person at the terminal and may name the URL and the variable
that decides it.
"""

from dataclasses import dataclass
from typing import Final

from sojourn.errors import CallError
from sojourn.models.providers import Place
from sojourn.models.said import BAD_KEY, NO_MODEL, OVERFLOW, POLICY, SPENT, THROTTLED, Said, shown

NOT_SENT: Final = "Nothing was answered: the request did not reach the provider whole."
REFUSED: Final = "The provider refused the request; nothing was answered."
MAYBE: Final = (
    "The request was sent whole: the provider may have answered it, and may charge for it."
)

WORDS: Final[dict[str, tuple[str, str]]] = {
    "key_refused": ("{who} refused the key", "Check {key}; it is sent to {url}."),
    "model_unknown": (
        "{who} does not know the model {model}, or not for this key",
        "Check the name after `{who}/`.",
    ),
    "url_wrong": (
        "{who} has nothing at the address that was asked",
        "Check {variable}: asked was {url}.",
    ),
    "request_refused": (
        "{who} refused the request",
        "`sojourn context` prints what was sent.",
    ),
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
    "unreachable": ("{who} could not be reached", "Check {variable} ({url}) and the network."),
    "timed_out": ("{who} went silent", "Try again later."),
    "stream_cut": ("the answer of {who} broke off before its end", "Try again."),
    "stream_malformed": (
        "{who} did not answer as a model server does",
        "Check {variable}: asked was {url}.",
    ),
}
"""Message and hint for each code; `{who}` is the provider's name."""

LATER: Final = frozenset({"rate_limited", "overloaded", "server_failed", "timed_out", "stream_cut"})
"""The codes after which the same request may succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Makes the failures of one model at one place."""

    place: Place
    model: str
    limit: int

    def make(
        self,
        code: str,
        detail: str = "",
        *,
        state: str = REFUSED,
        hint: str = "",
        status: int | None = None,
        retry: bool | None = None,
        retry_after: float | None = None,
        may_have_happened: bool = False,
    ) -> CallError:
        """A failure with this code; `detail` is added to its message, cleaned and bounded."""
        key = self.place.key
        facts = {
            "who": self.place.provider.name,
            "model": self.model,
            "url": self.place.url,
            "variable": self.place.variable,
            "key": key.variable if key else self.place.provider.keys[0],
        }
        message, advice = (text.format(**facts) for text in WORDS[code])
        detail = shown(detail, secrets=(key.value,) if key else (), limit=self.limit)
        number = f" (HTTP {status})" if status else ""
        return CallError(
            f"{message}{number}{': ' if detail else ''}{detail}",
            code=code,
            state=MAYBE if may_have_happened else state,
            hint=f"{hint} {advice}".strip(),
            retry=code in LATER if retry is None else retry,
            retry_after=retry_after,
            may_have_happened=may_have_happened,
            status=status,
        )

    def refused(
        self,
        said: Said,
        *,
        status: int,
        retry_after: float | None = None,
        retry: bool | None = None,
        request: str = "",
    ) -> CallError:
        """The failure that an HTTP status and the words with it stand for.

        `retry` is what the provider itself says about that; `request` its id of the request.
        """
        code = code_of(said, status)
        hint = f"The provider calls this request {request}." if request else ""
        if retry_after is not None:
            hint += f" It asks to wait {retry_after:.0f} s."
        return self.make(
            code,
            said.message or said.kind or said.code,
            hint=hint.strip(),
            status=status,
            retry=retry,
            retry_after=retry_after,
            may_have_happened=status in (502, 504),
        )

    def broken_off(self, said: Said, *, begun: bool) -> CallError:
        """The failure that an error inside a stream stands for; `begun` when it had answered."""
        status = int(said.code) if said.code.isdecimal() and len(said.code) == 3 else 0
        code = code_of(said, status)
        if code == "request_refused" and "invalid" not in said.kind:
            code = "server_failed"
        return self.make(code, said.message or said.kind or said.code, may_have_happened=begun)


def code_of(said: Said, status: int) -> str:
    """The code for a refusal; `status` is 0 inside a stream."""
    text = said.all
    if status == 402 or SPENT.search(text):
        return "credit_used_up"
    if status == 429 or said.kind == "rate_limit_error":
        return "rate_limited"
    if status in (503, 529) or said.kind == "overloaded_error":
        return "overloaded"
    if OVERFLOW.search(text) and not THROTTLED.search(text):
        return "context_overflow"
    if status == 413 or said.kind == "request_too_large":
        return "request_too_large"
    if status >= 500 or said.kind in ("api_error", "server_error", "timeout_error"):
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
