"""Every reachable world of every setting keeps the rules of docs/protocol.md."""

import pytest

from model.count_worlds import BEGIN, END, bounds, row, written
from model.mutants import MUTANTS
from model.search import Search
from model.settings import FAST, SLOW
from model.world import Setting, Setup


def search(setting: Setting) -> None:
    visited = Search(Setup(setting)).run()
    assert visited.found is None, str(visited.found)
    assert not set(setting.shows) - visited.labels, "something never happened, so it was not tried"
    assert row(setting, visited) in written().splitlines(), (
        "the numbers in docs/protocol.md are old: run tests/model/count_worlds.py"
    )


@pytest.mark.parametrize("setting", FAST, ids=lambda setting: setting.name)
def test_no_reachable_world_breaks_a_rule_or_is_stuck(setting: Setting) -> None:
    search(setting)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SLOW, ids=lambda setting: setting.name)
def test_no_reachable_world_of_more_troubles_breaks_a_rule_or_is_stuck(setting: Setting) -> None:
    search(setting)


def test_the_document_tells_of_every_setting_and_of_nothing_else() -> None:
    lines = written().removeprefix(BEGIN).removesuffix(END).strip().splitlines()
    told = [line.rsplit(" | ", 3)[0] for line in lines if line.startswith("| ")][2:]
    assert told == [f"| {setting.name} | {bounds(setting)}" for setting in (*FAST, *SLOW)]
    assert lines[-1].endswith(f" {len(MUTANTS)}.")
