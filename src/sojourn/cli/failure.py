"""How a failure is told: what happened, what the state is now, what to do next.

Every failure becomes a `Told`, whatever raised it, and is printed in one way for people and in one
for programs (docs/cli.md#errors).
"""

import errno
from dataclasses import dataclass
from typing import Final

import click

from sojourn.cli.people import ago, clock_time
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import EXIT_CODES, HeldElsewhereError, SojournError, UsageError

NOT_READY: Final = 6
"""The exit code when something that a run needs is missing here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A failure in words; `exit` is one of `EXIT_CODES`, `since` a time in the message."""

    code: str
    message: str
    state: str = ""
    hint: str = ""
    exit: int = 1
    file: str | None = None
    line: int | None = None
    since: str = ""

    @property
    def spoken(self) -> str:
        """The message with its time as people say it."""
        if not self.since:
            return self.message
        return self.message.replace(self.since, f"{clock_time(self.since)}, {ago(self.since)}")


def told(failure: BaseException) -> Told:
    """The failure in words."""
    match failure:
        case SojournError():
            return of_error(failure)
        case click.ClickException():
            return _of_wrong_use(failure)
        case KeyboardInterrupt() | click.Abort():
            return Told(
                code="interrupted",
                message="interrupted",
                state=_noted(failure) or "What was durable stays; nothing else was begun.",
                exit=130,
            )
        case OSError():
            return _of_system(failure)
        case MemoryError() | RecursionError():
            return Told(code="too_large", message=f"{type(failure).__name__}: too large for here")
        case _:
            return _of_defect(failure)


def _noted(failure: BaseException) -> str:
    """The state that whoever was interrupted noted; asyncio puts another exception around it."""
    inner: BaseException | None = failure
    while inner is not None:
        notes: list[str] = getattr(inner, "__notes__", [])
        if notes:
            return notes[-1]
        inner = inner.__cause__ or inner.__context__
    return ""


def of_error(failure: SojournError) -> Told:
    """An error that sojourn has a name for."""
    return Told(
        code=failure.code,
        message=failure.message,
        state=failure.state,
        hint=failure.hint,
        exit=failure.exit if failure.exit in EXIT_CODES else 1,
        file=failure.file,
        line=failure.line,
        since=failure.since if isinstance(failure, HeldElsewhereError) else "",
    )


def _of_wrong_use(failure: click.ClickException) -> Told:
    usage = failure if isinstance(failure, click.UsageError) else None
    where = usage.ctx.command_path if usage is not None and usage.ctx is not None else "sojourn"
    message, hint = failure.message or failure.format_message(), f"See: {where} --help"
    if not isinstance(failure, click.NoSuchOption | click.NoSuchCommand):
        message = failure.format_message()
    elif failure.possibilities:
        hint = f"Did you mean {' or '.join(sorted(failure.possibilities)[:3])}?  {hint}"
    if message[1:2].islower():
        message = message[0].lower() + message[1:]
    return Told(
        code=UsageError.default_code,
        message=message.rstrip("."),
        state="Nothing was done.",
        hint=hint,
        exit=UsageError.exit_code,
    )


def _of_system(failure: OSError) -> Told:
    full = failure.errno in (errno.ENOSPC, errno.EDQUOT)
    return Told(
        code="system_failed",
        message=failure.strerror or str(failure) or type(failure).__name__,
        state="What was durable before stays as it was.",
        hint="Make room and run the same command again." if full else "",
        exit=75 if full else 1,
        file=str(failure.filename) if failure.filename is not None else None,
    )


def _of_defect(failure: BaseException) -> Told:
    words = " ".join(str(failure).split())
    return Told(
        code="unexpected",
        message=f"{type(failure).__name__}: {words}" if words else type(failure).__name__,
        state="This is a defect of sojourn. What was durable before stays as it was.",
        hint="Run it again with -vv to see where, and report it with what that prints.",
    )


def tell(failure: BaseException, settings: Settings) -> int:
    """Print the failure in the form that was asked for; the exit code."""
    words, voice = told(failure), Voice(settings)
    voice.out.tolerant = voice.err.tolerant = True
    if settings.json:
        _answer(words, voice)
    else:
        _print(words, voice)
    if settings.verbose >= 2:
        import traceback

        voice.err.put("".join(traceback.format_exception(failure)))
    return words.exit


def _answer(words: Told, voice: Voice) -> None:
    from sojourn.cli.shapes import ErrorAnswer, ErrorShape

    voice.answer(
        ErrorAnswer(
            error=ErrorShape(
                code=words.code,
                message=words.message,
                state=words.state,
                hint=words.hint,
                exit=words.exit,
                file=words.file,
                line=words.line,
            )
        )
    )


def _print(words: Told, voice: Voice) -> None:
    first, *more = words.spoken.splitlines() or [""]
    code = Painted(f"[{words.code}]", "dim")
    voice.err.line(Painted("error:", "bad"), f" {first}   ", code)
    for line in more:
        voice.err.line(f"  {line}")
    if words.file is not None:
        place = f"{words.file} line {words.line}" if words.line else words.file
        voice.err.line(f"  at {place}")
    for text in (words.state, words.hint):
        for line in text.splitlines():
            voice.err.line(f"  {line}")
