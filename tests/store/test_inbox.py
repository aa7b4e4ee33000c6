"""What lies in an inbox and is no message is set aside, named, and blocks nobody."""

import json
import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from sojourn.errors import LimitError
from sojourn.ids import CapsuleId, RequestId
from sojourn.ports import Message
from sojourn.store.inbox import MESSAGE_LIMIT, SECOND, FolderInbox

CAPSULE = CapsuleId("c" * 64)


def message(request: str, text: str = "hello") -> Message:
    return Message(request=RequestId(request), author="user", text=text)


def digest(request: str) -> str:
    return sha256(request.encode()).hexdigest()[:32]


def waiting(inbox: FolderInbox) -> list[str]:
    return [item.message.request for item in inbox.items(CAPSULE)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inbox = FolderInbox(str(tmp_path))
    for name in ("a", "b"):
        inbox.put(CAPSULE, message(name))
    return tmp_path / CAPSULE


def a_file(name: str, data: bytes) -> Callable[[Path], str]:
    def plant(folder: Path) -> str:
        (folder / name).write_bytes(data)
        return name

    return plant


def a_link(folder: Path) -> str:
    (folder / f"00000001-{digest('link')}.json").symlink_to("/etc/passwd")
    return f"00000001-{digest('link')}.json"


def a_folder(folder: Path) -> str:
    (folder / f"00000001-{digest('folder')}.json").mkdir()
    return f"00000001-{digest('folder')}.json"


def a_pipe(folder: Path) -> str:
    os.mkfifo(folder / f"00000001-{digest('pipe')}.json")
    return f"00000001-{digest('pipe')}.json"


def content(**fields: object) -> bytes:
    return json.dumps(
        {"v": 1, "request": "x", "author": "u", "text": "t", "kind": "message", **fields}
    ).encode()


NAME = f"00000001-{digest('x')}.json"
FOREIGN: dict[str, Callable[[Path], str]] = {
    "empty": a_file(NAME, b""),
    "half": a_file(NAME, content()[:-9]),
    "zeros": a_file(NAME, bytes(99)),
    "not UTF-8": a_file(NAME, b'{"v":1,"request":"\xff"}'),
    "twice a key": a_file(NAME, content()[:-1] + b',"v":1}'),
    "a field of another type": a_file(NAME, content(text=5)),
    "a field missing": a_file(NAME, b'{"v":1,"request":"x"}'),
    "a newer version": a_file(NAME, content(v=2)),
    "another request": a_file(NAME, content(request="y")),
    "too long": a_file(NAME, content(text="t" * MESSAGE_LIMIT)),
    "another name": a_file("notes.txt", b"mine"),
    "a short number": a_file(f"1-{digest('x')}.json", content()),
    "link": a_link,
    "folder": a_folder,
    "pipe": a_pipe,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_message_is_set_aside_and_blocks_nobody(name: str, folder: Path) -> None:
    planted = FOREIGN[name](folder)
    inbox = FolderInbox(str(folder.parent))
    assert waiting(inbox) == ["a", "b"]
    inbox.put(CAPSULE, message("x"))
    assert waiting(inbox) == ["a", "b", "x"]
    aside = str(folder / "refused" / planted)
    assert inbox.refused(CAPSULE) == (str(folder / planted),)
    assert inbox.set_aside(CAPSULE) == (aside,)
    assert os.path.lexists(aside)
    assert not os.path.lexists(folder / planted)
    assert inbox.set_aside(CAPSULE) == ()
    assert inbox.refused(CAPSULE) == (aside,)
    assert waiting(inbox) == ["a", "b", "x"]


def test_equal_names_set_aside_are_all_kept(folder: Path) -> None:
    inbox = FolderInbox(str(folder.parent))
    for data in (b"one", b"two"):
        (folder / "notes.txt").write_bytes(data)
        inbox.set_aside(CAPSULE)
    kept = sorted(Path(path).read_bytes() for path in inbox.refused(CAPSULE))
    assert kept == [b"one", b"two"]


def test_what_a_killed_sender_left_half_made_is_swept(folder: Path) -> None:
    half = folder / ".sojourn-00000003-x.json.1.0.tmp"
    half.write_bytes(b"{")
    assert FolderInbox(str(folder.parent)).refused(CAPSULE) == ()
    assert half.exists()
    assert FolderInbox(str(folder.parent)).set_aside(CAPSULE) == ()
    assert not half.exists()


def test_order_holds_beyond_eight_digits(folder: Path) -> None:
    """Names are compared as numbers."""
    (folder / f"00000002-{digest('b')}.json").rename(folder / f"99999999-{digest('b')}.json")
    inbox = FolderInbox(str(folder.parent))
    item = inbox.put(CAPSULE, message("c"))
    assert item.name == f"100000000-{digest('c')}.json"
    assert waiting(inbox) == ["a", "b", "c"]


def test_a_lone_surrogate_is_replaced_and_still_the_same_message(tmp_path: Path) -> None:
    inbox = FolderInbox(str(tmp_path))
    odd = message("r\ud800", "cut \ud83d")
    item = inbox.put(CAPSULE, odd)
    assert item.message == message("r\ufffd", "cut \ufffd")
    assert inbox.put(CAPSULE, odd) == item
    assert inbox.items(CAPSULE) == (item,)


def test_a_message_above_the_limit_is_refused_whole(tmp_path: Path) -> None:
    inbox = FolderInbox(str(tmp_path))
    with pytest.raises(LimitError) as refused:
        inbox.put(CAPSULE, message("r", "x" * MESSAGE_LIMIT))
    assert refused.value.code == "message_too_long"
    assert inbox.items(CAPSULE) == ()
    inbox.put(CAPSULE, message("r", "x" * (MESSAGE_LIMIT - 200)))


def test_looking_makes_nothing(tmp_path: Path) -> None:
    inbox = FolderInbox(str(tmp_path / "inbox"))
    assert inbox.items(CAPSULE) == ()
    assert inbox.refused(CAPSULE) == ()
    assert inbox.set_aside(CAPSULE) == ()
    assert not (tmp_path / "inbox").exists()


def emptied(folder: Path, changed: int) -> FolderInbox:
    """An inbox that saw the folder empty when it was last changed at this time."""
    for file in folder.glob("*.json"):
        file.unlink()
    os.utime(folder, ns=(changed, changed))
    inbox = FolderInbox(str(folder.parent))
    assert waiting(inbox) == []
    return inbox


def slip_in(folder: Path, changed: int) -> None:
    """Add a message so that the folder shows the same time as before."""
    FolderInbox(str(folder.parent)).put(CAPSULE, message("c"))
    os.utime(folder, ns=(changed, changed))


def test_a_message_after_an_empty_look_is_seen_at_the_next(folder: Path) -> None:
    inbox = emptied(folder, time.time_ns() - 10 * SECOND)
    assert waiting(inbox) == []
    FolderInbox(str(folder.parent)).put(CAPSULE, message("c"))
    assert waiting(inbox) == ["c"]
    inbox.remove(CAPSULE, inbox.items(CAPSULE)[0])
    assert waiting(inbox) == []


def test_a_folder_that_did_not_change_since_it_was_empty_is_not_listed(folder: Path) -> None:
    changed = time.time_ns() - 10 * SECOND | 1
    inbox = emptied(folder, changed)
    slip_in(folder, changed)
    assert waiting(inbox) == []


def test_a_second_change_within_one_step_of_the_clock_is_seen(folder: Path) -> None:
    changed = time.time_ns() + 10 * SECOND | 1
    inbox = emptied(folder, changed)
    slip_in(folder, changed)
    assert waiting(inbox) == ["c"]


def test_a_file_system_that_counts_whole_seconds_is_listed_each_time(folder: Path) -> None:
    changed = (time.time_ns() // SECOND - 1) * SECOND
    inbox = emptied(folder, changed)
    slip_in(folder, changed)
    assert waiting(inbox) == ["c"]


def test_messages_that_wait_are_seen_at_every_look(folder: Path) -> None:
    os.utime(folder, ns=(1, time.time_ns() - 10 * SECOND | 1))
    inbox = FolderInbox(str(folder.parent))
    assert [waiting(inbox), waiting(inbox)] == [["a", "b"], ["a", "b"]]
