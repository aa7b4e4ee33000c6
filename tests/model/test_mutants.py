"""Each guard is needed: a search with it taken out finds the rule that it keeps."""

import pytest

from model.cores import REAL, copy, edited
from model.mutants import MUTANTS, SPARE, Mutant
from model.search import Search
from model.settings import DEATHS
from model.world import Setup

ENOUGH = 60_000
"""Worlds within which every lost guard shows."""


def setup(mutant: Mutant) -> Setup:
    core = copy(mutant.edits) if mutant.edits else REAL
    return Setup(mutant.setting, core, mutant.planted)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_guard_that_is_taken_out_is_missed(mutant: Mutant) -> None:
    found = Search(setup(mutant), only={mutant.rule}, limit=ENOUGH).run().found
    assert found is not None, f"nobody misses: {mutant.name}"
    assert found.rule == mutant.rule


@pytest.mark.parametrize(("mutant", "why"), SPARE, ids=[mutant.name for mutant, _ in SPARE])
def test_a_guard_that_is_said_to_be_spare_is(mutant: Mutant, why: str) -> None:
    """One that turns out to be needed belongs to the mutants."""
    found = Search(setup(mutant), limit=ENOUGH).run().found
    assert found is None, f"{found}\nwhich contradicts: {why}"


def test_a_mutant_is_of_its_own_and_of_the_source_as_it_is() -> None:
    names = [mutant.name for mutant in (*MUTANTS, *(mutant for mutant, _ in SPARE))]
    assert len(set(names)) == len(names)
    with pytest.raises(LookupError, match="0 times"):
        edited("turn", (("what is not there", ""),))


def test_an_unedited_copy_does_what_the_machine_does() -> None:
    real, copied = Search(Setup(DEATHS)).run(), Search(Setup(DEATHS, copy({}))).run()
    assert (copied.worlds, copied.moves, copied.found) == (real.worlds, real.moves, None)


def test_the_shortest_way_to_a_broken_rule_is_told() -> None:
    mutant = next(one for one in MUTANTS if one.name == "effect_before_commit")
    found = Search(setup(mutant)).run().found
    assert str(found).splitlines() == [
        "effects_follow_their_durable_intent is broken after",
        "    1 send",
        "    2 wake",
        "    3 work as w0a",
        "    4 Next",
        "    5 start model",
    ]
