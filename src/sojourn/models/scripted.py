"""A model whose replies come from a file, and one that repeats what it was told.

For demonstrations and tests: no key, no network, and the same request gets the same reply
(docs/models.md#scripted-models).
"""

import json
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

from sojourn.errors import CallError
from sojourn.format.event import Issuer
from sojourn.ids import CallKey
from sojourn.models.chunks import chunks_of
from sojourn.models.limits import POLL_SECONDS
from sojourn.models.script import Script, Step
from sojourn.models.walk import find_step, is_own_voice, messages, text_of
from sojourn.ports import ServerEvent, WallClock
from sojourn.render.profile import Profile
from sojourn.render.refusal import LATER, MAYBE, REFUSED
from sojourn.render.request import render_bytes


class ScriptedModel:
    """Answers from a script; keeps no state but the ledger that the script asks for."""

    def __init__(
        self, *, issuer: Issuer, profile: Profile, script: Script, clock: WallClock
    ) -> None:
        self._issuer = issuer
        self._profile = profile
        self._script = script
        self._clock = clock

    def __repr__(self) -> str:
        return f"ScriptedModel({self._issuer.model})"

    @property
    def issuer(self) -> Issuer:
        return self._issuer

    @property
    def profile(self) -> Profile:
        return self._profile

    async def stream(
        self, payload: Mapping[str, object], *, key: CallKey
    ) -> AsyncGenerator[ServerEvent]:
        """Yield the reply of the step at which the request stands.

        Raises: CallError `script_ended`, `script_lost`, `script_ledger`, or what the step names
        by `fail`.
        """
        step = find_step(self._script, payload)
        self._note(step, key)
        if step.wait_for is not None:
            await self._wait_for(step.wait_for)
        fails = step.fail is not None and not self._exists(step.unless)
        left = step.fail_after if fails else None
        for event in self._reply(step, payload):
            if left is not None:
                if left <= 0:
                    break
                left -= 1
            yield event
        if step.fail is not None and fails:
            raise _failure(step, step.fail)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _reply(self, step: Step, payload: Mapping[str, object]) -> "list[ServerEvent]":
        size = len(render_bytes(payload))
        events = chunks_of(
            model=self._issuer.model,
            text=step.text,
            reasoning=step.reasoning,
            calls=step.calls,
            asked=size,
            seed=f"{self._issuer.model} {len(messages(payload))} {step.name}",
        )
        return list(events)

    def _note(self, step: Step, key: CallKey) -> None:
        """Add a line to the ledger, durably, before anything of the reply is given away."""
        if self._script.ledger is None:
            return
        line = json.dumps({"call": key, "step": step.name}, ensure_ascii=False) + "\n"
        path = Path(self._script.folder, self._script.ledger)
        try:
            opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.write(opened, line.encode())
                os.fsync(opened)
            finally:
                os.close(opened)
        except OSError as error:
            raise CallError(
                f"the ledger of the script cannot be written: {error.strerror}",
                code="script_ledger",
                state="Nothing was answered.",
                hint=f"Look at {path}.",
            ) from None

    async def _wait_for(self, name: str) -> None:
        while not self._exists(name):
            await self._clock.wait(POLL_SECONDS)

    def _exists(self, name: str | None) -> bool:
        return name is not None and Path(self._script.folder, name).exists()


class EchoModel:
    """Answers with the last text that a user said."""

    def __init__(self, *, issuer: Issuer, profile: Profile) -> None:
        self._issuer = issuer
        self._profile = profile

    def __repr__(self) -> str:
        return "EchoModel()"

    @property
    def issuer(self) -> Issuer:
        return self._issuer

    @property
    def profile(self) -> Profile:
        return self._profile

    async def stream(
        self, payload: Mapping[str, object], *, key: CallKey
    ) -> AsyncGenerator[ServerEvent]:
        """Yield the last user text as a reply."""
        sent = messages(payload)
        said = [
            text_of(message.get("content")) for message in sent if message.get("role") == "user"
        ]
        heard = [text for text in said if text.strip() and not is_own_voice(text)]
        text = heard[-1] if heard else "(nothing was said)"
        size = len(render_bytes(payload))
        for event in chunks_of(model="echo", text=text, asked=size, seed=key):
            yield event

    async def aclose(self) -> None:
        """Nothing is open."""


def _failure(step: Step, code: str) -> CallError:
    maybe = step.fail_after > 0 or code in ("stream_cut", "timed_out")
    return CallError(
        f"the script fails here, at step {step.name!r}",
        code=code,
        state=MAYBE if maybe else REFUSED,
        hint="The script wants it so.",
        retry=code in LATER,
        may_have_happened=maybe,
    )
