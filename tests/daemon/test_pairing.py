"""Two people introduce their machines: the codes agree, and whoever stands between is seen."""

import asyncio
import json
import re
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from cli.running import schema
from daemon.daemons import (
    Running,
    answered,
    check,
    environment,
    machine,
    process,
    running,
    sojourn,
)
from sojourn.agent import Machine
from sojourn.agent.acquaint import Going, Waiting, Wishes, going, introduced, waiting
from sojourn.agent.links import book_of, certificate_of, identity_of, open_peer
from sojourn.core.migration_messages import Wanted
from sojourn.errors import PeerError, UsageError
from sojourn.peers.connect import Connector
from sojourn.peers.link import Link
from sojourn.peers.pairing import Side, commitment
from sojourn.peers.places import read_way
from sojourn.peers.shapes import RIGHTS, Countered, Offered, Pairing, Revealed

LOOPBACK = "127.0.0.1:0"
HERE, THERE = Wishes(own="waits", rights=RIGHTS), Wishes(own="goes", rights=("look",))


async def met(
    here: Running, other: Machine, *, agree_here: bool = True
) -> tuple[Going, Waiting, str]:
    """Both sides up to the codes; the person at `here` says `agree_here`."""
    async with waiting(here.machine, HERE) as waits, going(other, here.far, THERE) as goes:
        state = await waits.state()
        assert state.state == "shown"
        assert await goes.there() == "waiting"
        await waits.decide(state.code, agreed=agree_here)
        assert await goes.there() == ("agreed" if agree_here else "refused")
        return goes, waits, state.code


def test_both_see_the_same_code_and_know_each_other_then(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            goes, _, code = await met(here, other)
            assert goes.shown == code
            goes.agree()
            at_home, away = book_of(here.machine).named("goes"), book_of(other).named("waits")
            assert at_home.machine == identity_of(other).machine
            assert (at_home.rights, away.rights) == (RIGHTS, ("look",))
            assert away.address == here.far
            async with open_peer(other, "waits") as peer:
                assert isinstance(await peer.ask(check()), Wanted)

    asyncio.run(both())


def test_whoever_is_refused_is_not_let_in(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            await met(here, other, agree_here=False)
            assert book_of(here.machine).known() == ()
            assert book_of(other).known() == ()

    asyncio.run(both())


def test_nobody_can_be_paired_with_a_machine_that_does_not_wait(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            with pytest.raises(PeerError) as caught:
                async with going(other, here.far, THERE):
                    raise AssertionError
            assert caught.value.code == "pairing_closed"
            async with waiting(here.machine, HERE):
                pass
            with pytest.raises(PeerError):
                async with going(other, here.far, THERE):
                    raise AssertionError

    asyncio.run(both())


def test_only_one_comes_in_one_opening(tmp_path: Path) -> None:
    async def both() -> None:
        first, second = machine(tmp_path / "b"), machine(tmp_path / "c")
        async with (
            running(tmp_path / "a", listen=LOOPBACK) as here,
            waiting(here.machine, HERE) as waits,
            going(first, here.far, THERE),
        ):
            with pytest.raises(PeerError) as caught:
                async with going(second, here.far, THERE):
                    raise AssertionError
            assert caught.value.code == "pairing_closed"
            state = await waits.state()
            assert state.machine == identity_of(first).machine

    asyncio.run(both())


def test_whoever_stands_between_is_seen_by_the_codes(tmp_path: Path) -> None:
    async def both() -> None:
        victim, between = machine(tmp_path / "b"), machine(tmp_path / "m")
        async with (
            running(tmp_path / "a", listen=LOOPBACK) as here,
            running(tmp_path / "m", listen=LOOPBACK) as middle,
            waiting(here.machine, HERE) as waits,
            waiting(middle.machine, HERE),
            going(victim, middle.far, THERE) as goes,
            going(between, here.far, THERE),
        ):
            assert goes.shown != (await waits.state()).code

    asyncio.run(both())


@pytest.mark.parametrize("lie", ["nonce", "certificate"])
def test_who_tells_another_nonce_than_it_bound_itself_to_ends_the_pairing(
    tmp_path: Path, lie: str
) -> None:
    """Else it could choose the nonce that makes two codes agree."""

    async def both() -> None:
        other = machine(tmp_path / "b")
        identity, own = identity_of(other), certificate_of(other)
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            way = read_way(here.far)
            assert way is not None
            link = Link(
                way,
                Connector(way),
                identity=identity,
                expected=None,
                token=other.ports.randomness.token,
            )
            mine = Side(key=identity.public, certificate=own.der, nonce="1" * 64)
            shown = own.der if lie == "nonce" else own.der + b"x"
            offered = Offered(
                name="goes",
                certificate=b64encode(shown).decode(),
                commitment=commitment(mine),
            )
            async with waiting(here.machine, HERE) as waits:
                countered = await link.call("POST", "/v1/pairings", Countered, offered)
                path = f"/v1/pairings/{countered.pairing}/nonce"
                nonce = "2" * 64 if lie == "nonce" else "1" * 64
                with pytest.raises(PeerError) as caught:
                    await link.call("POST", path, Pairing, Revealed(nonce=nonce))
                assert caught.value.code == "not_allowed"
                assert (await waits.state()).state == "closed"
            await link.aclose()
            assert book_of(here.machine).known() == ()

    asyncio.run(both())


def test_the_person_decides_about_the_code_that_was_shown(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with (
            running(tmp_path / "a", listen=LOOPBACK) as here,
            waiting(here.machine, HERE) as waits,
            going(other, here.far, THERE),
        ):
            with pytest.raises(PeerError):
                await waits.decide("0000 000x", agreed=True)
            assert book_of(here.machine).known() == ()

    asyncio.run(both())


def test_who_shows_one_certificate_and_speaks_with_another_is_not_believed(
    tmp_path: Path,
) -> None:
    """A relay that passes everything on has another certificate than the one in the answer."""

    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            relay = await asyncio.start_server(
                lambda reader, writer: _relay(reader, writer, here),
                "127.0.0.1",
                0,
                ssl=_context(tmp_path / "m"),
            )
            port = relay.sockets[0].getsockname()[1]
            goes = going(other, f"https://127.0.0.1:{port}", THERE)
            async with waiting(here.machine, HERE):
                with pytest.raises(PeerError) as caught:
                    await goes.__aenter__()
            assert caught.value.code == "wrong_machine"
            relay.close()

    asyncio.run(both())


def _context(folder: Path) -> object:
    from sojourn.peers.pins import server_context

    return server_context(certificate_of(machine(folder)))


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, here: Running) -> None:
    from sojourn.peers.pins import client_context

    host, _, port = here.begun.listen.rpartition(":")
    there, back = await asyncio.open_connection(host, int(port), ssl=client_context(None))

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()

    pumps = [asyncio.ensure_future(pump(*pair)) for pair in ((reader, back), (there, writer))]
    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    for pumping in pumps:
        pumping.cancel()
    for sink in (back, writer):
        sink.close()


def test_by_ssh_nothing_is_paired(tmp_path: Path) -> None:
    async def alone() -> None:
        with pytest.raises(UsageError) as caught:
            async with going(machine(tmp_path / "b"), "me@127.0.0.1", THERE):
                raise AssertionError
        assert caught.value.code == "pairing_needless"

    asyncio.run(alone())


def test_a_machine_that_is_named_keeps_what_its_pairing_gave_it(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a", listen=LOOPBACK) as here:
            goes, _, _ = await met(here, other)
            before = goes.agree()
            after = await introduced(other, "waits", here.far)
            assert (after.certificate, after.rights) == (before.certificate, before.rights)
            renamed = await introduced(other, "short", here.near)
            assert (renamed.machine, renamed.certificate) == (before.machine, before.certificate)
            assert [one.name for one in book_of(other).known()] == ["short"]

    asyncio.run(both())


def test_a_name_is_not_given_to_another_machine_at_that_address(tmp_path: Path) -> None:
    async def both() -> None:
        other = machine(tmp_path / "b")
        async with running(tmp_path / "a") as here, running(tmp_path / "c") as elsewhere:
            await introduced(other, "box", here.near)
            with pytest.raises(PeerError) as caught:
                await introduced(other, "box", elsewhere.near)
            assert caught.value.code == "wrong_machine"

    asyncio.run(both())


def _person(folder: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "sojourn", "pair", "--json", *words],
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _code(program: "subprocess.Popen[str]") -> str:
    """The code that the person sees."""
    assert program.stderr is not None
    for line in program.stderr:
        found = re.search(r"\d{4} \d{4}", line)
        if found:
            return found.group()
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("words", [("yes", "yes"), ("no", "yes"), ("yes", "no")])
def test_two_people_at_two_terminals(tmp_path: Path, words: tuple[str, str]) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    with (
        process(here, "--no-work", "--listen", LOOPBACK) as daemon,
        _person(here, "--name", "waits", "--allow", "look") as waits,
    ):
        assert waits.stderr is not None
        assert "waiting" in waits.stderr.readline()
        with _person(there, daemon.far, "--name", "goes") as goes:
            programs = (waits, goes)
            codes = [_code(program) for program in programs]
            assert codes[0] == codes[1]
            for program, word in zip(programs, words, strict=True):
                _say(program, word)
            said = [program.communicate(timeout=120) for program in programs]
        ends = tuple(program.returncode for program in programs)
        known = answered(sojourn(there, "remote", "list", "--json"))["remotes"]
        if words == ("yes", "yes"):
            assert ends == (0, 0), said
            for out, _ in said:
                schema("pair").validate(json.loads(out.splitlines()[-1]))
            assert json.loads(said[0][0])["remote"]["rights"] == ["look"]
            assert sojourn(there, "ps", "-a", "--remote", "waits").returncode == 0
        else:
            assert 7 in ends, said
            assert known == []


def _say(program: "subprocess.Popen[str]", word: str) -> None:
    assert program.stdin is not None
    program.stdin.write(word + "\n")
    program.stdin.flush()
