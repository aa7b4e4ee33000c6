"""Every path of the daemon: the one table that serves, and that the OpenAPI document shows."""

from typing import Final

from sojourn.core import migration_messages as said
from sojourn.daemon import acquainting, looking, moving
from sojourn.daemon.door import Need
from sojourn.daemon.gate import Endpoint
from sojourn.peers import shapes
from sojourn.peers.limits import SMALL, STREAM, TEXT


def _move(asks: type[object], need: Need, summary: str, *, limit: int = SMALL) -> Endpoint:
    tag = str(getattr(asks, "__struct_config__").tag)  # noqa: B009 - unknown to the types
    return Endpoint(
        method="POST",
        path=f"/v1/moves/{{move}}/{tag}",
        summary=summary,
        need=need,
        act=moving.said,
        asks=asks,
        gives=said.Answer,
        limit=limit,
    )


MOVES: Final = (
    _move(said.Check, "move", "What stands against a move, and what is missing."),
    _move(said.Propose, "move", "The source is frozen and offers the capsule."),
    _move(said.Prepare, "move", "All was sent: check it all and promise."),
    _move(said.Activate, "paired", "Become the holder."),
    _move(said.Resolve, "paired", "Did this move happen? If not, it never will."),
    _move(said.Abort, "paired", "The source goes on itself."),
    _move(said.Retired, "paired", "The source has written down that it is no holder."),
    _move(said.Who, "move", "The highest epoch that was ever activated here."),
    _move(said.Forward, "paired", "Messages for an agent that was moved here.", limit=TEXT),
    Endpoint(
        method="POST",
        path="/v1/moves/{move}/contents",
        summary="Contents of a capsule, in frames.",
        need="move",
        act=moving.contents,
        query=shapes.Contents,
        gives=shapes.Done,
        limit=STREAM,
        slot="streams",
        streamed=True,
    ),
)

LOOKING: Final = (
    Endpoint(
        method="GET",
        path="/v1/hello",
        summary="Who is here, and since which start.",
        need="anyone",
        act=looking.hello,
        gives=shapes.Hello,
        to_anyone=True,
    ),
    Endpoint(
        method="GET",
        path="/v1/capsules",
        summary="The capsules of this machine.",
        need="look",
        act=looking.capsules,
        gives=shapes.Listing,
    ),
    Endpoint(
        method="GET",
        path="/v1/capsules/{capsule}/log",
        summary="The lines of a log, as they are stored; with follow also what is added.",
        need="look",
        act=looking.log,
        query=shapes.Log,
        slot="followers",
        lines=True,
    ),
    Endpoint(
        method="POST",
        path="/v1/capsules/{capsule}/messages",
        summary="Leave a message for an agent.",
        need="send",
        act=looking.message,
        asks=shapes.Said,
        gives=shapes.Taken,
        limit=TEXT,
    ),
)

PAIRING: Final = (
    Endpoint(
        method="POST",
        path="/v1/pairings",
        summary="Ask to be paired with this machine.",
        need="anyone",
        act=acquainting.offer,
        asks=shapes.Offered,
        gives=shapes.Countered,
    ),
    Endpoint(
        method="POST",
        path="/v1/pairings/{pairing}/nonce",
        summary="Tell the nonce whose digest came first.",
        need="anyone",
        act=acquainting.reveal,
        asks=shapes.Revealed,
        gives=shapes.Pairing,
    ),
    Endpoint(
        method="GET",
        path="/v1/pairings/{pairing}",
        summary="Ask whether the person at this machine decided.",
        need="anyone",
        act=acquainting.ask,
        gives=shapes.Pairing,
    ),
    Endpoint(
        method="POST",
        path="/v1/pairing",
        summary="Open this machine for one pairing.",
        need="near",
        act=acquainting.open_window,
        asks=shapes.Window,
        gives=shapes.Pairing,
    ),
    Endpoint(
        method="GET",
        path="/v1/pairing",
        summary="How far the pairing is, with the code.",
        need="near",
        act=acquainting.state,
        gives=shapes.Pairing,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/pairing",
        summary="Close this machine for pairings.",
        need="near",
        act=acquainting.close_window,
        gives=shapes.Pairing,
    ),
    Endpoint(
        method="POST",
        path="/v1/pairing/verdict",
        summary="Say whether the codes agree.",
        need="near",
        act=acquainting.verdict,
        asks=shapes.Verdict,
        gives=shapes.Pairing,
    ),
)

ENDPOINTS: Final = (*LOOKING, *MOVES, *PAIRING)
