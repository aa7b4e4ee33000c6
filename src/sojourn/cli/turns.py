"""Taking a turn from the command line: what `run` and `resume` share."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from time import monotonic
from typing import assert_never

from sojourn.agent import Agent, Look, Machine, Observer, Place, Question, Report
from sojourn.agent.agent import no_workspace
from sojourn.agent.look import number_of
from sojourn.agent.machine import MODEL_VARIABLE
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
from sojourn.errors import (
    CallError,
    DecisionError,
    HeldElsewhereError,
    LimitError,
    SojournError,
)
from sojourn.format.event import Failure
from sojourn.models.choose import keys_seen, ollama_answers

KEPT = "Your message was accepted and is kept."
KEPT_UNTIL_DECIDED = f"{KEPT[:-1]}; the agent reads it after the decision."
"""What is said of the message of a `run` that did not come to rest."""

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
    sends: bool = False,
) -> int:
    """Hold the capsule, act, and tell how it ended; the exit code.

    `sends` when `act` brings a message: a failure then says whether it was accepted.

    Raises: SojournError when the turn did not come to rest, unless the answer is JSON.
    """
    voice = Voice(settings)
    began = monotonic()
    watching = observer_of(voice, machine, place, printed=printed)
    agents: list[Agent] = []

    async def held(act: Act) -> Report:
        holding = machine.hold(
            place, model=model, ask=None if printed else asker(voice), observer=watching
        )
        async with holding as agent:
            agents.append(agent)
            with interruptible(voice, pause=agent.pause, stop=agent.stop, leave=agent.leave):
                return await act(agent)

    try:
        report = asyncio.run(_until_over(voice, machine, place, held, act))
    except SojournError as error:
        accepted = any(agent.accepted is not None for agent in agents)
        said = _told_better(error, machine, place)
        if sends:
            fate = KEPT if accepted else "The message was not accepted."
            said.state = f"{said.state} {fate}".strip()
        raise said from None
    finally:
        if isinstance(watching, Live):
            watching.end()
    voice.check()
    code = exit_of(report)
    if settings.json:
        failure = failure_of(report, machine.reference(place), sent=sends)
        voice.answer(_line(report, place, code, "" if failure is None else failure.hint))
        return code
    if printed and report.text:
        voice.out.put(report.text.removesuffix("\n"), "\n")
    failure = failure_of(report, machine.reference(place), sent=sends)
    if failure is not None:
        raise failure
    if not printed:
        _close(voice, report, machine.reference(place), watching, monotonic() - began)
    return code


async def _until_over(
    voice: Voice, machine: Machine, place: Place, held: Callable[[Act], Awaitable[Report]], act: Act
) -> Report:
    """Act, and go on with the turn when the agent was asked for and could not be moved after all.

    A report with the reason `released` says in `hint` where the agent is, in `state` how sure.
    """
    from sojourn.agent.released import fate_of

    while (report := await held(act)).reason == "released":
        voice.talk(Painted("letting go: the agent is being moved to another machine", "warn"))
        fate = await fate_of(machine, place)
        if fate.what != "back":
            return replace(report, state=fate.what, hint=fate.address)
        voice.talk(Painted("it was not moved; the turn goes on here", "warn"))
        act = _go_on
    return report


async def _go_on(agent: Agent) -> Report:
    return await agent.resume()


def _told_better(error: SojournError, machine: Machine, place: Place) -> SojournError:
    """The error with a hint that names this capsule."""
    name = machine.reference(place)
    if error.code == "no_model":
        return first_model(machine, place)
    if error.code == "held_elsewhere":
        error.hint = (
            f'Watch it:  sojourn log {name} -f    or give it a message:  sojourn send {name} "..."'
        )
    error.hint = naming(error.hint, name)
    return error


def naming(hint: str, name: str) -> str:
    """The hint with this capsule in its commands, which were written where none is known."""
    return re.sub(r"`sojourn (verify|context|status|resume)`", rf"`sojourn \1 {name}`", hint)


def observer_of(
    voice: Voice, machine: Machine, place: Place, *, printed: bool = False, worker: bool = False
) -> Observer:
    """Who watches: with -p nobody, with --json a writer of lines, else words for people."""
    if printed:
        return Silent(voice)
    if voice.settings.json:
        store = machine.ports.store_at(place.folder)
        return Lines(voice, place.capsule, number_of=lambda event: number_of(store, event))
    return Live(
        voice,
        place.capsule,
        past=lambda: machine.look(place).events_of(),
        heading=machine.reference(place) if worker else None,
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
        case "released":
            doubt = report.state == "in_doubt"
            return DecisionError.exit_code if doubt else HeldElsewhereError.exit_code
        case _:
            assert_never(report.reason)


def failure_of(report: Report, name: str, *, sent: bool) -> SojournError | None:
    """The report as an error where the turn did not come to rest; a pause is none.

    `name` is how the command line finds the capsule again, `sent` says that a message was accepted.
    """
    go_on = f"sojourn resume {name}"
    match report.reason:
        case "rest" | "idle" | "paused" | "left":
            return None
        case "limit":
            return LimitError(
                f"the turn ended at its limit of {counted(report.model_calls, 'model call')}",
                code="turn_limit",
                state="What was done is in the log.",
                hint=f'Go on with a message:  sojourn run {name} "go on"',
            )
        case "model":
            return CallError(
                _why(report.failure),
                code="model_failed" if report.failure is None else report.failure.code,
                state=_joined(report.state, "The turn is paused; nothing is lost.", KEPT * sent),
                hint=_joined(
                    naming(report.hint, name),
                    f"Ask again:  {go_on}    or another model:  {go_on} -m PROVIDER/NAME",
                    between="\n",
                ),
            )
        case "decision":
            return undecided(report.question, name, sent=sent)
        case "released":
            return _gone(report, name, sent=sent)
        case _:
            assert_never(report.reason)


def _gone(report: Report, name: str, *, sent: bool) -> SojournError:
    """The error of a turn that goes on at another machine, or may do so."""
    kept = KEPT * sent
    if report.state == "in_doubt":
        return SojournError(
            f"the agent was being moved to {report.hint}, which has not said whether it has it",
            code="in_doubt",
            state=_joined("Nobody runs it until that is known; nothing is lost.", kept),
            hint=f"Ask again:  sojourn move resume {name}",
            exit_code=DecisionError.exit_code,
        )
    return HeldElsewhereError(
        f"the agent moved to {report.hint or 'another machine'} while its turn ran",
        code="moved_away",
        state=_joined("The turn goes on there; nothing is lost.", kept),
        hint=f"Watch it there:  sojourn log -f --remote {report.hint or 'MACHINE'} {name}",
    )


def undecided(question: Question | None, name: str, *, sent: bool) -> DecisionError:
    """The question about a call whose outcome is unknown, and the ways to answer it."""
    go_on = f"sojourn resume {name}"
    call = "a call" if question is None else f"{question.tool} {about(question.args)}".rstrip()
    return DecisionError(
        f"{call}: it may have happened, and its rule is to ask a person",
        state=_joined(
            "The turn waits; nothing is lost.",
            KEPT_UNTIL_DECIDED * sent,
            "Find out what is true, then choose:",
        ),
        hint=f"call it once more:          {go_on} --retry\n"
        f"leave it unknown:           {go_on} --skip\n"
        f"it happened, this came out: {go_on} --result FILE",
    )


def first_model(machine: Machine, place: Place) -> SojournError:
    """The error of an agent without a model: the keys seen here by name, and what would work."""
    seen = keys_seen(machine.environment)
    name = machine.reference(place)
    ways = ["name one once:  " + f'sojourn run {name} "..." -m PROVIDER/NAME']
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


def missing_for_run(machine: Machine, look: Look) -> Iterator[SojournError]:
    """What `run` would say when it held the capsule: of the model first, then of the workspace."""
    fallback = machine.environment.get(MODEL_VARIABLE, "")
    try:
        if look.model is not None:
            machine.model_of(look.place, look.model)
        elif fallback:
            machine.model(fallback)
        else:
            yield first_model(machine, look.place)
    except SojournError as error:
        yield error
    record = look.evidence.record
    if record is not None and not os.path.isdir(record.workspace):
        yield no_workspace(record.workspace)


def _joined(*texts: str, between: str = " ") -> str:
    """Those that say something, one after the other."""
    return between.join(text for text in texts if text)


def _why(failure: Failure | None) -> str:
    if failure is None:
        return "the model brought no reply, several times in a row"
    return f"the model failed: {plain(failure.message)}"


def _close(voice: Voice, report: Report, name: str, watching: object, seconds: float) -> None:
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
        voice.talk(Painted("paused.", "warn"), f" Go on:  sojourn resume {name}")
    voice.talk(Painted(" · ".join(facts), "dim"))


def _line(report: Report, place: Place, code: int, hint: str) -> ReportLine:
    usage, failure, question = report.usage, report.failure, report.question
    return ReportLine(
        capsule=shape_of(place),
        reason=report.reason,
        exit=code,
        hint=hint,
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
