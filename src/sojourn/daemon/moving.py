"""The messages and contents of a move, given to the machine's receiver."""

from typing import cast

from sojourn.core.migration_messages import Check, Message, Propose
from sojourn.daemon.gate import Call
from sojourn.daemon.refusal import Refused
from sojourn.errors import StorageError
from sojourn.ids import CapsuleId, MoveId
from sojourn.peers.frames import pieces
from sojourn.peers.shapes import Contents, Done


async def said(call: Call) -> object:
    """What this machine answers; a failed durable write is answered by nothing at all.

    Raises: Refused; what the receiver raises.
    """
    message = cast(Message, call.asks)
    if message.move != call.path["move"]:
        raise Refused("malformed", "the path names another move than the message")
    if isinstance(message, Check | Propose):
        call.caller.check_capsule(message.capsule, message.offer.name)
    caller = call.caller
    try:
        return await call.house.receiver.answer(
            message, sender=caller.machine, address=caller.address
        )
    except StorageError as failure:
        call.house.fail(failure)
        raise


async def contents(call: Call) -> Done:
    """Contents as they come; what came whole stays, also when the rest does not.

    Raises: PeerError `bad_frames`; what the receiver raises.
    """
    capsule, move = cast(Contents, call.asks).capsule, MoveId(call.path["move"])
    await call.house.receiver.take(
        CapsuleId(capsule), move, pieces(call.stream), sender=call.caller.machine
    )
    return Done()
