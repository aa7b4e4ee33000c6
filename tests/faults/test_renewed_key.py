"""A key that came from another host is never used here, wherever its renewal ends."""

from faults.power_cuts import AGAIN, STATE, key, made
from sojourn.errors import DecisionError
from sojourn.keys.machine import FileMachineKey
from sojourn.store.durable import Durable
from sojourn.testing.disk import RecordingDisk
from sojourn.testing.power import end_everywhere


def renew_key(disk: RecordingDisk, done: list[str]) -> None:
    done.append(FileMachineKey(STATE, files=Durable(disk), host="another").renew())


def with_a_foreign_key(kind: type[RecordingDisk] = RecordingDisk) -> RecordingDisk:
    """A state folder that came from the host `h`."""
    disk = made()
    OLD_KEYS.append(key(disk))
    return disk.turned_into(kind)


OLD_KEYS: list[str] = []


def the_old_key_is_never_used_again(disk: RecordingDisk, done: list[str]) -> None:
    """Either it is refused still, and renewing goes on, or there is a new one that stays."""
    here = FileMachineKey(STATE, files=Durable(disk), host="another")
    try:
        found = here.machine()
    except DecisionError as refused:
        assert refused.code == "machine_key_copied"
        assert not done
        found = here.renew()
    assert found not in OLD_KEYS
    assert done in ([], [found])
    for later in disk.after_power_cut(limit=AGAIN):
        assert FileMachineKey(STATE, files=Durable(later), host="another").machine() == found


def test_a_foreign_key_is_never_used_wherever_its_renewal_ends() -> None:
    tried = end_everywhere(with_a_foreign_key(), renew_key, the_old_key_is_never_used_again)
    assert tried.ends > 40
