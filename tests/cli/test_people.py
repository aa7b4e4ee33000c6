"""Numbers and times as people say them."""

from datetime import UTC, datetime, timedelta

import pytest

from sojourn.cli.people import ago, cells, counted, size, took

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "now"),
        (1, "1 s ago"),
        (59.9, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (3600, "1 h ago"),
        (86_399, "23 h ago"),
        (86_400, "1 d ago"),
        (30 * 86_400, "30 d ago"),
        (31 * 86_400, "2026-10-30"),
        (-30, "now"),
        (-90_000, "2026-12-01"),
    ],
)
def test_a_time_is_told_relative_to_now(seconds: float, words: str) -> None:
    then = NOW - timedelta(seconds=seconds)
    assert ago(then.isoformat().replace("+00:00", "Z"), NOW) == words


def test_a_time_that_is_none_is_shown_as_it_is() -> None:
    assert ago(None) == "never"
    assert ago("\x1b[2Jsoon") == "\\x1b[2Jsoon"


def test_durations_sizes_and_counts() -> None:
    assert [took(ms) for ms in (0.4, 999, 1000, 59_940, 125_000)] == [
        "0 ms",
        "999 ms",
        "1.0 s",
        "59.9 s",
        "2 min 5 s",
    ]
    assert [size(n) for n in (0, 999, 1000, 3_140_000)] == ["0 B", "999 B", "1.0 kB", "3.1 MB"]
    assert [counted(n, "event") for n in (0, 1, 1200)] == ["0 events", "1 event", "1,200 events"]
    assert counted(2, "reply", "replies") == "2 replies"


def test_wide_and_combining_letters_are_measured() -> None:
    assert [cells("abc"), cells("日本"), cells("e\u0301")] == [3, 4, 1]
