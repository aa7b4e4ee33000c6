"""Finds where in a script a request stands, from the request alone (docs/models.md#the-walk).

The messages are walked from the first to the last: a user message starts a section or goes on
after a finished one, an assistant message that says what the step at hand says moves on from it,
with the results that follow it. So a run that was killed goes on at the right step, and nothing
needs to be kept.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from sojourn.errors import CallError
from sojourn.models.script import Script, ScriptCall, Step
from sojourn.render.says import NOTICE, UNKNOWN

OWN_VOICE: Final = NOTICE.partition("{")[0]
"""How messages begin that sojourn wrote itself: they are nobody's input."""


@dataclass(slots=True)
class Walk:
    """A place in a script: `at` a step, or None while it waits for an input that it knows.

    `resting`: the step before `at` ended a turn, so `at` begins with the next input.
    """

    script: Script
    at: int | None = None
    resting: bool = True
    waiting: Step | None = None
    results: list[str] | None = None

    def __post_init__(self) -> None:
        self.at = None if self.script.inputs else 0

    def message(self, value: Mapping[str, object], number: int) -> None:
        """Walk past one message."""
        role = value.get("role")
        if role == "tool" and self.results is not None:
            self.results.append(text_of(value.get("content")))
        elif role == "user":
            self._choose()
            self._input(text_of(value.get("content")))
        elif role == "assistant":
            self._choose()
            self._reply(value, number)

    def step(self) -> Step:
        """The step that answers the request.

        Raises: CallError `script_ended`.
        """
        self._choose()
        place = self.at
        if place is None or self.resting or place >= len(self.script.steps):
            raise CallError(
                "the script has no reply to this",
                code="script_ended",
                state="Nothing was answered.",
                hint="Add a step to the script, or an entry of `inputs` that fits what was said.",
            )
        return self.script.steps[place]

    def _input(self, text: str) -> None:
        if is_own_voice(text):
            return
        jump = next((jump for jump in self.script.inputs if jump.fits(text)), None)
        if jump is not None:
            self.at = self.script.named(jump.go)
        self.resting = False

    def _reply(self, value: Mapping[str, object], number: int) -> None:
        place = self.at
        if place is None or self.resting or place >= len(self.script.steps):
            return
        step = self.script.steps[place]
        if not _is_reply(step, value, number):
            return
        if step.calls:
            self.waiting, self.results = step, []
        else:
            self.resting = True
            alone = step.next is None and self.script.inputs
            self.at = None if alone else self._after(step, step.next)

    def _choose(self) -> None:
        """Leave a step whose results are all there."""
        step, results = self.waiting, self.results
        if step is None or results is None:
            return
        self.waiting = self.results = None
        go = step.next
        if step.if_unknown is not None and any(UNKNOWN in text for text in results):
            go = step.if_unknown
        else:
            fitting = (j.go for j in step.if_result if any(j.fits(text) for text in results))
            go = next(fitting, go)
        self.at = self._after(step, go)

    def _after(self, step: Step, go: str | None) -> int:
        return self.script.named(step.name) + 1 if go is None else self.script.named(go)


def find_step(script: Script, payload: Mapping[str, object]) -> Step:
    """The step that answers this request of the Chat Completions API.

    Raises: CallError `script_ended`, or `script_lost` when a reply is nearly that of a step.
    """
    walk = Walk(script)
    for number, message in enumerate(messages(payload)):
        walk.message(message, number)
    return walk.step()


def messages(payload: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    """The messages of a request."""
    found = payload.get("messages")
    if not isinstance(found, list | tuple):
        return ()
    values = cast("Sequence[object]", found)
    return [cast("Mapping[str, object]", value) for value in values if isinstance(value, Mapping)]


def is_own_voice(text: str) -> bool:
    """Whether sojourn wrote this user message itself."""
    return text.startswith(OWN_VOICE)


def text_of(content: object) -> str:
    """The text of a message's content: a string, or parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    parts = [
        cast("Mapping[str, object]", part)
        for part in cast("Sequence[object]", content)
        if isinstance(part, Mapping)
    ]
    return "\n".join(str(part["text"]) for part in parts if part.get("type") == "text")


def _is_reply(step: Step, value: Mapping[str, object], number: int) -> bool:
    """Whether an assistant message is what this step says.

    One that has the step's text or its calls but not both is no other model's: better to stop than
    to say the same again without end.
    """
    said, meant = text_of(value.get("content")).split(), step.text.split()
    asked = _calls(value)
    same_text, same_calls = said == meant, _same_calls(step.calls, asked)
    if same_text and same_calls:
        return True
    if (same_text and meant) or (same_calls and asked):
        raise CallError(
            f"message {number} of the request is nearly the reply of step {step.name!r}, not quite",
            code="script_lost",
            state="Nothing was answered.",
            hint="Has the script been changed since? A reply is known by its text and its calls.",
        )
    return False


def _calls(value: Mapping[str, object]) -> list[tuple[str, object]]:
    """Name and arguments of each call in an assistant message."""
    found = value.get("tool_calls")
    asked: list[tuple[str, object]] = []
    for call in cast("Sequence[object]", found) if isinstance(found, list | tuple) else ():
        function = cast("Mapping[str, Mapping[str, object]]", call).get("function", {})
        asked.append((str(function.get("name")), function.get("arguments")))
    return asked


def _same_calls(meant: tuple[ScriptCall, ...], asked: list[tuple[str, object]]) -> bool:
    if [call.tool for call in meant] != [name for name, _ in asked]:
        return False
    for call, (_, arguments) in zip(meant, asked, strict=True):
        wanted = _parsed(call.arguments)
        # Broken arguments are sent back in another form: the name must do.
        if isinstance(wanted, dict) and wanted != _parsed(arguments):
            return False
    return True


def _parsed(arguments: object) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return cast("object", json.loads(arguments))
    except (ValueError, RecursionError):
        return None
