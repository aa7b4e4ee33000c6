"""docs/replay.md: what may be done with a call that may have happened."""

import pytest

from sojourn.core.replay import (
    FORGOTTEN,
    INTERRUPTED,
    STRICTNESS,
    TOO_OFTEN,
    AfterCrash,
    after_crash,
    stricter,
)
from sojourn.format.event import ReplayRule

ORDER: tuple[ReplayRule, ...] = ("safe", "keyed", "probe", "report", "ask")
DONE: dict[ReplayRule, AfterCrash] = {
    "safe": "again",
    "keyed": "again",
    "probe": "tell",
    "report": "tell",
    "ask": "ask",
}


def test_the_rules_are_known_from_the_loosest_to_the_strictest() -> None:
    assert tuple(sorted(STRICTNESS, key=lambda rule: STRICTNESS[rule])) == ORDER


@pytest.mark.parametrize("recorded", ORDER)
@pytest.mark.parametrize("today", ORDER)
def test_the_stricter_of_recorded_and_today_decides(
    recorded: ReplayRule, today: ReplayRule
) -> None:
    strict = ORDER[max(ORDER.index(recorded), ORDER.index(today))]
    assert stricter(recorded, today) == stricter(today, recorded) == strict
    assert after_crash(recorded=recorded, today=today) == DONE[strict]


@pytest.mark.parametrize("rule", ORDER)
def test_a_tool_that_is_gone_counts_as_report(rule: ReplayRule) -> None:
    assert after_crash(recorded=rule, today=None) == DONE[stricter(rule, "report")]


@pytest.mark.parametrize("rule", ORDER)
def test_an_intent_without_a_rule_counts_as_report(rule: ReplayRule) -> None:
    assert after_crash(recorded=None, today=rule) == DONE[stricter(rule, "report")]


@pytest.mark.parametrize("text", [INTERRUPTED, FORGOTTEN, TOO_OFTEN])
def test_no_word_to_the_model_claims_that_the_call_did_not_happen(text: str) -> None:
    assert "before it wrote down how it ended" in text
    for claim in ("not happen", "not complete", "not finish", "not run.", "aborted", "cancelled"):
        assert claim not in text
