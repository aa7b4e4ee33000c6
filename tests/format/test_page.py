"""What docs/format.md says in tables is what the code does."""

from format.tables import PAGE, fill


def test_the_tables_of_the_page_are_those_of_the_code() -> None:
    text = PAGE.read_text("utf-8")
    assert fill(text) == text
