"""Redaction and repair over a disk that can end anywhere; their checks are shared by all tests."""

from contextlib import suppress

from faults.forks_and_claims import BOOTS, HERE, PARENT, Files, events, ports, sound, with_a_capsule
from faults.power_cuts import at_once
from sojourn.drive.observe import Unwatched
from sojourn.drive.opening import hold_capsule
from sojourn.drive.redact import redact_event
from sojourn.drive.repair import repair_capsule
from sojourn.errors import FormatError, HeldElsewhereError
from sojourn.format import layout
from sojourn.format.capsule_kinds import Redacted, Repaired
from sojourn.format.event import Input, TurnEnded
from sojourn.format.parts import TextPart
from sojourn.ids import EventId, RequestId, TurnId
from sojourn.testing.disk import RecordingDisk

SECRET = b"hunter2"
LOG = f"{PARENT}/{layout.TIMELINE}"


def opens(disk: RecordingDisk) -> None:
    """Any opening, as a later process does it."""

    async def once() -> None:
        async with hold_capsule(ports(disk, HERE), PARENT, observer=Unwatched()):
            pass

    at_once(once())


def with_a_secret() -> RecordingDisk:
    """A capsule in which one message holds a secret, in a blob too, and more was said since."""
    disk = with_a_capsule()

    async def say() -> None:
        async with hold_capsule(ports(disk, HERE), PARENT, observer=Unwatched()) as hold:
            for text in ("hello", "hunter2 " * 3000, "hunter2", "good bye"):
                parts = (TextPart(text=text),)
                hold.draft(Input(request=RequestId(text[:9]), author="you", parts=parts))
                hold.draft(TurnEnded(turn=TurnId("t"), reason="rest"))
                await hold.commit()

    at_once(say())
    return disk.copy()


def large(disk: RecordingDisk) -> EventId:
    """The message whose text lies in a blob."""
    inputs = [event for event in events(disk, PARENT) if event.header.kind == "input"]
    return inputs[1].id


def redact(disk: RecordingDisk, done: list[str], boot: str = BOOTS[0]) -> None:
    at_once(
        redact_event(
            ports(disk, HERE, boot),
            PARENT,
            large(disk),
            reason="a password",
            by="user",
            observer=Unwatched(),
        )
    )
    done.append("redacted")


def is_redacted_or_untouched(disk: RecordingDisk, done: list[str]) -> None:
    """The next opening finds the event whole, or completes its redaction."""
    named = large(disk)
    opens(disk)
    sound(disk, PARENT)
    (event,) = [event for event in events(disk, PARENT) if event.id == named]
    says = [e for e in events(disk, PARENT) if isinstance(e.body, Redacted)]
    held = Files(disk, PARENT).held.values()
    long = [data for data in held if SECRET + b" " + SECRET in data]
    if event.body is None:
        assert [e.body.event for e in says if isinstance(e.body, Redacted)] == [named]
        assert long == []
    else:
        assert not done
        assert says == []
        assert len(long) == 2, "the blob, and the beginning of its text in the log"
        redact(disk, [], BOOTS[1])
        is_redacted_or_untouched(disk, ["redacted"])


def with_damage() -> RecordingDisk:
    """The same, with a line destroyed that was durable."""
    disk = with_a_secret()
    data = bytearray(disk.tree()[LOG])
    start = data.index(b'"hello"')
    line = data.rindex(b"\n", 0, start) + 1
    end = data.index(b"\n", start)
    data[line:end] = bytes(end - line)
    handle = disk.open(LOG, "update")
    disk.write_at(handle, bytes(data), 0)
    disk.sync(handle)
    disk.close(handle)
    return disk.copy()


def repair(disk: RecordingDisk, done: list[str], boot: str = BOOTS[0]) -> None:
    at_once(repair_capsule(ports(disk, HERE, boot), PARENT, dry_run=False, observer=Unwatched()))
    done.append("repaired")


def is_repaired_or_damaged(disk: RecordingDisk, done: list[str]) -> None:
    """Repairing again comes to the same end, and no byte and no other line is lost."""
    before = {event.id for event in events(disk, PARENT) if not isinstance(event.body, Repaired)}
    if done:
        opens(disk)
    else:
        with suppress(FormatError, HeldElsewhereError):
            opens(disk)
        repair(disk, [], BOOTS[1])
    sound(disk, PARENT)
    after = events(disk, PARENT)
    assert before <= {event.id for event in after}
    (said,) = [event.body for event in after if isinstance(event.body, Repaired)]
    assert said.blob is not None
    kept = Files(disk, PARENT).held[layout.blob_path(said.blob.sha256)]
    assert set(kept) == {0, 10}
