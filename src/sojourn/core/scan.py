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
    r"key)s?[A-Za-z0-9_-]{0,24}"
    r"[\"'\\]{0,4}[ \t]{0,4}(?::=|=>|=|:)[ \t]{0,4}[\"'\\]{0,4}"
    r"(?P<value>[A-Za-z0-9+/_.=~!@#%^&*-]{16,512})"
)
_PLACEHOLDER: Final = re.compile(
    r"(?i)example|sample|placeholder|changeme|your[_-]|redacted|masked|dummy|x{5,}|\*{4,}|\.{4,}|"
    r"^[a-z_]+(?:[._/-][a-z_]+)*$"
)
LEAST_BITS: Final = 3.3
"""Bits a character of an assigned value must carry at least; words of a language carry fewer."""


_SIGNS: Final = tuple(
    (re.compile(form, re.DOTALL), names)
    for form, *names in (
        (
            r"_(?<=[1efkmoprstu]_)(?=[A-Za-z0-9_-]{16})"
            r"(?:(?<=hf_)|(?<=(?:gh[pousr]|npm|gsk|ckr|ive|pat|_v1)_))",
            *("GitHub token", "Stripe key", "Hugging Face token", "npm token"),
            *("Docker token", "DigitalOcean token", "groq key"),
        ),
        (
            r"-(?:BEGIN |(?<=[XYabeikoprst]-)(?=[A-Za-z0-9_-]{10})(?:(?<=xox.-)|"
            r"(?=[A-Za-z0-9_-]{20})(?:(?<=sk-)|"
            r"(?<=(?:xai|pat|ldt|lrt|cbt|ptt|lft|oat|ypi|SPX|KEY)-))))",
            *("private key", "age key", "Anthropic key", "OpenAI key", "Google OAuth secret"),
            *("GitLab token", "Slack token", "PyPI token", "xAI key"),
        ),
        (
            r":(?://[^/\s:@\"'<>$\\]{0,128}:[^/\s@\"'<>$\\{}*]{3,256}@|AA[A-Za-z0-9_-]{33})",
            *("password in an address", "Telegram token"),
        ),
        (r"A(?:(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}|Iza[A-Za-z0-9_-]{35})", "AWS key id", "Google key"),
        (
            r"\.(?:eyJ|slack\.com/services/T|[A-Za-z0-9_-]{16}(?<=SG..{16}))",
            *("JSON web token", "Slack address", "SendGrid key"),
        ),
        (r"uthorization", "authorization"),
    )
)
"""Rules, and what a text has if one of them finds anything in it.

Each form begins with one character that is seldom: the search for that runs as fast as memory is
read, while a form that may begin with several is tried at every place.
"""

_ASSIGNING: Final = tuple(
    re.compile(
        rf"{sign}(?<=[\w\"'\\ \t-]{sign})"
        rf"(?i:(?=[{more}= \t\"'\\A-Z0-9+/_.~!@#%^&*-]{{16}})"
        rf"(?={more}?[ \t]{{0,4}}[\"'\\]{{0,4}}"
        r"(?=[A-Z0-9+/_.=~!@#%^&*-]{16})[A-Z+/_.=~!@#%^&*-]{0,511}[0-9]))"
    )
    for sign, more in ((":", "="), ("=", ">"))
)
"""Where a value is assigned that is long enough; the name stands before it."""

_TO_SIGN: Final = 43
"""Characters from the beginning of a name to the sign that assigns, at most."""


def find_secrets(text: str) -> Iterator[Hit]:
    """Every likely secret, those with a mark of their own first; none is named twice."""
    likely = {name for form, names in _SIGNS if form.search(text) for name in names}
    taken = bytearray(len(text))
    for name, marks, form in _COMPILED:
        for at in _places(text, marks) if name in likely else ():
            match = _around(form, text, at)
            if match is not None and _is_free(taken, *match.span()) and _is_random(name, match[0]):
                _take(taken, *match.span())
                yield Hit(name, *match.span())
    for at in _named_places(text):
        match = _ASSIGNMENT.match(text, at)
        if match is None or not _is_free(taken, *match.span("value")):
            continue
        if _looks_random(match["value"]):
            _take(taken, *match.span("value"))
            yield Hit(ASSIGNED, *match.span("value"))


def may_hold_secret(text: str) -> bool:
    """False when `find_secrets` finds nothing in any piece of the text; much quicker."""
    return any(form.search(text) for form, _ in _SIGNS) or bool(_named_places(text))


def _places(text: str, marks: Iterable[str]) -> Iterator[int]:
    """Where one of the marks stands; far quicker than a pattern that tries every place."""
    for mark in marks:
        at = text.find(mark)
        while at >= 0:
            yield at
            at = text.find(mark, at + 1)


def _around(form: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    """The match that holds the mark at this place; another may end shortly before it."""
    match = form.search(text, max(0, at - _BEFORE), at + LONGEST)
    while match is not None and match.end() <= at:
        match = form.search(text, match.end(), at + LONGEST)
    return match if match is not None and match.start() <= at else None


def _named_places(text: str) -> list[int]:
    """Where a name begins to which a value may be assigned, in order."""
    places: set[int] = set()
    for form in _ASSIGNING:
        for sign in form.finditer(text):
            start = max(0, sign.start() - _TO_SIGN)
            before = _lower(text[start : sign.start()])
            if any(name in before for name in _NAMES):
                places.update(start + at for at in _places(before, _NAMES))
    return sorted(places)


def _lower(text: str) -> str:
    """ASCII letters in lower case; no other letter, where one would become two."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_ASCII_LOWER)


def _is_free(taken: bytearray, start: int, end: int) -> bool:
    """Whether nothing was found in these characters before."""
    return taken.find(1, start, end) < 0


def _take(taken: bytearray, start: int, end: int) -> None:
    taken[start:end] = b"\1" * (end - start)


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
