"""What people write for another machine is read into one way, or refused."""

import pytest

from sojourn.errors import UsageError
from sojourn.peers.places import PORT, Near, Ssh, Tls, read_way


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("me@box", Ssh(host="box", user="me")),
        ("me@box.example", Ssh(host="box.example", user="me")),
        ("ssh://box", Ssh(host="box")),
        ("ssh://me@box:2222", Ssh(host="box", user="me", port=2222)),
        ("ssh://me@box/", Ssh(host="box", user="me")),
        ("https://box", Tls(host="box", port=PORT)),
        ("https://box:99/", Tls(host="box", port=99)),
        ("https://[::1]:99", Tls(host="::1", port=99)),
        ("unix:///a/daemon.sock", Near("/a/daemon.sock")),
    ],
)
def test_an_address_is_read(text: str, way: object) -> None:
    assert read_way(text) == way


@pytest.mark.parametrize("way", ["ssh://me@box:2222", "https://[::1]:99", "unix:///a/b"])
def test_an_address_is_written_as_it_is_read(way: str) -> None:
    assert str(read_way(way)) == way


def test_a_plain_word_may_be_a_name() -> None:
    assert read_way("box") is None


@pytest.mark.parametrize(
    "text",
    [
        "-oProxyCommand=x@box",
        "me@-oProxyCommand=x",
        "ssh://-oProxyCommand=x/",
        "ssh://me@box/path",
        "ssh://me:secret@box",
        "https://me@box",
        "https://box/path",
        "https://box?x=1",
        "https://box:port",
        "http://box",
        "unix://host/path",
        "ftp://box",
        "me@",
        "ssh://",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_way(text)
    assert caught.value.code == "address_refused"
