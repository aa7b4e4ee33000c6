"""Sends on what waits in the inbox of a machine that the capsule left (docs/moving.md#inbox)."""

from collections.abc import Sequence
from typing import Final

from sojourn.core.migration_messages import Forward, Forwarded, Noted
from sojourn.drive.machine import Ports
from sojourn.errors import PeerError
from sojourn.ids import CapsuleId, MoveId
from sojourn.ports import InboxItem
from sojourn.ports_move import Peer

AT_ONCE: Final = 16
MOST_BYTES: Final = 2 << 20
"""Messages, and bytes of text unless one alone has more, that travel in one."""


def _next(items: Sequence[InboxItem]) -> tuple[InboxItem, ...]:
    """The first messages, so many as may travel in one."""
    size, taken = 0, list[InboxItem]()
    for item in items[:AT_ONCE]:
        size += len(item.message.text.encode())
        if taken and size > MOST_BYTES:
            break
        taken.append(item)
    return tuple(taken)


async def forward(ports: Ports, peer: Peer, capsule: CapsuleId, move: MoveId) -> int:
    """How many messages are there now; what was not taken waits here, and is sent again later.

    A message is one message by its request id, so one that is sent twice arrives once.
    """
    count = 0
    while items := _next(ports.inbox.items(capsule)):
        sent = tuple(
            Forwarded(
                request=item.message.request,
                author=item.message.author,
                text=item.message.text,
                kind=item.message.kind,
                before=item.message.before,
            )
            for item in items
        )
        try:
            answer = await peer.ask(Forward(capsule=capsule, move=move, items=sent))
        except PeerError:
            return count
        if not isinstance(answer, Noted):
            return count
        for item in items:
            ports.inbox.remove(capsule, item)
        count += len(items)
    return count
