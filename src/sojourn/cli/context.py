"""`sojourn context`: print exactly what a model would get now."""

import json
from typing import TYPE_CHECKING, Final, assert_never, cast

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of, standing_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted, size
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import CallError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sojourn.agent import Look, Machine, Place
    from sojourn.render import Loss, Rendered, Target

NEXT_INPUT: Final = "(the next input will stand here)"
MOST_EVENTS: Final = 3
"""Events named for one loss; of the others only the number is said."""


@click.command(
    "context",
    cls=Command,
    examples=[
        "sojourn context research",
        "sojourn context research -m openai/gpt-5",
        "sojourn context research --bytes | sha256sum",
    ],
)
@capsule_argument()
@click.option("-m", "--model", metavar="MODEL", help="As this model would get it.")
@click.option("--bytes", "exact", is_flag=True, help="The very bytes that would be sent.")
@click.pass_obj
def command(settings: Settings, capsule: str | None, model: str | None, exact: bool) -> None:
    """Print the request that the log of CAPSULE renders to, as its model would get it now.

    Nothing is sent, and no key is needed. Messages come before the tools, which are named only; -v
    shows their schemas too, --json and --bytes the request as it is. When it would be sent, and
    what the rendering had to drop or change, is said on stderr.
    """
    machine, place = find(capsule)
    look = machine.look(place)
    name = model or look.model or machine.environment.get("SOJOURN_MODEL", "")
    if not name:
        from sojourn.cli.turns import first_model

        raise first_model(machine, place)
    target = target_of(machine, name, place=None if model else place)
    _print(Voice(settings), machine, look, name, target, look.context(target), exact)


def target_of(machine: "Machine", name: str, *, place: "Place | None") -> "Target":
    """The model as rendering knows it; a missing key changes nothing of what would be sent.

    With `place` the name is the one in that capsule's log, and a script of it may be missing too.

    Raises: NotFoundError `provider_unknown`; UsageError `model_name`.
    """
    from sojourn.format.event import Issuer
    from sojourn.render import Target
    from sojourn.render.profile import profile_for

    try:
        opened = machine.model(name) if place is None else machine.model_of(place, name)
        return Target(issuer=opened.issuer, profile=opened.profile)
    except (CallError, NotFoundError) as error:
        if isinstance(error, NotFoundError) and (place is None or error.code != "script_missing"):
            raise
        provider, _, model = name.partition("/")
        profile = profile_for(provider, model)
        issuer = Issuer(provider=provider, api=profile.dialect, scope="default", model=model)
        return Target(issuer=issuer, profile=profile)


def _print(
    voice: Voice,
    machine: "Machine",
    look: "Look",
    name: str,
    target: "Target",
    rendered: "Rendered",
    exact: bool,
) -> None:
    from sojourn.cli.shapes import ContextAnswer, LossShape
    from sojourn.render import render_bytes

    sent, dialect = render_bytes(rendered.payload), target.profile.dialect
    awaits = look.state.turn is None and not look.state.unseen
    if voice.settings.json:
        losses = tuple(
            LossShape(code=loss.code, event=loss.event, detail=loss.detail)
            for loss in rendered.losses
        )
        voice.answer(
            ContextAnswer(
                capsule=shape_of(look.place),
                model=name,
                dialect=dialect,
                awaits_input=awaits,
                bytes=len(sent),
                payload=rendered.payload,
                losses=losses,
            )
        )
        return
    losses, bridge = rendered.losses, _last_bridge(rendered) if awaits else None
    if exact:
        voice.out.raw_bytes(sent)
    else:
        shown = _for_people(rendered, whole=bool(voice.settings.verbose))
        if awaits:
            _mark_next(shown, over=bridge is not None)
        for line in json.dumps(shown, indent=2, ensure_ascii=False).splitlines():
            voice.data(line)
    voice.talk(Painted(f"{name}, {dialect}: {size(len(sent))}", "dim"))
    voice.talk(Painted(_when(look, machine.reference(look.place)), "dim"))
    if exact and bridge is not None:
        voice.talk(Painted(f"the next input will stand where these bytes have: {bridge}", "dim"))
    for line in _lost(losses if bridge is None else losses[:-1]):
        voice.talk(Painted("not as in the log: ", "warn"), line)


def _last_bridge(rendered: "Rendered") -> str | None:
    """The runtime's word that ends the messages only because nobody has spoken yet."""
    last = rendered.losses[-1] if rendered.losses else None
    return last.detail if last is not None and last.code == "bridge_added" else None


def _for_people(rendered: "Rendered", *, whole: bool) -> dict[str, object]:
    """The request in the order in which people read it; tools by name unless `whole`."""
    payload = rendered.payload
    first = {key: payload[key] for key in ("system", "messages") if key in payload}
    tools = {} if "tools" not in payload else {"tools": payload["tools"]}
    if tools and not whole:
        tools = {"tools": [_tool_name(tool) for tool in _list(payload["tools"])]}
    return {**first, **tools, **{key: payload[key] for key in payload if key not in first | tools}}


def _mark_next(shown: dict[str, object], *, over: bool) -> None:
    """Put the mark at the end of the messages, `over` the last of them."""
    messages = _list(shown["messages"])
    kept = messages[:-1] if over else messages
    shown["messages"] = [*kept, {"role": "user", "content": NEXT_INPUT}]


def _tool_name(tool: object) -> str:
    fields = cast("Mapping[str, object]", tool)
    inner = fields.get("function", fields)
    return str(cast("Mapping[str, object]", inner).get("name", ""))


def _list(value: object) -> list[object]:
    return list(cast("Iterable[object]", value))


def _when(look: "Look", name: str) -> str:
    """When this would be sent, and why not now."""
    standing = standing_of(look)
    match standing:
        case "resting" | "held":
            return (
                "the agent rests: nothing is sent before the next input, which is added at the end"
            )
        case "waiting":
            waits = counted(look.waiting, "message") if look.waiting else "a message"
            return f"sent once {waits} from the inbox is added:  sojourn resume {name}"
        case "running":
            return (
                "the turn runs: it is sent when the model is asked next, with what comes till then"
            )
        case "decision":
            return f"nothing is sent before a person decides:  sojourn status {name}"
        case "interrupted" | "paused" | "model_failed":
            return f"the turn is open: this goes out when it goes on:  sojourn resume {name}"
        case "frozen" | "in_doubt" | "moved_away" | "arriving" | "look_only" | "damaged":
            return f"nothing is sent from here:  sojourn status {name}"
        case _:
            assert_never(standing)


def _lost(losses: "Sequence[Loss]") -> list[str]:
    """Each loss in words, the same ones once."""
    from sojourn.render.request import LOSSES

    found: dict[str, list[str]] = {}
    for loss in losses:
        words = LOSSES[loss.code] + (f": {loss.detail}" if loss.detail else "")
        found.setdefault(words, []).extend([loss.event[:8]] if loss.event else [])
    return [f"{words}{_of_events(events)}" for words, events in found.items()]


def _of_events(events: list[str]) -> str:
    if not events:
        return ""
    events = list(dict.fromkeys(events))
    named = ", ".join(events[:MOST_EVENTS])
    more = len(events) - MOST_EVENTS
    return f" (event{'s' * (len(events) > 1)} {named}{f' and {more} more' if more > 0 else ''})"
