"""The strict server as a process of its own, for tests that kill the client."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sojourn.errors import UsageError
from sojourn.testing.strict import Cut, End, Fail, Garbage, Reply, StreamError, ToolCall, Trickle
from sojourn.testing.strict.script import read_faults, read_replies

ASK = {"role": "user", "content": "hi"}
BODY: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [ASK]}
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and its URL."""
    command = [sys.executable, "-m", "sojourn.testing.strict", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            yield running, running.stdout.readline().strip()
        finally:
            running.kill()


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_it_prints_its_url_answers_logs_and_ends_on_a_signal(tmp_path: Path) -> None:
    replies = written(tmp_path / "replies.json", [{"text": "hello"}])
    faults = written(tmp_path / "faults.json", {"2": {"fault": "fail", "kind": "overloaded"}})
    log = tmp_path / "log.jsonl"
    files = ["--replies", str(replies), "--faults", str(faults), "--log", str(log), "--payloads"]
    with process("--api", "anthropic", "--port", "0", *files) as (running, url):
        first = httpx2.post(url + "/v1/messages", json=BODY, headers=HEADERS)
        second = httpx2.post(url + "/v1/messages", json=BODY, headers=HEADERS)
        other = httpx2.post(url + "/v1/chat/completions", json=BODY, headers=HEADERS)
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
    assert first.json()["content"][0]["text"] == "hello"
    assert (second.status_code, other.status_code) == (529, 404)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["verdict"] for line in lines] == ["accepted", "failed", "refused"]
    assert lines[0]["payload"] == BODY


def test_the_log_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    replies = written(tmp_path / "replies.json", [{"text": "hello"}])
    log = tmp_path / "log.jsonl"
    for _ in range(2):
        with process("--replies", str(replies), "--log", str(log)) as (running, url):
            httpx2.post(url + "/v1/messages", json=BODY, headers=HEADERS)
            running.kill()
            running.wait(30)
    assert len(log.read_text().splitlines()) == 2


def test_it_ends_with_its_standard_input_when_told_so(tmp_path: Path) -> None:
    replies = written(tmp_path / "replies.json", [])
    with process("--replies", str(replies), "--until-eof") as (running, url):
        assert url.startswith("http://127.0.0.1:")
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(30) == 0


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    replies = written(tmp_path / "replies.json", [{"txt": "hello"}])
    command = [sys.executable, "-m", "sojourn.testing.strict", "--replies", str(replies)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"{replies}: unknown_key at 0.txt\n"


def test_replies_are_read_from_json(tmp_path: Path) -> None:
    calls = [{"name": "read", "arguments": {"path": "a"}}, {"name": "read", "arguments": "{"}]
    value = [{"text": "a", "calls": calls, "thinking": "b", "stop": "length", "input_tokens": 3}]
    assert read_replies(written(tmp_path / "replies.json", value)) == [
        Reply(
            text="a",
            calls=(
                ToolCall(name="read", arguments={"path": "a"}),
                ToolCall(name="read", arguments="{"),
            ),
            thinking="b",
            stop="length",
            input_tokens=3,
        )
    ]


def test_faults_are_read_from_json(tmp_path: Path) -> None:
    value = {
        "1": {"fault": "fail", "kind": "rate_limited", "retry_after": "2"},
        "2": {"fault": "cut", "after_bytes": 100},
        "3": {"fault": "cut", "after_bytes": None},
        "4": {"fault": "end", "after_events": 3},
        "5": {"fault": "garbage", "after_events": 2},
        "6": {"fault": "stream_error", "after_events": 1, "kind": "server_error"},
        "7": {"fault": "trickle", "size": 1},
    }
    assert read_faults(written(tmp_path / "faults.json", value)) == {
        1: Fail(kind="rate_limited", retry_after="2"),
        2: Cut(after_bytes=100),
        3: Cut(after_bytes=None),
        4: End(after_events=3),
        5: Garbage(after_events=2),
        6: StreamError(after_events=1, kind="server_error"),
        7: Trickle(size=1),
    }


@pytest.mark.parametrize(
    "value",
    [[], {"one": {"fault": "end", "after_events": 1}}, {"1": {"fault": "hold"}}, {"1": {}}],
    ids=["a list", "no number", "no such fault", "no fault"],
)
def test_a_broken_file_of_faults_is_refused(value: object, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_faults(written(tmp_path / "faults.json", value))


def test_a_file_of_replies_that_is_no_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="an array"):
        read_replies(written(tmp_path / "replies.json", {"text": "hello"}))
