"""Three real machines in miniature: sshd, TLS, daemons that die, and a counter outside."""

import os
from pathlib import Path
from random import Random

import pytest

from machines import campaign
from machines.host import why_not

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=f"no machines in miniature: {why_not()}"),
]

MOVES = 10


def test_an_agent_that_is_moved_about_runs_on_one_machine_at_a_time(tmp_path: Path) -> None:
    seed = int(os.environ.get("SOJOURN_SEED") or Random().randrange(1 << 32))
    done = campaign.run(tmp_path / "machines", moves=MOVES, seed=seed)
    assert done.tally["moves"] == MOVES
    assert done.tally["epochs that called"] > 1


def test_machines_that_go_on_without_an_answer_are_found(tmp_path: Path) -> None:
    with pytest.raises(campaign.Broken, match=r"two holders|SUSPECT"):
        campaign.run(tmp_path / "machines", moves=30, seed=1, **campaign.FAULTY)
