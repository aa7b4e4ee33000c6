"""Makes tools of plain typed functions; the rule for replay is declared beside the function."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, ParamSpec, TypeVar, cast, get_args, overload

import msgspec

from sojourn.errors import CallError, SojournError, UsageError
from sojourn.format.event import ReplayRule, ToolSpec
from sojourn.format.parts import ContentPart, TextPart
from sojourn.ports import ToolContext, ToolResult
from sojourn.tools.arguments import BadArguments, arguments_of
from sojourn.tools.output import TO_MODEL, shortened, text_result, without_surrogates

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
NAME_LENGTH = 64


class DeclaredTool(Generic[P, R]):
    """A tool made of a function; calling it calls the function itself.

    `declared` is False when nobody named a rule, and `report` was taken.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        replay: ReplayRule | None,
        verify_with: tuple[str, ...],
        name: str | None,
    ) -> None:
        name = checked_name(name or getattr(function, "__name__", type(function).__name__))
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function)
        self._arguments = arguments_of(function, name)
        self.declared = replay is not None
        self._spec = ToolSpec(
            name=name,
            description=inspect.getdoc(function) or name.replace("_", " "),
            schema=self._arguments.schema,
            replay=checked_rule(replay or "report"),
            verify_with=verify_with,
        )

    @property
    def spec(self) -> ToolSpec:
        """How the tool is declared to models."""
        return self._spec

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    async def run(self, args: Mapping[str, object], context: ToolContext) -> ToolResult:
        """Call the function once; what it raises is a failed result, but for CallError."""
        try:
            given = self._arguments.read(args, context)
        except BadArguments as error:
            return text_result(str(error), failed=True, code="bad_arguments")
        function = cast("Callable[..., object]", self._function)
        try:
            if self._is_async:
                return as_result(await cast("Awaitable[object]", function(**given)))
            value = await in_thread(lambda: function(**given))
            return as_result(await value if inspect.isawaitable(value) else value)
        except CallError:
            raise
        except SojournError as error:
            return text_result(error.message, failed=True, code=error.code)
        except Exception as error:
            text = f"{type(error).__name__}: {error}".removesuffix(": ")
            return text_result(text, failed=True, code="tool_error")


@overload
def tool(function: Callable[P, R], /) -> DeclaredTool[P, R]: ...
@overload
def tool(
    *, replay: ReplayRule | None = None, verify_with: tuple[str, ...] = (), name: str | None = None
) -> Callable[[Callable[P, R]], DeclaredTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    replay: ReplayRule | None = None,
    verify_with: tuple[str, ...] = (),
    name: str | None = None,
) -> DeclaredTool[P, R] | Callable[[Callable[P, R]], DeclaredTool[P, R]]:
    """Make a tool of a typed function; `replay` says what a crash in the middle of it means.

    The docstring is what the model reads, the type hints are the schema of the arguments, and a
    parameter of type `ToolContext` is filled in. `verify_with` names tools by which a model can see
    whether the call happened. A sync function is run in a thread of its own, so that time limits
    and Ctrl-C work; when its call is stopped the thread runs on to its end, unseen, and does not
    keep the process from ending. An async function runs on the loop, in the
    run's own task, and is cancelled.

    Raises: UsageError `tool_name`, `tool_signature`, `probe_not_yet`; docs/tools.md#your-own-tools.
    """

    def declared(function: Callable[P, R]) -> DeclaredTool[P, R]:
        return DeclaredTool(function, replay=replay, verify_with=verify_with, name=name)

    return declared if function is None else declared(function)


def checked_name(name: str) -> str:
    """The name, when every provider takes it.

    Raises: UsageError `tool_name`.
    """
    if not 0 < len(name) <= NAME_LENGTH or not LETTERS.issuperset(name):
        raise UsageError(
            f"{name!r} cannot be the name of a tool",
            code="tool_name",
            hint=f"Use 1 to {NAME_LENGTH} ASCII letters, digits, underscores and hyphens.",
        )
    return name


def checked_rule(rule: ReplayRule) -> ReplayRule:
    """The rule, when it is one that can be obeyed.

    Raises: UsageError `replay_rule` or `probe_not_yet`.
    """
    if rule not in get_args(ReplayRule):
        raise UsageError(f"{rule!r} is no replay rule", code="replay_rule")
    if rule == "probe":
        raise UsageError(
            "`probe` needs a check that tools cannot bring yet",
            code="probe_not_yet",
            hint="Declare `report`, and name in verify_with what shows whether it happened.",
        )
    return rule


def as_result(value: object) -> ToolResult:
    """What a function returned, as a result of bounded size.

    Text is itself, None says that nothing was returned, anything else is JSON.
    """
    match value:
        case ToolResult():
            return _bounded(value)
        case str():
            return text_result(value)
        case None:
            return text_result("")
        case _:
            return text_result(_as_json(value))


def _as_json(value: object) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=repr).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _bounded(result: ToolResult) -> ToolResult:
    """Each text part shortened; what was the whole goes to `full`, unless the tool filled it."""
    parts: list[ContentPart] = []
    whole: list[str] = []
    share = TO_MODEL // max(1, sum(isinstance(part, TextPart) for part in result.parts))
    for part in result.parts:
        if isinstance(part, TextPart) and isinstance(part.text, str):
            sound = without_surrogates(part.text)
            whole.append(sound)
            part = msgspec.structs.replace(part, text=shortened(sound, share))
        parts.append(part)
    if tuple(parts) == result.parts:
        return result
    full = result.full or "\n".join(whole).encode()
    return msgspec.structs.replace(result, parts=tuple(parts), full=full)


async def in_thread(call: Callable[[], T]) -> T:
    """The call's value, from a daemon thread of its own.

    Not a pool's: its threads keep a process from ending until their work is done.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(cast("T", value))
        else:
            future.set_exception(error)

    def post(value: T | None, error: BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:
            # The loop was closed: whoever waited was stopped before.
            return

    def work() -> None:
        try:
            value = context.run(call)
        except StopIteration as error:
            # A future cannot carry it.
            post(None, RuntimeError(f"StopIteration: {error}"))
        except BaseException as error:
            post(None, error)
        else:
            post(value, None)

    threading.Thread(target=work, daemon=True, name="sojourn-tool").start()
    return await future
