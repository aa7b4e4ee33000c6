"""What a workspace lacks that was put back, and what the model is told of it."""

from core.stories import Story
from sojourn.core.restored import LACKS, MOST_NAMED, NONE_LACKS, Lacking, told
from sojourn.core.view import Notice
from sojourn.format.capsule_kinds import Restored, Snapshotted
from sojourn.format.event import AnyBody, Event, ReplayRule, ToolIntent
from sojourn.format.parts import BlobRef, CallPart
from sojourn.ids import BlobId, CallKey, EventId, RunnerId, TurnId


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


def test_the_model_is_told_by_name_what_its_files_lack() -> None:
    parts = [CallPart(tool="write", args=f'{{"path":"{n}"}}') for n in range(MOST_NAMED + 3)]
    text = told(len(parts), parts)
    assert LACKS in text
    assert "- 3 earlier calls\n" in text
    assert '{"path":"2"}' not in text
    assert text.endswith('- write {"path":"22"}')


def test_long_arguments_are_cut_and_those_in_a_blob_shown_by_their_beginning() -> None:
    ref = BlobRef(sha256=BlobId("0" * 64), size=9, media_type="text/plain", preview="begin")
    text = told(2, [CallPart(tool="a", args="x" * 500), CallPart(tool="b", args=ref)])
    assert "x" * 120 + " …" in text
    assert "x" * 121 not in text
    assert "- b begin …" in text


def test_a_workspace_that_lacks_nothing_is_said_to_be_whole() -> None:
    assert NONE_LACKS in told(0, [])


def test_the_notice_stands_where_the_workspace_was_put_back() -> None:
    story = Story()
    story.hear("hello")
    event = story.add(Restored(snapshot=None, why="asked", missing=(CallKey("unknown"),)))
    story.hear("more")
    notice = story.transcript.entries[1]
    assert isinstance(notice, Notice)
    assert notice.event == event
    assert "- 1 earlier call" in notice.text
