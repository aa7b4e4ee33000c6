"""Taking a turn from the command line: what `run` and `resume` share."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import assert_never

from sojourn.agent import Agent, Machine, Observer, Place, Question, Report
from sojourn.cli.asking import asker
from sojourn.cli.capsules import shape_of
from sojourn.cli.events import about, plain
from sojourn.cli.failure import NOT_READY
from sojourn.cli.interrupt import interruptible
from sojourn.cli.live import Lines, Live, Silent
from sojourn.cli.people import counted, took
from sojourn.cli.settings import Settings
from sojourn.cli.shapes import FaultShape, QuestionShape, ReportLine, UsageShape
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import CallError, DecisionError, LimitError, SojournError, UsageError
from sojourn.format.event import Failure
from sojourn.models.choose import keys_seen, ollama_answers

Act = Callable[[Agent], Awaitable[Report]]
"""What to do with the held capsule."""


def take_turn(
    settings: Settings,
    machine: Machine,
    place: Place,
    *,
    model: str | None,
    printed: bool,
    act: Act,
) -> int:
    """Hold the capsule, act, and tell how it ended; the exit code.

    Raises: SojournError when the turn did not come to rest, unless the answer is JSON.
    """
    voice = Voice(settings)
    began = monotonic()
    watching = observer_of(voice, machine, place, printed=printed)

    async def held() -> Report:
        holding = machine.hold(
            place, model=model, ask=None if printed else asker(voice), observer=watching
        )
        async with holding as agent:
            with interruptible(voice, pause=agent.pause, stop=agent.stop, leave=agent.leave):
                return await act(agent)

    try:
        report = asyncio.run(held())
    except UsageError as error:
        raise first_model(machine, place) if error.code == "no_model" else error from None
    finally:
        if isinstance(watching, Live):
            watching.end()
    voice.check()
    code = exit_of(report)
    if settings.json:
        voice.answer(_line(report, place, code))
        return code
    if printed and report.text:
        voice.out.put(report.text.removesuffix("\n"), "\n")
    failure = failure_of(report, place)
    if failure is not None:
        raise failure
    if not printed:
        _close(voice, report, place, watching, monotonic() - began)
    return code


def observer_of(
    voice: Voice, machine: Machine, place: Place, *, printed: bool = False, worker: bool = False
) -> Observer:
    """Who watches: with -p nobody, with --json a writer of lines, else words for people."""
    if printed:
        return Silent(voice)
    if voice.settings.json:
        return Lines(voice, place.capsule)
    return Live(
        voice,
        place.capsule,
        past=lambda: machine.look(place).events_of(),
        heading=place.name if worker else None,
    )


def exit_of(report: Report) -> int:
    """The exit code of a run (docs/cli.md#exit-codes)."""
    match report.reason:
        case "rest" | "idle":
            return 0
        case "limit":
            return LimitError.exit_code
        case "paused" | "left":
            return 130
        case "decision":
            return DecisionError.exit_code
        case "model":
            return CallError.exit_code
        case _:
            assert_never(report.reason)


def failure_of(report: Report, place: Place) -> SojournError | None:
    """The report as an error where the turn did not come to rest; a pause is none."""
    go_on = f"sojourn resume {place.name}"
    match report.reason:
        case "rest" | "idle" | "paused" | "left":
            return None
        case "limit":
            return LimitError(
                f"the turn ended at its limit of {counted(report.model_calls, 'model call')}",
                code="turn_limit",
                state="What was done is in the log.",
                hint=f'Go on with a message:  sojourn run {place.name} "go on"',
            )
        case "model":
            return CallError(
                _why(report.failure),
                code="model_failed" if report.failure is None else report.failure.code,
                state="The turn is paused; nothing is lost.",
                hint=f"Ask again:  {go_on}    or another model:  {go_on} -m PROVIDER/NAME",
            )
        case "decision":
            return undecided(report.question, place)
        case _:
            assert_never(report.reason)


def undecided(question: Question | None, place: Place) -> DecisionError:
    """The question about a call whose outcome is unknown, and the ways to answer it."""
    go_on = f"sojourn resume {place.name}"
    call = "a call" if question is None else f"{question.tool} {about(question.args)}".rstrip()
    return DecisionError(
        f"{call}: it may have happened, and its rule is to ask a person",
        state="The turn waits; nothing is lost. Find out what is true, then choose:",
        hint=f"call it once more:          {go_on} --retry\n"
        f"leave it unknown:           {go_on} --skip\n"
        f"it happened, this came out: {go_on} --result FILE",
    )


def first_model(machine: Machine, place: Place) -> SojournError:
    """The error of an agent without a model: the keys seen here by name, and what would work."""
    seen = keys_seen(machine.environment)
    ways = ["name one once:  " + f'sojourn run {place.name} "..." -m PROVIDER/NAME']
    if ollama_answers(machine.environment):
        ways.append("Ollama answers here:  -m ollama/NAME")
    ways.append("without any key:  sojourn demo    or replies from a file:  -m scripted/FILE")
    keys = f"Keys seen: {', '.join(seen)}." if seen else "No key of a provider was seen."
    return SojournError(
        f"{place.name} has no model yet",
        code="no_model",
        state=f"{keys} Nothing was sent.",
        hint="\n".join(ways),
        exit_code=NOT_READY,
    )


def _why(failure: Failure | None) -> str:
    if failure is None:
        return "the model brought no reply, several times in a row"
    return f"the model failed: {plain(failure.message)}"


def _close(voice: Voice, report: Report, place: Place, watching: object, seconds: float) -> None:
    """The last line for people: what it took."""
    if report.reason == "idle":
        voice.talk("nothing to do: no turn is open and no message waits")
        return
    facts = [took(seconds * 1000), counted(report.model_calls, "model call")]
    if isinstance(watching, Live):
        facts.append(counted(watching.tools, "tool call"))
    usage = report.usage
    if usage.input or usage.output:
        facts.append(f"{usage.input:,} tokens in, {usage.output:,} out")
    if report.reason == "paused":
        voice.talk(Painted("paused.", "warn"), f" Go on:  sojourn resume {place.name}")
    voice.talk(Painted(" · ".join(facts), "dim"))


def _line(report: Report, place: Place, code: int) -> ReportLine:
    usage, failure, question = report.usage, report.failure, report.question
    return ReportLine(
        capsule=shape_of(place),
        reason=report.reason,
        exit=code,
        text=report.text,
        turn=report.turn,
        model_calls=report.model_calls,
        usage=UsageShape(
            input=usage.input,
            output=usage.output,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            reasoning=usage.reasoning,
        ),
        failure=None
        if failure is None
        else FaultShape(code=failure.code, message=plain(failure.message)),
        question=None
        if question is None
        else QuestionShape(call=question.call, tool=question.tool, arguments=question.args),
    )
