"""An agent in its held capsule: send, run, events, context."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import msgspec

from sojourn.agent.look import events_in
from sojourn.agent.places import Place, is_capsule
from sojourn.agent.report import Accepted, Question, Report, Tally, reason_of
from sojourn.agent.workspace import LiveWorkspace, live_workspace
from sojourn.core.turn import Decide, Rest
from sojourn.core.turn_state import TurnState
from sojourn.drive.hold import Hold
from sojourn.drive.observe import Observer
from sojourn.drive.perform import Performer
from sojourn.drive.runner import Runner
from sojourn.errors import NotFoundError, UsageError
from sojourn.format.event import (
    DocumentChange,
    Event,
    Usage,
)
from sojourn.format.parts import RefusalPart, TextPart
from sojourn.ids import EventId, RunnerId
from sojourn.ports import Model, Tool
from sojourn.ports_recall import Recalled, RecallExcept
from sojourn.render import Rendered, Target, dialect

if TYPE_CHECKING:
    from sojourn.agent.machine import Machine

MAX_MODEL_CALLS = 200
"""Model calls in one turn, unless the caller says otherwise."""


def no_workspace(folder: str) -> NotFoundError:
    """The error of an agent whose workspace is not where it was."""
    return NotFoundError(
        f"the workspace {folder} is not there",
        code="no_workspace",
        state="Nothing was run.",
        hint="Put the folder back.",
    )


class Agent:
    """A held capsule and the model, tools and people around it; made by `Agent.open`.

    `accepted` is the last message that was sent through this value.
    """

    def __init__(
        self,
        *,
        machine: "Machine",
        place: Place,
        hold: Hold,
        tools: Mapping[str, Tool],
        model_name: str | None,
        ask: Callable[[str], Awaitable[str]] | None,
        observer: Observer,
    ) -> None:
        self.place = place
        self._machine = machine
        self._hold = hold
        self._tools = tools
        self._model_name = model_name
        self._ask = ask
        self._observer = observer
        self._model: Model | None = None
        self._runner: Runner | None = None
        self._recalling: RecallExcept | None = None
        self._pausing = False
        self._leaving = False
        self.accepted: Accepted | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        where: str,
        *,
        model: str | None = None,
        system: str | None = None,
        tools: Sequence[Tool | Callable[..., object]] = (),
        workspace: str | None = None,
        create: bool = True,
        environment: Mapping[str, str] | None = None,
        ask: Callable[[str], Awaitable[str]] | None = None,
        observer: Observer | None = None,
    ) -> "AsyncGenerator[Agent]":
        """Hold the capsule in folder `where` (or of that name), made first when there is none.

        `tools` are plain typed functions under `@tool`, beside the built-in ones.

        Raises: HeldElsewhereError, FormatError, StorageError, UsageError, NotFoundError.
        """
        from sojourn.agent.machine import Machine

        machine = Machine(environment)
        try:
            place = machine.find(where)
        except NotFoundError:
            if not create:
                raise
            by_name = "/" not in where and not is_capsule(where)
            place = await machine.create(
                None if by_name else where,
                name=where if by_name else None,
                model=model,
                system=system,
                workspace=workspace,
                tools=tools,
            )
        held = machine.hold(place, tools=tools, model=model, ask=ask, observer=observer)
        async with held as agent:
            yield agent

    async def send(self, text: str, *, request: str | None = None) -> Accepted:
        """Accept a message, durable on return; a turn that runs sees it at its next step."""
        self.accepted = await self._machine.send(self.place, text, request=request)
        return self.accepted

    async def run(self, text: str | None = None, *, max_model_calls: int | None = None) -> Report:
        """Send `text`, take the turn here and run it until the agent rests.

        Raises: StorageError when a durable write failed; CallError when no model can be used.
        """
        model = self._open_model()
        self._workspace()
        self._check_idle()
        if text is not None:
            await self.send(text)
        return await self._run(model, person=True, max_model_calls=max_model_calls)

    async def take(self) -> Report:
        """Run what waits, as a worker does: a paused turn is left alone.

        Raises: UsageError `tools_missing` when the agent has tools that are not here.
        """
        missing = self._missing_tools()
        if missing:
            raise UsageError(
                f"the agent has tools that are not here: {', '.join(missing)}",
                code="tools_missing",
                state="Nothing was run; the turn waits.",
                hint="Go on from the program that brings them.",
                exit_code=6,
            )
        return await self._run(self._open_model(), person=False, max_model_calls=None)

    async def resume(
        self,
        decision: Literal["retry", "skip", "done", "failed"] | None = None,
        text: str = "",
        *,
        max_model_calls: int | None = None,
    ) -> Report:
        """Go on with the open turn; `decision` answers the question about an unknown call.

        Raises: UsageError `no_question` when there is a decision but no question.
        """
        answer = None
        if decision is not None and self._hold.state.question is None:
            raise UsageError(
                "no call waits for a decision",
                code="no_question",
                state="Nothing was changed.",
                hint="Resume without a decision.",
            )
        if decision == "retry":
            self._check_retry()
        if decision is not None:
            parts = (TextPart(text=text),) if text else ()
            answer = Decide(decision=decision, by="user", parts=parts)
        return await self._run(
            self._open_model(), person=True, max_model_calls=max_model_calls, decision=answer
        )

    def note(self, text: str) -> None:
        """Tell whoever watches."""
        self._observer.note(text)

    def pause(self) -> None:
        """Stop at the next safe point: the running call comes to its end first."""
        self._pausing = True
        if self._runner is not None:
            self._runner.pause()

    def stop(self) -> None:
        """End the running call now; its outcome is unknown."""
        self._pausing = True
        if self._runner is not None:
            self._runner.stop()

    def leave(self) -> None:
        """Stop at the next safe point and leave the turn open, for whoever takes it next."""
        self._leaving = True
        if self._runner is not None:
            self._runner.leave()

    @property
    def state(self) -> TurnState:
        """The turn's state."""
        return self._hold.state

    @property
    def documents(self) -> Mapping[str, DocumentChange]:
        """The typed documents' current values."""
        return self._hold.transcript.documents

    def events(self, start: int = 0) -> Iterator[Event]:
        """The log's durable events in its order, without the first `start`."""
        return events_in(self._hold.store, start)

    def context(self) -> Rendered:
        """Exactly what the model would be sent now."""
        model = self._open_model()
        prompt, blobs = self._hold.prompt()
        target = Target(issuer=model.issuer, profile=model.profile)
        return dialect(model.profile.dialect).render(prompt, target, blobs)

    @cached_property
    def workspace(self) -> LiveWorkspace:
        """The folder that the agent works in: snapshot it, put an earlier snapshot back."""
        return live_workspace(self._machine.ports, self.place, self._hold, self._observer)

    async def aclose(self) -> None:
        """Close the model's connections."""
        if self._model is not None:
            await self._model.aclose()

    def _check_idle(self) -> None:
        if self._runner is not None:
            raise UsageError(
                "this agent runs already",
                code="runs_already",
                state="Nothing was begun.",
                hint="Send it a message instead; the turn sees it at its next step.",
            )

    def _check_retry(self) -> None:
        """Refuse to use up a person's decision on a tool that is not here."""
        question = self._question()
        if question is not None and question.tool not in self._tools:
            raise UsageError(
                f"the tool {question.tool!r} is not here, so it cannot be called again",
                code="tools_missing",
                state="Nothing was decided; the turn waits.",
                hint="Go on from the program that brings it, or choose another decision.",
                exit_code=6,
            )

    def _missing_tools(self) -> tuple[str, ...]:
        """Tools of the configuration in force that are not here."""
        configured = self._hold.transcript.configured
        specs = () if configured is None else configured[1].tools
        return tuple(spec.name for spec in specs if spec.name not in self._tools)

    def _open_model(self) -> Model:
        """The model by order: what the caller named, the log's, SOJOURN_MODEL."""
        if self._model is None:
            configured = self._hold.transcript.configured
            recorded = "" if configured is None else configured[1].model
            fallback = self._machine.environment.get("SOJOURN_MODEL", "")
            named = self._model_name or ("" if recorded else fallback)
            if not named and not recorded:
                raise self._machine.no_model()
            if named:
                self._model, name = self._machine.model_named(self.place, named)
            else:
                self._model, name = self._machine.model_of(self.place, recorded), recorded
            self._configure(name)
        return self._model

    def _configure(self, name: str) -> None:
        """Record model and tools when they are not those of the configuration in force."""
        current = self._hold.transcript.configured
        if current is None:
            raise UsageError("the log holds no configuration", code="not_configured")
        before = current[1]
        missing = self._missing_tools()
        if missing:
            self._observer.note(f"not here any more, so not offered: {', '.join(missing)}")
        specs = tuple(tool.spec for tool in self._tools.values())
        wanted = msgspec.structs.replace(before, model=name, tools=specs, salt="")
        if self._hold.configure(wanted) is not None and before.model not in ("", name):
            self._observer.note(f"model changed from {before.model} to {name}")

    async def _run(
        self,
        model: Model,
        *,
        person: bool,
        max_model_calls: int | None,
        decision: Decide | None = None,
    ) -> Report:
        self._check_idle()
        ports = self._machine.ports
        ports.queue.put(self.place.capsule, self.place.folder)
        tally = Tally(self._observer)
        self._hold.watch(tally)
        performer = Performer(
            hold=self._hold,
            model=model,
            tools=self._tools,
            sandbox=ports.sandbox_for(self.place.capsule),
            workspace=self._workspace(),
            boot=ports.boot,
            clock=ports.clock,
            observer=tally,
            failed=tally.failed,
            ask=self._ask,
            recall=self._recall,
        )
        self._runner = Runner(
            hold=self._hold,
            performer=performer,
            inbox=ports.inbox,
            runner=RunnerId(ports.randomness.token(16).hex()),
            rules={name: tool.spec.replay for name, tool in self._tools.items()},
            max_model_calls=max_model_calls or MAX_MODEL_CALLS,
            before_end=self.workspace.keeper.at_turn_end,
            release=ports.release,
        )
        if self._pausing:
            self._runner.pause()
        if self._leaving:
            self._runner.leave()
        try:
            rest = await self._runner.run(person=person, decision=decision)
        finally:
            released = self._runner.released
            self._runner = None
            self._pausing = self._leaving = False
        await self._hold.refresh()
        if rest.reason != "left":
            self._machine.rested(self.place)
        report = self._report(rest, tally)
        moved = released and rest.reason == "left"
        return replace(report, reason="released") if moved else report

    async def _recall(self, question: str, most: int) -> Sequence[Recalled]:
        """Look in the log, for the tool of that name; set up when it is first called."""
        if self._recalling is None:
            from sojourn.agent.recalling import recall_of

            self._recalling = recall_of(self._machine, self.place)
        turn = self._hold.state.turn
        return await self._recalling(question, most, None if turn is None else EventId(turn))

    def _workspace(self) -> str:
        workspace = self._hold.record.workspace
        if not os.path.isdir(workspace):
            raise no_workspace(workspace)
        return workspace

    def _report(self, rest: Rest, tally: Tally) -> Report:
        state = self._hold.state
        used = [outcome.usage for outcome in tally.outcomes]
        usage = Usage(
            input=sum(one.input for one in used),
            output=sum(one.output for one in used),
            cache_read=sum(one.cache_read for one in used),
            cache_write=sum(one.cache_write for one in used),
            reasoning=sum(one.reasoning for one in used),
        )
        failed = tally.outcomes[-1].failure if tally.outcomes else None
        error = tally.error if state.paused == "model" else None
        return Report(
            reason=reason_of(rest, tally, state),
            text=self._last_text(tally),
            turn=state.turn or (None if tally.ended is None else tally.ended.turn),
            model_calls=len(tally.outcomes),
            usage=usage,
            failure=failed if state.paused == "model" else None,
            question=self._question(),
            state="" if error is None else error.state,
            hint="" if error is None else error.hint,
        )

    def _question(self) -> Question | None:
        key = self._hold.state.question
        if key is None:
            return None
        part = self._hold.transcript.call(key).part
        return Question(call=key, tool=part.tool, args=self._hold.text(part.args))

    def _last_text(self, tally: Tally) -> str:
        """What the last reply of this run said, empty when it brought none."""
        for outcome in reversed(tally.outcomes):
            if outcome.status == "done":
                parts = (p for p in outcome.parts if isinstance(p, TextPart | RefusalPart))
                return "\n".join(self._hold.text(part.text) for part in parts)
        return ""
