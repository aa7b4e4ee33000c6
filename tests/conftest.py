"""What holds for every test: no network beyond loopback, and no state or keys from outside."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("sojourn", deadline=None, print_blob=True)
settings.load_profile("sojourn")

LOOPBACK = ("127.", "::1", "localhost")
OWN_STATE = ("SOJOURN_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
KEYS = ("_API_KEY", "_BASE_URL")


def refuse_far_network(event: str, args: tuple[object, ...]) -> None:
    """An audit hook cannot be undone by the code under test, and sees every library."""
    if event == "socket.connect":
        address = args[1]
        far = isinstance(address, tuple) and not str(address[0]).startswith(LOOPBACK)
        if far:
            raise RuntimeError(f"a test tried to reach {address!r}: only loopback is allowed")
    elif event == "socket.getaddrinfo":
        host = args[0]
        name = host.decode() if isinstance(host, bytes) else host
        if isinstance(name, str) and name and not name.startswith((*LOOPBACK, "0.0.0.0", "::")):
            raise RuntimeError(f"a test tried to look up {name!r}: only loopback is allowed")


sys.addaudithook(refuse_far_network)


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a state folder of its own, and sees no key of the person who runs it."""
    for name in list(os.environ):
        if name in OWN_STATE or name.endswith(KEYS):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("SOJOURN_HOME", str(home))
    return home
