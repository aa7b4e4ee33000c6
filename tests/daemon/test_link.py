"""What two machines say to each other arrives, by the unix socket and by TLS, and is the right
one's."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daemon.daemons import (
    CAPSULE,
    MOVE,
    Fake,
    Running,
    acquaint,
    check,
    machine,
    piece,
    running,
)
from sojourn.agent import Machine
from sojourn.agent.links import book_of, certificate_of, identity_of, link_to, open_peer
from sojourn.core.migration_messages import (
    Abort,
    Noted,
    Refused,
    Resolve,
    Wanted,
)
from sojourn.core.migration_records import Ticket
from sojourn.errors import MigrationError, PeerError, StorageError
from sojourn.format.parts import Digest
from sojourn.ids import Epoch, EventId
from sojourn.peers.limits import CHUNK
from sojourn.peers.places import read_way
from sojourn.ports_move import Piece

LOOPBACK = "127.0.0.1:0"


async def stream(*parts: Piece) -> AsyncIterator[Piece]:
    for part in parts:
        yield part


def paired(here: Running, other: Machine, **limits: object) -> None:
    """Both know each other, and `other` where this daemon is."""
    acquaint(here.machine, other, name="other", **limits)
    acquaint(other, here.machine, name="there", address=here.far)


def ticket(here: Machine, other: Machine) -> Ticket:
    return Ticket(
        move=MOVE,
        epoch=Epoch(2),
        source=identity_of(other).machine,
        target=identity_of(here).machine,
        life="1",
        boot="2",
        root=Digest("1" * 64),
        last=EventId("2" * 64),
        nonce="3",
    )


def test_a_message_and_its_answer_go_by_the_unix_socket(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a") as here, open_peer(other, here.near) as peer:
            assert peer.machine == identity_of(here.machine).machine
            assert peer.address == here.near
            answer = await peer.ask(check())
            assert isinstance(answer, Wanted)
            assert len(answer.contents) == 2
            assert here.fake.said == [(check(), identity_of(other).machine, "")]

    asyncio.run(both())


def test_a_message_and_its_answer_go_by_tls(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            paired(here, other)
            async with open_peer(other, "there") as peer:
                resolve = Resolve(
                    capsule=CAPSULE,
                    move=MOVE,
                    epoch=Epoch(2),
                    ticket=ticket(here.machine, other),
                )
                assert await peer.ask(resolve) == Noted()
            assert here.fake.said[0][:2] == (resolve, identity_of(other).machine)

    asyncio.run(both())


@pytest.mark.parametrize("far", [False, True], ids=["unix", "tls"])
def test_contents_arrive_whole_whatever_their_size(tmp_path: Path, far: bool) -> None:
    small = [piece(os.urandom(17 + number)) for number in range(300)]
    long = os.urandom(3 * CHUNK + 1)
    name = piece(long).digest
    parts = [
        Piece(digest=name, size=len(long), offset=at, data=long[at : at + CHUNK])
        for at in range(0, len(long), CHUNK)
    ]
    text = piece(b"again and " * 50_000)

    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK if far else "") as here:
            acquaint(here.machine, other, name="other")
            if far:
                acquaint(other, here.machine, name="there", address=here.far)
            async with open_peer(other, "there" if far else here.near) as peer:
                await peer.send(CAPSULE, MOVE, stream(*small, *parts, text))
            assert here.fake.contents[name] == long
            assert here.fake.contents[text.digest] == text.data
            assert len(here.fake.contents) == 302

    asyncio.run(both())


def test_several_streams_go_at_once(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a") as here, open_peer(other, here.near) as peer:
            sends = (peer.send(CAPSULE, MOVE, stream(piece(os.urandom(CHUNK)))) for _ in range(4))
            await asyncio.gather(*sends)
            assert len(here.fake.contents) == 4

    asyncio.run(both())


def test_contents_that_nobody_asked_for_are_refused_by_name(tmp_path: Path) -> None:
    async def both() -> None:
        other, fake = machine(tmp_path / "b"), Fake(unwanted=True)
        async with running(tmp_path / "a", fake=fake) as here, open_peer(other, here.near) as peer:
            with pytest.raises(PeerError) as caught:
                await peer.send(CAPSULE, MOVE, stream(*(piece(os.urandom(CHUNK)) for _ in "abc")))
            assert caught.value.code == "not_wanted"
            assert isinstance(await peer.ask(check()), Wanted)

    asyncio.run(both())


def test_a_refusal_by_name_is_an_answer(tmp_path: Path) -> None:
    async def both() -> None:
        refused = Refused(code="busy", message="no", floor=Epoch(7))
        other, fake = machine(tmp_path / "b"), Fake(answer_with=refused)
        async with running(tmp_path / "a", fake=fake) as here, open_peer(other, here.near) as peer:
            assert await peer.ask(Abort(capsule=CAPSULE, move=MOVE, epoch=Epoch(2))) == refused

    asyncio.run(both())


def test_an_error_that_has_a_name_keeps_it(tmp_path: Path) -> None:
    trouble = MigrationError("no room", code="no_room", hint="Make some.")

    async def both() -> None:
        other, fake = machine(tmp_path / "b"), Fake(trouble=trouble)
        async with running(tmp_path / "a", fake=fake) as here, open_peer(other, here.near) as peer:
            with pytest.raises(PeerError) as caught:
                await peer.ask(check())
            assert (caught.value.code, caught.value.hint) == ("no_room", "Make some.")
            assert caught.value.may_have_arrived

    asyncio.run(both())


def test_after_a_failed_durable_write_nothing_is_believed_and_the_daemon_ends(
    tmp_path: Path,
) -> None:
    trouble = StorageError("the disk is full", code="disk_full")

    async def both() -> None:
        other, fake = machine(tmp_path / "b"), Fake(trouble=trouble)
        async with running(tmp_path / "a", fake=fake) as here, open_peer(other, here.near) as peer:
            with pytest.raises(PeerError) as caught:
                await peer.ask(check())
            assert caught.value.code in ("peer_answer", "peer_unreachable")
            assert caught.value.may_have_arrived

    with pytest.raises(StorageError):
        asyncio.run(both())


def test_a_restart_of_the_other_side_is_no_failure_of_a_question(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a") as here:
            link = link_to(other, read_way(here.near), None)
            first = await link.hello()
        async with running(tmp_path / "a") as again:
            from sojourn.peers.peer import LinkPeer

            peer = LinkPeer(link, first)
            assert isinstance(await peer.ask(check()), Wanted)
            assert (await link.hello()).boot == again.begun.boot != first.boot
            await peer.aclose()

    asyncio.run(both())


def test_another_machine_at_the_same_address_is_never_believed(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        expected = identity_of(machine(tmp_path / "elsewhere")).machine
        async with running(tmp_path / "a") as here:
            with pytest.raises(PeerError) as caught:
                async with open_peer(other, here.near, expected=expected):
                    raise AssertionError
            assert caught.value.code == "wrong_machine"
            assert here.fake.said == []

    asyncio.run(both())


def test_another_certificate_at_the_same_address_gets_not_a_byte(tmp_path: Path) -> None:
    async def both() -> None:
        other, elsewhere = machine(tmp_path / "b"), machine(tmp_path / "elsewhere")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            acquaint(other, elsewhere, name="there", address=here.far)
            with pytest.raises(PeerError) as caught:
                async with open_peer(other, "there"):
                    raise AssertionError
            assert caught.value.code == "wrong_machine"
            assert not caught.value.may_have_arrived

    asyncio.run(both())


def test_tls_to_a_machine_that_was_never_paired_is_not_even_tried(tmp_path: Path) -> None:
    async def alone() -> None:
        with pytest.raises(PeerError) as caught:
            async with open_peer(machine(tmp_path / "b"), "https://127.0.0.1:9"):
                raise AssertionError
        assert caught.value.code == "not_paired"

    asyncio.run(alone())


def test_nobody_at_the_address_is_said_so_and_nothing_arrived(tmp_path: Path) -> None:
    async def alone() -> None:
        with pytest.raises(PeerError) as caught:
            async with open_peer(machine(tmp_path / "b"), f"unix://{tmp_path}/none.sock"):
                raise AssertionError
        assert caught.value.code == "peer_unreachable"
        assert not caught.value.may_have_arrived

    asyncio.run(alone())


def test_a_machine_that_is_forgotten_is_refused_by_a_daemon_that_runs(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            paired(here, other)
            async with open_peer(other, "there") as peer:
                await peer.ask(check())
                book_of(here.machine).drop("other")
                with pytest.raises(PeerError) as caught:
                    await peer.ask(check())
            assert caught.value.code == "not_paired"
            assert not caught.value.may_have_arrived
            assert len(here.fake.said) == 1

    asyncio.run(both())


def test_a_machine_that_is_paired_while_the_daemon_runs_is_let_in(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            acquaint(other, here.machine, name="there", address=here.far)
            with pytest.raises(PeerError):
                async with open_peer(other, "there"):
                    raise AssertionError
            acquaint(here.machine, other, name="other")
            async with open_peer(other, "there") as peer:
                assert isinstance(await peer.ask(check()), Wanted)

    asyncio.run(both())


def test_a_paired_machine_may_do_what_it_was_allowed_and_nothing_else(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            paired(here, other, rights=("look",))
            async with open_peer(other, "there") as peer:
                assert (await peer.capsules()).capsules == ()
                with pytest.raises(PeerError, match="move capsules to it") as caught:
                    await peer.ask(check())
                assert caught.value.code == "not_allowed"
                assert not caught.value.may_have_arrived
                with pytest.raises(PeerError, match="send messages"):
                    await peer.say(CAPSULE, "hello", request="1")
                # Whoever is in doubt must be answered, whatever it may begin anew.
                resolve = Resolve(
                    capsule=CAPSULE,
                    move=MOVE,
                    epoch=Epoch(2),
                    ticket=ticket(here.machine, other),
                )
                assert await peer.ask(resolve) == Noted()

    asyncio.run(both())


def test_a_paired_machine_may_be_limited_to_some_capsules(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            paired(here, other, capsules=("box",))
            async with open_peer(other, "there") as peer:
                assert isinstance(await peer.ask(check(name="box")), Wanted)
                with pytest.raises(PeerError) as caught:
                    await peer.ask(check(name="other"))
                assert caught.value.code == "not_allowed"

    asyncio.run(both())


def test_a_certificate_alone_is_nobody(tmp_path: Path) -> None:
    """With the certificate of a paired machine, and another machine's key."""

    async def both() -> None:
        other, thief = machine(tmp_path / "b"), machine(tmp_path / "thief")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            paired(here, other)
            known = book_of(other).named("there")
            acquaint(thief, here.machine, name="there", address=here.far)
            stolen = Path(certificate_of(other).path)
            Path(certificate_of(thief).path).write_bytes(stolen.read_bytes())
            link = link_to(thief, read_way(here.far), known)
            link._connector._own = certificate_of(other)
            from sojourn.peers.peer import LinkPeer

            peer = await LinkPeer.open(link)
            with pytest.raises(PeerError) as caught:
                await peer.ask(check())
            assert caught.value.code == "not_paired"
            await peer.aclose()

    asyncio.run(both())
