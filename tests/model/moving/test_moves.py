"""Every reachable world of moves keeps the rules of docs/moving.md#model."""

import pytest

from model.moving.count_moves import BEGIN, END, bounds, row, traces, written, written_traces
from model.moving.mutants import MUTANTS
from model.moving.search import Search
from model.moving.settings import FAST, SLOW
from model.moving.world import Setting, Setup


def search(setting: Setting) -> None:
    visited = Search(Setup(setting)).run()
    assert visited.found is None, str(visited.found)
    assert not set(setting.shows) - visited.labels, "something never happened, so it was not tried"
    assert row(setting, visited) in written().splitlines(), (
        "the numbers in docs/moving.md are old: run tests/model/moving/count_moves.py"
    )


@pytest.mark.parametrize("setting", FAST, ids=lambda setting: setting.name)
def test_no_reachable_world_breaks_a_rule_or_is_stuck(setting: Setting) -> None:
    search(setting)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SLOW, ids=lambda setting: setting.name)
def test_no_reachable_world_of_more_troubles_breaks_a_rule_or_is_stuck(setting: Setting) -> None:
    search(setting)


def test_what_is_not_promised_is_shown_by_the_shortest_way_to_it() -> None:
    assert traces() == written_traces()


def test_the_document_tells_of_every_setting_and_of_nothing_else() -> None:
    lines = written().removeprefix(BEGIN).removesuffix(END).strip().splitlines()
    told = [line.rsplit(" | ", 2)[0] for line in lines if line.startswith("| ")][2:]
    names = [f"{one.name}{'*' if one.lean else ''}" for one in (*FAST, *SLOW)]
    settings = zip(names, (*FAST, *SLOW), strict=True)
    assert told == [f"| {name} | {bounds(setting)}" for name, setting in settings]
    assert lines[-1].endswith(f" {len(MUTANTS)}.")
