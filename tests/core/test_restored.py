"""What a workspace lacks that was put back, and what the model is told of it."""

from collections.abc import Callable
from typing import Any

from core.stories import Story
from sojourn.core.notices import MOVED, MOVED_LACKS, NOT_ALONG, UNKNOWN_CALLS
from sojourn.core.restored import LACKS, MOST_NAMED, NONE_LACKS, Lacking, told
from sojourn.core.view import Notice
from sojourn.format.capsule_kinds import Activated, Restored, Snapshotted
from sojourn.format.event import AnyBody, Event, ReplayRule, ToolIntent
from sojourn.format.parts import BlobRef, CallPart
from sojourn.ids import BlobId, CallKey, CapsuleId, EventId, MachineId, RunnerId, TurnId


class Log:
    """A log of snapshots, restores and calls, and what its workspaces lack."""

    def __init__(self) -> None:
        self.lacking = Lacking()
        self.story = Story()

    def add(self, body: AnyBody) -> EventId:
        event = self.story.add(body)
        header = None
        self.lacking.add(Event(id=event, header=header, body=body))
        return event

    def call(self, name: str, rule: ReplayRule = "report") -> CallKey:
        intent = ToolIntent(
            turn=TurnId("t"),
            call=CallKey(name),
            runner=RunnerId("r"),
            requested_by=EventId("e"),
            index=0,
            tool="tool",
            replay=rule,
        )
        self.add(intent)
        return CallKey(name)

    def snapshot(self) -> EventId:
        result = BlobId(f"{len(self.story.bodies):064d}")
        return self.add(Snapshotted(parent=None, result=result, entries=0, size=0, delta="{}"))

    def restore(self, to: EventId | None) -> tuple[CallKey, ...]:
        missing = self.lacking.at(to)
        self.add(Restored(snapshot=to, why="asked", missing=missing))
        return missing


def test_calls_after_a_snapshot_are_what_its_workspace_lacks() -> None:
    log = Log()
    first = log.call("1")
    early = log.snapshot()
    second, third = log.call("2"), log.call("3")
    late = log.snapshot()
    assert log.lacking.at(late) == ()
    assert log.lacking.at(early) == (second, third)
    assert log.lacking.at(None) == (first, second, third)


def test_a_call_counts_once_and_only_when_running_it_again_may_matter() -> None:
    log = Log()
    early = log.snapshot()
    log.call("read", "safe")
    log.call("1")
    log.call("1")
    assert log.lacking.at(early) == ("1",)


def test_what_a_restore_took_away_stays_away_until_a_snapshot_has_it() -> None:
    log = Log()
    early = log.snapshot()
    log.call("1")
    late = log.snapshot()
    assert log.restore(early) == ("1",)
    after = log.snapshot()
    log.call("2")
    assert log.restore(late) == ("2",)
    assert log.restore(after) == ("1", "2")
    assert log.restore(None) == ("1", "2")


def restored(missing: int) -> Restored:
    return Restored(snapshot=None, why="asked", missing=keys(missing))


def keys(count: int) -> tuple[CallKey, ...]:
    return tuple(CallKey(str(number)) for number in range(count))


def shown(parts: list[CallPart]) -> Callable[[CallKey], CallPart | None]:
    return dict(zip(keys(len(parts)), parts, strict=True)).get


def moved(**fields: Any) -> Activated:
    return Activated(
        capsule=CapsuleId("c" * 64),
        move="m" * 32,
        source=MachineId("a" * 64),
        continues=EventId("e" * 64),
        heads=(),
        **fields,
    )


def test_the_model_is_told_that_it_moved_and_of_no_label_that_nobody_gave() -> None:
    assert told(moved(), shown([])) == MOVED
    assert "big box" in told(moved(label="big box"), shown([]))


def test_the_model_is_told_what_did_not_come_along_and_what_nobody_knows() -> None:
    parts = [CallPart(tool="write", args="{}"), CallPart(tool="shell", args="{}")]
    body = moved(
        missing=keys(1), unknown=(keys(2)[1],), left_out=("socket", "pipe"), left_out_count=9
    )
    lines = told(body, shown(parts)).splitlines()
    assert lines[1:] == [
        NOT_ALONG.format(names="socket, pipe and 7 more"),
        MOVED_LACKS,
        "- write {}",
        UNKNOWN_CALLS,
        "- shell {}",
    ]


def test_the_model_is_told_by_name_what_its_files_lack() -> None:
    parts = [CallPart(tool="write", args=f'{{"path":"{n}"}}') for n in range(MOST_NAMED + 3)]
    text = told(restored(len(parts)), shown(parts))
    assert LACKS in text
    assert "- 3 earlier calls\n" in text
    assert '{"path":"2"}' not in text
    assert text.endswith('- write {"path":"22"}')


def test_long_arguments_are_cut_and_those_in_a_blob_shown_by_their_beginning() -> None:
    ref = BlobRef(sha256=BlobId("0" * 64), size=9, media_type="text/plain", preview="begin")
    parts = [CallPart(tool="a", args="x" * 500), CallPart(tool="b", args=ref)]
    text = told(restored(2), shown(parts))
    assert "x" * 120 + " …" in text
    assert "x" * 121 not in text
    assert "- b begin …" in text


def test_a_workspace_that_lacks_nothing_is_said_to_be_whole() -> None:
    assert NONE_LACKS in told(restored(0), shown([]))


def test_the_notice_stands_where_the_workspace_was_put_back() -> None:
    story = Story()
    story.hear("hello")
    event = story.add(Restored(snapshot=None, why="asked", missing=(CallKey("unknown"),)))
    story.hear("more")
    notice = story.transcript.entries[1]
    assert isinstance(notice, Notice)
    assert notice.event == event
    assert "- 1 earlier call" in notice.text


def test_what_is_said_again_with_nothing_between_is_told_once() -> None:
    story = Story()
    story.hear("hello")
    story.add(Restored(snapshot=None, why="fork"))
    again = story.forked("7", epoch=2)
    again.add(Restored(snapshot=None, why="fork"))
    assert notices(again) == 1
    again.hear("more")
    again.add(Restored(snapshot=None, why="asked"))
    again.add(Restored(snapshot=None, why="asked", missing=(CallKey("unknown"),)))
    assert notices(again) == 3


def test_what_two_machines_were_told_apart_is_told_twice() -> None:
    here = Story()
    here.hear("hello")
    there = here.claimed("7", epoch=1001)
    for story in (here, there):
        story.add(Restored(snapshot=None, why="claim"))
    assert notices(here.merged(there)) == 2


def notices(story: Story) -> int:
    return sum(isinstance(entry, Notice) for entry in story.transcript.entries)
