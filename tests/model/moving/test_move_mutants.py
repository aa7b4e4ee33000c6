"""Each guard of a move is needed: a search with it taken out finds the rule that it keeps."""

import pytest

from model.moving.mutants import MUTANTS, SPARE, Mutant, copy
from model.moving.search import Search
from model.moving.settings import DIRECT
from model.moving.world import Setup

ENOUGH = 60_000
"""Worlds within which every lost guard shows."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_guard_that_is_taken_out_is_missed(mutant: Mutant) -> None:
    found = Search(mutant.setup(), only={mutant.rule}, limit=ENOUGH).run().found
    assert found is not None, f"nobody misses: {mutant.name}"
    assert found.rule == mutant.rule


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "why"), SPARE, ids=[mutant.name for mutant, _ in SPARE])
def test_a_guard_that_is_said_to_be_spare_is(mutant: Mutant, why: str) -> None:
    """One that turns out to be needed belongs to the mutants."""
    found = Search(mutant.setup(), limit=ENOUGH).run().found
    assert found is None, f"{found}\nwhich contradicts: {why}"


def test_a_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in (*MUTANTS, *(mutant for mutant, _ in SPARE))]
    assert len(set(names)) == len(names)


def test_an_unedited_copy_does_what_the_machine_does() -> None:
    real, copied = Search(Setup(DIRECT)).run(), Search(Setup(DIRECT, copy({}))).run()
    assert (copied.worlds, copied.moves, copied.found) == (real.worlds, real.moves, None)
