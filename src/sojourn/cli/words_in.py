"""Text that a person gives: as an argument, or from stdin with `-`."""

import sys

from sojourn.errors import NotFoundError, UsageError


def given_text(text: str) -> str:
    """The text itself, or all of stdin when it is `-`; a last line feed there is not part of it.

    Raises: UsageError `text_empty` or `text_not_utf8`.
    """
    if text == "-":
        if sys.stdin is None:
            raise UsageError(
                "stdin is closed, so there is no message to read",
                code="text_empty",
                state="Nothing was sent.",
                hint="Give the message as an argument.",
            )
        text = decoded(sys.stdin.buffer.read(), "stdin").removesuffix("\n")
    if not text.strip():
        raise UsageError(
            "the message is empty",
            code="text_empty",
            state="Nothing was sent.",
            hint='Give it as an argument:  sojourn run CAPSULE "fix the tests"    or pipe it to  -',
        )
    return decoded(text.encode("utf-8", "surrogateescape"), "the message")


def file_text(file: str) -> str:
    """The text of a file, or of stdin when it is `-`.

    Raises: NotFoundError `file_missing`; UsageError `text_not_utf8`.
    """
    if file == "-":
        return decoded(sys.stdin.buffer.read(), "stdin")
    try:
        with open(file, "rb") as opened:
            return decoded(opened.read(), file)
    except OSError as failure:
        raise NotFoundError(
            f"cannot read {file}: {failure.strerror}",
            code="file_missing",
            state="Nothing was done.",
        ) from None


def decoded(data: bytes, what: str) -> str:
    """Bytes as text.

    Raises: UsageError `text_not_utf8`.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise UsageError(
            f"{what} is not UTF-8 text (byte {failure.start})",
            code="text_not_utf8",
            state="Nothing was sent.",
        ) from None
