"""A person's word for what cannot be taken back: typed at a terminal, or given as --yes."""

import sys
from collections.abc import Sequence

from sojourn.agent import Unwatched
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import DecisionError


class Notes(Unwatched):
    """Says what the runtime did, and nothing else."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice

    def note(self, text: str) -> None:
        """One line on stderr."""
        self._voice.talk(Painted(text, "dim"))


def agree(voice: Voice, word: str, risks: Sequence[str], *, yes: bool, again: str) -> bool:
    """Whether a person agrees, after the risks were said; `again` is the command to be run with it.

    Raises: DecisionError `not_confirmed` when nobody sits at a terminal and --yes was not given.
    """
    asked = voice.err.terminal and sys.stdin.isatty() and not voice.settings.json
    if yes or asked:
        for risk in risks:
            voice.talk(Painted("risk  ", "warn"), risk)
    if yes:
        return True
    if not asked:
        raise DecisionError(
            "a person must agree to this",
            code="not_confirmed",
            state="\n".join(("Nothing was changed.", *risks)),
            hint=f"When that is acceptable:  {again} --yes",
        )
    voice.err.put(f"Type {word} to go on: ")
    return sys.stdin.readline().strip() == word


def not_agreed(voice: Voice) -> int:
    """Say that nothing was done; the exit code."""
    voice.talk("Nothing was changed.")
    return DecisionError.exit_code
