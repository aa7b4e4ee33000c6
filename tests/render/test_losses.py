"""Every loss has words for people, and the page has the same."""

import re
from pathlib import Path

import sojourn.render
from sojourn.render.request import LOSSES

ROOT = Path(__file__).parents[2]


def test_the_page_says_of_each_loss_what_people_are_told() -> None:
    page = (ROOT / "docs/rendering.md").read_text().partition("\n## Losses\n")[2]
    table = page.partition("\n## ")[0]
    assert dict(re.findall(r"^\| `([a-z_]+)` \| (.*) \|$", table, re.MULTILINE)) == dict(LOSSES)


def test_every_loss_that_rendering_makes_has_words() -> None:
    folder = Path(sojourn.render.__file__).parent
    made = {
        code
        for file in folder.glob("*.py")
        for code in re.findall(r'Loss\(\s*code="([a-z_]+)"', file.read_text())
    }
    assert made == set(LOSSES)
