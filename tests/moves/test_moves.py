"""A capsule goes from machine to machine, whole and once."""

from pathlib import Path

from moves.pair import Pair

TALK = [{"name": name, "text": name} for name in ("One.", "Two.", "Three.", "Four.")]


def test_an_agent_that_moved_goes_on_there(tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    (tmp_path / "w" / "file.txt").write_text("work")
    moved = pair.move("a", "b")
    assert (moved.outcome, moved.refused) == ("moved", None)
    assert pair.states() == {"a": "RETIRED", "b": "HOLDER", "c": "NONE"}
    assert pair.run("b", "go on").text == "Two."
