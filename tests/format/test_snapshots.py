"""Snapshots as events: deltas, lists made of them, and when a whole list is stored."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import FormatError, LimitError
from sojourn.format import layout, snapshot
from sojourn.format.blob import ref
from sojourn.format.capsule_kinds import Snapshotted
from sojourn.format.parts import BlobRef
from sojourn.format.snapshot import EMPTY, Delta, Entry, Snapshot, Type
from sojourn.format.snapshot_fold import Snapshots
from sojourn.ids import BlobId, EventId

TYPES: list[Type] = ["file", "executable", "symlink"]


def entry(path: str, text: str = "", kind: Type = "file") -> Entry:
    if kind == "directory":
        return Entry(path=path, type=kind)
    digest = BlobId(sha256(text.encode()).hexdigest())
    return Entry(path=path, type=kind, sha256=digest, size=len(text))


PATHS = st.sampled_from(["a", "a.b", "b/c", "b/d/e", "b/d", "f", "é", "\U0001f600", "b c"])
ENTRIES = st.builds(entry, PATHS, st.sampled_from(["", "x", "yy"]), st.sampled_from(TYPES))


@st.composite
def lists(draw: st.DrawFn) -> Snapshot:
    """A sound list; what lies below another path is dropped."""
    found = {one.path: one for one in draw(st.lists(ENTRIES, max_size=8))}
    above = snapshot.folders(found)
    return snapshot.make(one for path, one in found.items() if path not in above)


class Story:
    """A log's snapshot events, one after the other, as a writer appends them."""

    def __init__(self) -> None:
        self.fold = Snapshots()
        self.blobs: dict[str, bytes] = {}
        self.lists: dict[EventId | None, Snapshot] = {None: EMPTY}

    def take(self, listed: Snapshot, *, in_blob: bool = False) -> EventId:
        before = self.lists[self.fold.current]
        delta = snapshot.encode_delta(snapshot.delta(before, listed))
        data = snapshot.encode(listed)
        full = None
        if self.fold.wants_full(len(delta.encode()), len(data)):
            full = self.keep(data)
        body = Snapshotted(
            parent=self.fold.current,
            result=snapshot.digest(data),
            entries=len(listed.entries),
            size=0,
            delta=self.keep(delta.encode()) if in_blob else delta,
            full=full,
        )
        event = EventId(f"{len(self.lists):064d}")
        self.fold.add(event, body)
        self.lists[event] = listed
        return event

    def keep(self, data: bytes) -> BlobRef:
        found = ref(data, media_type="x")
        self.blobs[found.sha256] = data
        return found

    def read(self, found: BlobRef) -> bytes | None:
        return self.blobs.get(found.sha256)


@given(lists(), lists())
def test_a_delta_makes_the_one_list_of_the_other(before: Snapshot, after: Snapshot) -> None:
    change = snapshot.delta(before, after)
    assert snapshot.load_delta(snapshot.encode_delta(change).encode()) == change
    assert snapshot.apply(before, change) == after


@given(lists())
def test_a_delta_of_equal_lists_holds_nothing(one: Snapshot) -> None:
    assert snapshot.delta(one, one) == Delta(changed=(), gone=())


@given(st.lists(lists(), max_size=8), st.booleans())
def test_the_list_at_every_event_is_the_one_that_was_taken(
    taken: list[Snapshot], in_blob: bool
) -> None:
    story = Story()
    for listed in taken:
        story.take(listed, in_blob=in_blob)
    for event, listed in story.lists.items():
        assert story.fold.list_at(event, story.read) == listed
    assert story.fold.result == snapshot.digest(snapshot.encode(story.lists[story.fold.current]))


def test_all_snapshots_take_space_linear_in_what_changed() -> None:
    story, names = Story(), [f"folder/file-{number:04d}" for number in range(200)]
    texts = dict.fromkeys(names, "first")
    story.take(snapshot.make(entry(name, text) for name, text in texts.items()))
    whole = len(snapshot.encode(story.lists[story.fold.current]))
    for turn in range(1000):
        texts[names[turn % 200]] = f"turn {turn}"
        story.take(snapshot.make(entry(name, text) for name, text in texts.items()))
    deltas = sum(len(str(body.delta)) for _, body in story.fold)
    fulls = [body.full for _, body in story.fold if body.full is not None]
    assert 3 < len(fulls) < 12
    assert sum(full.size for full in fulls) < deltas + whole


def test_a_snapshot_without_a_parent_counts_as_a_whole_list() -> None:
    story = Story()
    story.take(snapshot.make([entry("a", "x" * 9)]))
    assert story.fold.wants_full(10, 9) is True
    assert story.fold.wants_full(10, 11) is False
    assert Snapshots().wants_full(10**9, 1) is False


MALFORMED = {
    "gone, and was not there": Delta(changed=(), gone=("z",)),
    "changed to what it was": Delta(changed=(entry("a", "x"),), gone=()),
    "both gone and changed": Delta(changed=(entry("a", "y"),), gone=("a",)),
    "unsorted": Delta(changed=(entry("c"), entry("b")), gone=()),
    "twice": Delta(changed=(entry("c"), entry("c")), gone=()),
    "gone unsorted": Delta(changed=(), gone=("q", "a")),
    "below another path": Delta(changed=(entry("a/b"),), gone=()),
    "a folder with a digest": Delta(
        changed=(Entry(path="d", type="directory", size=1, sha256=BlobId("0" * 64)),), gone=()
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_delta_that_changes_nothing_or_breaks_a_rule_is_refused(name: str) -> None:
    before = snapshot.make([entry("a", "x"), entry("q", "x")])
    with pytest.raises(FormatError) as caught:
        snapshot.apply(before, MALFORMED[name])
    assert caught.value.code == "snapshot_malformed"


@pytest.mark.parametrize("path", ["../x", "/x", "a//b", "a\x07", "\ud800"])
def test_a_delta_with_an_unsafe_path_is_refused(path: str) -> None:
    bad = Entry(path=path, type="file", sha256=BlobId("0" * 64), size=1)
    with pytest.raises(FormatError) as caught:
        snapshot.apply(EMPTY, Delta(changed=(bad,), gone=()))
    assert caught.value.code == "path_unsafe"


def test_a_list_that_is_not_the_one_its_event_names_is_refused() -> None:
    story = Story()
    event = story.take(snapshot.make([entry("a", "x")]))
    body = dict(iter(story.fold))[event]
    fold = Snapshots()
    fold.add(event, Snapshotted(**{**_fields(body), "result": BlobId("0" * 64)}))
    with pytest.raises(FormatError) as caught:
        fold.list_at(event, story.read)
    assert caught.value.code == "snapshot_malformed"


def test_a_parent_must_stand_earlier_in_the_log() -> None:
    story = Story()
    event = story.take(snapshot.make([entry("a", "x")]))
    body = dict(iter(story.fold))[event]
    for parent in (event, EventId("f" * 64)):
        fold = Snapshots()
        fold.add(event, Snapshotted(**{**_fields(body), "parent": parent}))
        with pytest.raises(FormatError) as caught:
            fold.list_at(event, story.read)
        assert caught.value.code == "snapshot_malformed"


@pytest.mark.parametrize(
    ("damage", "code"),
    [(None, "blob_missing"), (b"{}", "blob_size"), (b"same size", "blob_altered")],
)
def test_a_delta_whose_blob_is_damaged_is_named(damage: bytes | None, code: str) -> None:
    story = Story()
    event = story.take(snapshot.make([entry("a", "x")]), in_blob=True)
    name, data = next(iter(story.blobs.items()))
    if damage is None:
        story.blobs.clear()
    else:
        story.blobs[name] = damage if code == "blob_size" else b"x" + data[1:]
    with pytest.raises(FormatError) as caught:
        story.fold.list_at(event, story.read)
    assert caught.value.code == code


def test_a_delta_longer_than_its_limit_is_not_even_read() -> None:
    huge = BlobRef(sha256=BlobId("0" * 64), size=layout.MAX_SNAPSHOT + 1, media_type="x")
    fold = Snapshots()
    event = EventId("e" * 64)
    fold.add(
        event,
        Snapshotted(parent=None, result=BlobId("0" * 64), entries=1, size=1, delta=huge),
    )
    with pytest.raises(FormatError) as caught:
        fold.list_at(event, lambda _: pytest.fail("it was read"))
    assert caught.value.code == "too_long"


def test_a_list_that_no_reader_would_take_is_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MAX_SNAPSHOT", 100)
    with pytest.raises(LimitError) as caught:
        snapshot.encode(snapshot.make([entry("a", "x")]))
    assert caught.value.code == "workspace_too_large"


def _fields(body: Snapshotted) -> dict[str, object]:
    return {name: getattr(body, name) for name in body.__struct_fields__}
