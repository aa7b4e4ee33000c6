"""Where the state folder is."""

import pytest

from sojourn.ids import CapsuleId
from sojourn.store.state import StateFolder, state_root

HOME = "/users/ann"


@pytest.mark.parametrize(
    ("env", "root"),
    [
        ({}, "/users/ann/.local/state/sojourn"),
        ({"SOJOURN_HOME": "/s", "XDG_STATE_HOME": "/x"}, "/s"),
        ({"SOJOURN_HOME": "s/../t/"}, "/here/t"),
        ({"SOJOURN_HOME": "", "XDG_STATE_HOME": "/x/"}, "/x/sojourn"),
        ({"XDG_STATE_HOME": "relative"}, "/users/ann/.local/state/sojourn"),
        ({"XDG_STATE_HOME": ""}, "/users/ann/.local/state/sojourn"),
    ],
)
def test_the_environment_chooses(env: dict[str, str], root: str) -> None:
    assert state_root(env, HOME, "/here") == root


def test_every_part_is_below_the_root_and_has_its_own_place() -> None:
    state = StateFolder("/s")
    parts = [
        state.ledger,
        state.inbox,
        state.locks,
        state.capsules,
        state.workspaces,
        state.runs,
        state.queue,
    ]
    assert len(set(parts)) == len(parts)
    assert all(part.startswith("/s/") for part in parts)
    assert state.workspace(CapsuleId("c")) == f"{state.workspaces}/c"
