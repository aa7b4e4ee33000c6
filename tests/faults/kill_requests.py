"""Renders every request of a log for both dialects and asks the strict fakes' rules."""

from collections.abc import Iterable

from sojourn.core.view import Transcript
from sojourn.format.event import Event, Issuer, ModelIntent
from sojourn.render import Target, dialect
from sojourn.render.profile import profile_for
from sojourn.testing.strict import anthropic, openai_chat

TARGETS = (("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-5"))


def refused_requests(events: Iterable[Event]) -> list[str]:
    """What a real provider would refuse, of the request at each model intent of the log."""
    found: list[str] = []
    transcript = Transcript()
    for event in events:
        transcript.apply(event)
        if isinstance(event.body, ModelIntent):
            found += _refused(transcript, event.header.seq)
    return found


def _refused(transcript: Transcript, seq: int) -> list[str]:
    found: list[str] = []
    prompt = transcript.prompt(system="You are an agent.", memory="")
    for provider, model in TARGETS:
        profile = profile_for(provider, model)
        issuer = Issuer(provider=provider, api=profile.dialect, scope="default", model=model)
        payload = (
            dialect(profile.dialect)
            .render(prompt, Target(issuer=issuer, profile=profile), {})
            .payload
        )
        check = anthropic.check if provider == "anthropic" else openai_chat.check
        refusal = check(payload)
        if refusal is not None:
            found.append(f"{provider} refuses the request of event {seq}: {refusal}")
    return found
