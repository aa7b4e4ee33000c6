"""Performs one effect through the ports and says how it ended, as the outcome to append."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from sojourn.core.turn import CallModel, CallTool
from sojourn.drive.hold import Hold
from sojourn.drive.observe import Observer
from sojourn.errors import CallError, FormatError, SojournError
from sojourn.format import documents
from sojourn.format.event import CallStatus, Failure, ModelOutcome, ToolOutcome
from sojourn.format.parts import TextPart
from sojourn.ids import TurnId
from sojourn.ports import Model, Sandbox, Tool, ToolContext, ToolResult, WallClock
from sojourn.ports_recall import Recall
from sojourn.render import Kept, Reply, ReplyReader, Target, dialect

STOPPED_MODEL = "A person stopped this reply; what had come by then is kept here."
STOPPED_TOOL = "A person stopped this call while it ran; what it had done by then is done."
NO_TOOL = "There is no tool of this name. The tools are: {names}."
BROKEN_ARGS = "The arguments are not a JSON object; nothing was run. Send them again, whole."


@dataclass(frozen=True, slots=True, kw_only=True)
class Performer:
    """The ports that effects are performed through; `workspace` is a folder's path.

    `failed` is told of each model call that failed, before its outcome is recorded.
    """

    hold: Hold
    model: Model
    tools: Mapping[str, Tool]
    sandbox: Sandbox
    workspace: str
    boot: str
    clock: WallClock
    observer: Observer
    failed: Callable[[CallError], None]
    ask: Callable[[str], Awaitable[str]] | None = None
    recall: Recall | None = None
    kept: Kept = field(default_factory=Kept)

    async def call_model(self, effect: CallModel, turn: TurnId) -> ModelOutcome:
        """Send the request that the log renders to; a cancelled call keeps what had come."""
        kind = dialect(self.model.profile.dialect)
        reader = kind.reader()
        try:
            target = Target(issuer=self.model.issuer, profile=self.model.profile)
            prompt, blobs = self.hold.prompt()
            rendered = kind.render(prompt, target, blobs, kept=self.kept)
            await self._read(reader, effect, rendered.payload)
        except CallError as error:
            return self._model_failed(effect, turn, reader, error)
        except asyncio.CancelledError:
            stopped = Failure(code="stopped", message=STOPPED_MODEL)
            return self._model_outcome(effect, turn, reader.partial(), stopped, unknown=True)
        return self._model_outcome(effect, turn, reader.finish(), None, unknown=False)

    async def _read(
        self, reader: ReplyReader, effect: CallModel, payload: Mapping[str, object]
    ) -> None:
        async with aclosing(self.model.stream(payload, key=effect.key)) as events:
            async for event in events:
                for delta in reader.feed(event):
                    self.observer.delta(delta)

    def _model_failed(
        self, effect: CallModel, turn: TurnId, reader: ReplyReader, error: CallError
    ) -> ModelOutcome:
        failure = Failure(code=error.code, message=error.message, status=error.status)
        self.failed(error)
        return self._model_outcome(
            effect, turn, reader.partial(), failure, unknown=error.may_have_happened
        )

    def _model_outcome(
        self,
        effect: CallModel,
        turn: TurnId,
        reply: Reply,
        failure: Failure | None,
        *,
        unknown: bool,
    ) -> ModelOutcome:
        if failure is None and not reply.completed:
            failure = Failure(code="stream_cut", message="The reply ended before its end mark.")
            unknown = True
        status = "done" if failure is None else "unknown" if unknown else "failed"
        return ModelOutcome(
            turn=turn,
            call=effect.key,
            status=status,
            issuer=self.model.issuer,
            answered_by=reply.answered_by,
            parts=reply.parts,
            stop=reply.stop,
            native_stop=reply.native_stop,
            native_id=reply.native_id,
            usage=reply.usage,
            failure=failure,
        )

    async def call_tool(self, effect: CallTool, turn: TurnId) -> ToolOutcome:
        """Call the tool once; a cancelled call is unknown, since it may have done its work."""
        began = self.clock.monotonic()
        try:
            result = await self._run_tool(effect)
            failure = Failure(code=result.code or "failed", message="") if result.failed else None
            status: CallStatus = "failed" if result.failed else "done"
        except CallError as error:
            result = ToolResult(parts=())
            failure = Failure(code=error.code, message=error.message, status=error.status)
            status = "unknown" if error.may_have_happened else "failed"
        except asyncio.CancelledError:
            result = ToolResult(parts=(), synced=False)
            failure = Failure(code="stopped", message=STOPPED_TOOL)
            status = "unknown"
        full = None if result.full is None else self.hold.keep(result.full)
        if result.memory is not None:
            # Before the outcome, in one append: a tool that edits notes may run again (F7).
            self.hold.remember(result.memory, origin="tool")
        return ToolOutcome(
            turn=turn,
            call=effect.key,
            status=status,
            parts=result.parts,
            failure=failure,
            full=full,
            documents=result.documents,
            files=result.files,
            boot=None if result.synced else self.boot,
            milliseconds=int((self.clock.monotonic() - began) * 1000),
        )

    async def _run_tool(self, effect: CallTool) -> ToolResult:
        part = self.hold.transcript.call(effect.key).part
        tool = self.tools.get(part.tool)
        if tool is None:
            names = ", ".join(sorted(self.tools))
            return _refused("no_tool", NO_TOOL.format(names=names))
        args = None if part.broken else self.hold.arguments(part)
        if args is None:
            return _refused("arguments_broken", BROKEN_ARGS)
        stream = self.hold.mask.data_stream()

        def show(data: bytes) -> None:
            self.observer.output(part.tool, stream.feed(data))

        context = ToolContext(
            key=effect.key,
            attempt=effect.attempt,
            workspace=self.workspace,
            sandbox=self.sandbox,
            documents=dict(self.hold.transcript.documents),
            memory=self.hold.text(self.hold.memory.text),
            ask=self.ask,
            on_output=show,
            recall=self.recall,
        )
        try:
            result = await tool.run(args, context)
            for change in result.documents:
                documents.check(change)
            return result
        except FormatError as error:
            return _refused(error.code, error.message)
        except SojournError:
            raise
        except Exception as error:
            return _refused("tool_error", f"{type(error).__name__}: {error}")
        finally:
            held_back = stream.flush()
            if held_back:
                self.observer.output(part.tool, held_back)


def _refused(code: str, text: str) -> ToolResult:
    return ToolResult(parts=(TextPart(text=text),), failed=True, code=code)
