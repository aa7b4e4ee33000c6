"""Every vector of tests/vectors/render renders as it says, and every pass is needed by some."""

import copy
import json

import msgspec
import pytest

from render.replies import ReplyVector, read, replies
from render.vectors import Vector, check_with_sdk, requests
from sojourn.render import blobs_needed, render_bytes
from sojourn.render.prompt import PASSES
from sojourn.testing.strict.refusal import Rule


def named(vector: Vector | ReplyVector) -> str:
    return vector.path.stem


def every_request() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", requests(), ids=named)


def is_checked(vector: Vector) -> bool:
    """Whether a strict fake speaks for this host."""
    standard = vector.target.profile.name in ("anthropic", "anthropic_adaptive", "openai")
    return standard or "strict" in vector.raw


def test_there_are_vectors() -> None:
    assert len(requests()) > 90 and len(replies()) > 50


@every_request()
def test_a_view_renders_as_its_vector_says(vector: Vector) -> None:
    rendered = vector.render()
    assert rendered.payload == vector.raw["rendered"]["payload"]
    assert json.loads(render_bytes(rendered.payload)) == rendered.payload
    assert msgspec.to_builtins(rendered.constraints) == vector.raw["rendered"]["constraints"]
    assert list(msgspec.to_builtins(rendered.losses)) == vector.raw["rendered"]["losses"]


@pytest.mark.parametrize("vector", [one for one in requests() if is_checked(one)], ids=named)
def test_a_strict_provider_takes_what_is_rendered(vector: Vector) -> None:
    assert vector.refusal(vector.render().payload) is None


@every_request()
def test_the_types_of_the_official_sdk_take_what_is_rendered(vector: Vector) -> None:
    if vector.target.profile.arguments_as == "string":
        check_with_sdk(vector.render().payload, vector.target.profile.dialect)


@every_request()
def test_rendering_reads_exactly_the_blobs_that_are_asked_for(vector: Vector) -> None:
    assert set(vector.blobs) == blobs_needed(vector.prompt)


@every_request()
def test_rendering_leaves_the_view_as_it_was(vector: Vector) -> None:
    before = copy.deepcopy(vector.prompt)
    first, second = vector.render(), vector.render()
    assert vector.prompt == before
    assert render_bytes(first.payload) == render_bytes(second.payload)


@pytest.mark.parametrize("vector", [one for one in requests() if is_checked(one)], ids=named)
def test_without_a_pass_exactly_what_a_vector_says_is_refused(vector: Vector) -> None:
    refused: dict[str, Rule] = {}
    for one in PASSES:
        refusal = vector.refusal(vector.render_without(one).payload)
        if refusal is not None:
            refused[one.__name__] = refusal.rule
    assert refused == vector.refused_without


def test_removing_any_pass_is_noticed() -> None:
    noticed = {name for vector in requests() for name in vector.refused_without}
    assert noticed == {one.__name__ for one in PASSES}


@pytest.mark.parametrize("vector", replies(), ids=named)
def test_a_reply_is_read_as_its_vector_says(vector: ReplyVector) -> None:
    assert json.loads(json.dumps(read(vector))) == vector.raw["reply"]
