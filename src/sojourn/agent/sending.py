"""Accepting a message for an agent: durable on return, once under each request id."""

from sojourn.agent.look import events_in
from sojourn.agent.places import Place
from sojourn.agent.report import Accepted
from sojourn.drive.machine import Ports
from sojourn.errors import UsageError
from sojourn.format.blob import blob_id
from sojourn.format.event import Input
from sojourn.format.parts import BlobRef, TextPart
from sojourn.ids import RequestId
from sojourn.ports import Message


def accept(ports: Ports, place: Place, message: Message, *, named: bool) -> Accepted:
    """Put the message into the inbox and wake the queue (docs/protocol.md#inbox).

    `place` is no copy: a copy's folder would lead the worker to where the capsule cannot run.
    `named` when its sender chose the request id: then it may be in the log already, where the
    inbox no longer knows it.

    Raises: UsageError `request_reused` when the id is known with other content; StorageError.
    """
    record = ports.ledger.load(place.capsule) if place.capsule else None
    if record is None or record.state != "RETIRED":
        # What waits for a capsule that moved away is sent on, and no turn is taken here.
        ports.queue.put(place.capsule, place.folder)
    item = ports.inbox.put(place.capsule, message)
    already = item.waited
    if named and not already:
        read = _read_before(ports, place.folder, message.request)
        if read is not None:
            # The holder unlinks a message's file only once the log durably holds it.
            ports.inbox.remove(place.capsule, item)
            already = True
        if read is not None and not _same(read, item.message):
            raise UsageError(
                f"the request id {message.request} was used for another message",
                code="request_reused",
                state="The earlier message was read; this one was not accepted.",
                hint="Send it with another request id.",
            )
    return Accepted(request=message.request, capsule=place.capsule, already=already)


def _read_before(ports: Ports, folder: str, request: RequestId) -> Input | None:
    """The input of the log that this request id brought."""
    for event in events_in(ports.store_at(folder)):
        if isinstance(event.body, Input) and event.body.request == request:
            return event.body
    return None


def _same(read: Input, message: Message) -> bool:
    if read.author != message.author or len(read.parts) != 1:
        return False
    part = read.parts[0]
    if not isinstance(part, TextPart):
        return False
    if isinstance(part.text, BlobRef):
        return part.text.sha256 == blob_id(message.text.encode())
    return part.text == message.text
