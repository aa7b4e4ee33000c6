"""Importing: everything is checked in a private folder, shown, and only then kept."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.arriving import (
    SAYS,
    elsewhere,
    export,
    members,
    new_key,
    pack,
    refusal,
    take,
    tree_files,
)
from agent.stage import Stage
from sojourn.agent.arrive import Arrival
from sojourn.core.tenure import MayLook
from sojourn.errors import HeldElsewhereError
from sojourn.format import layout


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, SAYS)
    made.run("hello")
    return made


def test_what_was_exported_arrives_byte_for_byte_and_is_looked_at(stage: Stage) -> None:
    file, machine = export(stage), elsewhere(stage.folder)
    done = take(machine, file)
    assert done.place is not None and done.arrival.relation == "new"
    assert tree_files(Path(done.place.folder)) == members(file)
    look = machine.look(done.place)
    assert isinstance(look.admission, MayLook) and look.admission.code == "not_held_here"
    assert machine.find("capsule").folder == done.place.folder
    assert [*machine.verify(done.place)] == []
    assert os.stat(done.place.folder).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("options", [{"compress": True}, {}])
def test_compressed_and_encrypted_archives_arrive_alike(
    stage: Stage, options: dict[str, Any]
) -> None:
    key = new_key(stage.folder, "key")
    file = export(stage, "box", encrypt_to=[f"{key}.pub"], **options)
    done = take(elsewhere(stage.folder), file, identities=[str(key)])
    assert done.place is not None
    assert tree_files(Path(done.place.folder)) == members(export(stage, "plain.tar"))


def test_the_report_says_what_a_person_must_know(stage: Stage) -> None:
    (stage.make().folder and stage.capsule / layout.SPEC).write_text(
        json.dumps(
            {
                "format": "sojourn.environment/1",
                "env": {"LANG": "C"},
                "secrets": {"API_TOKEN": {"required": True}, "OPTIONAL": {"required": False}},
            }
        )
    )
    file = export(stage)
    seen: list[Arrival] = []

    def look(arrival: Arrival) -> bool:
        seen.append(arrival)
        return False

    done = take(elsewhere(stage.folder), file, accept=look)
    assert done.place is None and not os.listdir(elsewhere(stage.folder).state.capsules)
    (arrival,) = seen
    assert arrival.secrets == ("API_TOKEN",) and arrival.tools == () and arrival.signed is None
    assert arrival.found.folded.ending.events == len(stage.events())
    assert len(arrival.found.machines) == 1 and arrival.doubts == ()


def test_a_tool_that_is_not_here_is_named(tmp_path: Path) -> None:
    from sojourn import tool

    @tool(replay="safe")
    def lookup(word: str) -> str:
        """Look a word up."""
        return word

    stage = Stage(tmp_path, SAYS, tools=[lookup])
    stage.run("hello")
    assert take(elsewhere(tmp_path), export(stage)).arrival.tools == ("lookup",)


def test_the_same_capsule_is_not_put_beside_itself(stage: Stage) -> None:
    first = export(stage)
    assert take(stage.machine, first).arrival.relation == "same"
    stage.run("more")
    second = export(stage, "second.tar")
    assert refusal(stage.machine, first) == "older_copy"
    machine = elsewhere(stage.folder)
    take(machine, first)
    with pytest.raises(HeldElsewhereError) as refused:
        take(machine, second)
    assert refused.value.code == "merge_needed" and "sojourn merge" in refused.value.hint
    assert take(machine, first).place is None


def test_a_lost_folder_that_comes_back_whole_runs_again(stage: Stage) -> None:
    file = export(stage)
    shutil.rmtree(stage.capsule)
    done = take(stage.machine, file, name=str(stage.capsule))
    assert done.place is not None and done.arrival.doubts == ()
    assert stage.run("again").reason == "rest"
    assert not (stage.capsule / layout.SUMS).exists()
    assert stage.verify() == []


def test_an_older_copy_of_a_lost_folder_is_told_and_only_looked_at(stage: Stage) -> None:
    file = export(stage)
    stage.run("more")
    shutil.rmtree(stage.capsule)
    done = take(stage.machine, file, name=str(stage.capsule))
    assert done.arrival.doubts == ("older_copy",)
    with pytest.raises(HeldElsewhereError):
        stage.run("again")


def test_a_stripped_or_other_signature_is_told_and_remembered(stage: Stage) -> None:
    one, other = new_key(stage.folder, "one"), new_key(stage.folder, "other")
    signed, plain = export(stage, sign=str(one)), export(stage, "plain.tar")
    foreign = export(stage, "foreign.tar", sign=str(other))
    machine = elsewhere(stage.folder)
    first = take(machine, signed)
    for file, doubt in ((plain, "signature_stripped"), (foreign, "other_signer")):
        assert first.place is not None
        shutil.rmtree(first.place.folder)
        done = take(machine, file)
        assert done.arrival.doubts == (doubt,) and done.place is not None
        admission = machine.look(done.place).admission
        assert isinstance(admission, MayLook) and admission.code == "suspect"
        assert doubt in admission.message
        first = done


def test_only_an_allowed_signer_is_let_in_when_a_list_is_given(stage: Stage) -> None:
    one, other = new_key(stage.folder, "one"), new_key(stage.folder, "other")
    public = one.with_suffix(".pub").read_text()
    allowed = stage.folder / "allowed"
    allowed.write_text(f'ann namespaces="sojourn-capsule@v1" {public}')
    machine, given = elsewhere(stage.folder), {"allowed_signers": str(allowed)}
    assert refusal(machine, export(stage), **given) == "signature_missing"
    assert refusal(machine, export(stage, "o", sign=str(other)), **given) == "signer_unknown"
    signed = export(stage, "s", sign=str(one))
    files = members(signed)
    wrong = files[layout.SIGNATURE].replace(b"A", b"B", 3)
    assert refusal(machine, pack(stage.folder / "w", {**files, layout.SIGNATURE: wrong})) in (
        "signature_malformed",
        "signature_namespace",
        "signature_wrong",
    )
    git = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-q", "-n", "git", "-f", one],
        input=files[layout.MANIFEST],
        capture_output=True,
        check=True,
    ).stdout
    file = pack(stage.folder / "git", {**files, layout.SIGNATURE: git})
    assert refusal(machine, file) == "signature_namespace"
    allowed.write_text(f'ann namespaces="git" {public}')
    assert refusal(machine, signed, **given) == "signer_refused"
    allowed.write_text(f'ann valid-before="20200101" {public}')
    assert refusal(machine, signed, **given) == "signer_unknown"
    allowed.write_text(f"ann {public}")
    done = take(machine, signed, **given)
    assert done.arrival.signed is not None and done.arrival.signed.principal == "ann"
