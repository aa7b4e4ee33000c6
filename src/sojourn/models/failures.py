"""The failures of one model at one place, as CallErrors that say what to do.

Their names and words are in render/refusal.py. A message may end up in a log, so it holds no URL,
no host and no key; hints are for the person at the terminal and may name the URL and the variable
that decides it.
"""

from dataclasses import dataclass

from sojourn.errors import CallError
from sojourn.models.providers import Place
from sojourn.models.said import shown
from sojourn.render.refusal import (
    LATER,
    MAYBE,
    REFUSED,
    Facts,
    Said,
    code_in_stream,
    code_of,
    words_for,
)


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
        if code == "key_refused" and key is None:
            code = "key_missing"
        message, advice = words_for(code, self._facts())
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
            said.shortest,
            hint=hint.strip(),
            status=status,
            retry=retry,
            retry_after=retry_after,
            may_have_happened=status in (502, 504),
        )

    def broken_off(self, said: Said, *, begun: bool) -> CallError:
        """The failure that an error inside a stream stands for; `begun` when it had answered."""
        code = code_in_stream(said)
        return self.make(code, said.shortest, may_have_happened=begun)

    def _facts(self) -> Facts:
        place = self.place
        names = " or ".join(place.provider.keys)
        return Facts(
            who=place.provider.name,
            model=f"the model {self.model}",
            key=place.key.variable if place.key else names,
            address=f"{place.variable} ({place.url})",
        )
