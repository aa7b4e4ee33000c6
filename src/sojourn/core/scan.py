"""Finds what is likely a secret in a text, by the marks of well-known keys and by assignments.

It finds likely secrets, not all of them, and may be wrong about some; exact values of known secrets
are masked before anything is written (docs/format.md#scan).
"""

import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

LONGEST: Final = 4096
"""No mark of a secret is longer: texts may be looked at in pieces that overlap by so much."""

ASSIGNED: Final = "assigned secret"


class Hit(NamedTuple):
    """What kind of secret it looks like, and where: `start` to `end` in the text."""

    rule: str
    start: int
    end: int


_RULES: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("private key", ("-----BEGIN ",), r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----"),
    ("age key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{40,}"),
    ("Anthropic key", ("sk-ant-",), r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("OpenAI key", ("sk-",), r"\bsk-(?!ant-)(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}"),
    ("AWS key id", ("AKIA", "ASIA", "ABIA", "ACCA"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    ("Google key", ("AIza",), r"\bAIza[0-9A-Za-z_-]{35}"),
    ("Google OAuth secret", ("GOCSPX-",), r"\bGOCSPX-[0-9A-Za-z_-]{28}"),
    ("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{36,}"),
    ("GitHub token", ("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{40,}"),
    (
        "GitLab token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
        r"\bgl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,}",
    ),
    ("Slack token", ("xox",), r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Slack address", ("hooks.slack.com",), r"hooks\.slack\.com/services/T\w{6,}/B\w{6,}/\w{16,}"),
    ("Stripe key", ("_live_",), r"\b[rs]k_live_[0-9A-Za-z]{16,}"),
    ("SendGrid key", ("SG.",), r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,}"),
    ("Hugging Face token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,}"),
    ("npm token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}"),
    ("PyPI token", ("pypi-",), r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    ("Docker token", ("dckr_",), r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("DigitalOcean token", ("_v1_",), r"\bdo[opr]_v1_[a-f0-9]{64}"),
    ("Telegram token", (":AA",), r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    ("groq key", ("gsk_",), r"\bgsk_[A-Za-z0-9]{40,}"),
    ("xAI key", ("xai-",), r"\bxai-[A-Za-z0-9]{60,}"),
    (
        "JSON web token",
        ("eyJ",),
        r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}",
    ),
    (
        "password in an address",
        ("://",),
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^/\s:@\"'<>$\\]{0,128}"
        r":[^/\s@\"'<>$\\{}*]{3,256}@[\w.\[-]",
    ),
    (
        "authorization",
        ("uthorization",),
        r"[Aa]uthorization[\"']?\s*[:=]\s*[\"']?(?:Bearer|Basic|Token) [A-Za-z0-9+/_.=~-]{16,}",
    ),
)
"""What it is, pieces of text of which it holds one, and its form."""

_COMPILED: Final = tuple((name, marks, re.compile(form)) for name, marks, form in _RULES)
_BEFORE: Final = 160
"""How far before its mark a secret may begin."""

_NAMES: Final = ("token", "secret", "passw", "passphrase", "key", "credential")
_ASCII_LOWER: Final = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
_ASSIGNMENT: Final = re.compile(
    r"(?i)(?:token|secret|passw(?:or)?d|passphrase|credential|"
    r"(?:(?<=api)|(?<=api[_-])|(?<=access)|(?<=access[_-])|(?<=auth[_-])|(?<=private[_-]))"
    r"key)s?[\w-]{0,24}"
    r"[\"'\\]{0,4}[ \t]{0,4}(?::=|=>|=|:)[ \t]{0,4}[\"'\\]{0,4}"
    r"(?P<value>[A-Za-z0-9+/_.=~!@#%^&*-]{16,512})"
)
_PLACEHOLDER: Final = re.compile(
    r"(?i)example|sample|placeholder|changeme|your[_-]|redacted|masked|dummy|x{5,}|\*{4,}|\.{4,}|"
    r"^[a-z_]+(?:[._/-][a-z_]+)*$"
)
LEAST_BITS: Final = 3.3
"""Bits a character of an assigned value must carry at least; words of a language carry fewer."""


def find_secrets(text: str) -> Iterator[Hit]:
    """Every likely secret, those with a mark of their own first; none is named twice."""
    taken: list[tuple[int, int]] = []
    for name, marks, form in _COMPILED:
        for at in _places(text, marks):
            match = form.search(text, max(0, at - _BEFORE), at + LONGEST)
            if match is None or _inside(*match.span(), taken):
                continue
            if match.start() <= at < match.end() and _is_random(name, match[0]):
                taken.append(match.span())
                yield Hit(name, *match.span())
    for at in sorted(_places(_lower(text), _NAMES)):
        match = _ASSIGNMENT.match(text, at)
        if match is None or _inside(*match.span("value"), taken):
            continue
        if _looks_random(match["value"]):
            taken.append(match.span("value"))
            yield Hit(ASSIGNED, *match.span("value"))


def _places(text: str, marks: Iterable[str]) -> Iterator[int]:
    """Where one of the marks stands; far quicker than a pattern that tries every place."""
    for mark in marks:
        at = text.find(mark)
        while at >= 0:
            yield at
            at = text.find(mark, at + 1)


def _lower(text: str) -> str:
    """ASCII letters in lower case; no other letter, since some would become two."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_ASCII_LOWER)


def _inside(start: int, end: int, taken: list[tuple[int, int]]) -> bool:
    return any(start < other_end and other_start < end for other_start, other_end in taken)


def _is_random(name: str, found: str) -> bool:
    """Keys whose mark is a short word of many programs must look like keys."""
    return name != "OpenAI key" or (any(map(str.isdigit, found)) and _bits(found) >= LEAST_BITS)


def _looks_random(value: str) -> bool:
    """Whether a value is more than a word, a path or a placeholder."""
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return mixed and _PLACEHOLDER.search(value) is None and _bits(value) >= LEAST_BITS


def _bits(text: str) -> float:
    """Shannon entropy in bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
