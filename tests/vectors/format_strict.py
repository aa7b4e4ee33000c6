"""Vectors about strict JSON in the lines of the log."""

from format_bodies import born, ended, turn
from format_builder import Capsule, log, scenario


@scenario(log("bom", 1), log("log_altered", None), ("identity_unknown", "manifest.json", 1))
def byte_order_mark() -> Capsule:
    """A byte order mark is refused."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[0] = b"\xef\xbb\xbf" + capsule.lines[0]
    return capsule


@scenario(log("not_utf8", 4), log("log_altered", None))
def latin_1() -> Capsule:
    """Bytes that are not UTF-8 are refused."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[3] = capsule.lines[3].replace(b"Mend it.", b"Mend \xe9t.")
    return capsule


def _raw_input(raw: bytes) -> Capsule:
    capsule, at = born()
    capsule.add("input", None, at, raw=raw)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


def _kept(text: str, more: str = "") -> bytes:
    return (
        f'{{"author":"you","parts":[{{"text":{text},"type":"text"}}],"request":"r1",'
        f'"salt":"salt000000000000000003"{more}}}'
    ).encode()


@scenario(log("lone_surrogate", 4))
def lone_surrogate() -> Capsule:
    """Half of a surrogate pair is refused, though the digest is right."""
    return _raw_input(_kept(r'"cut \ud83d"'))


@scenario(log("lone_surrogate", 4))
def lone_surrogate_in_a_key() -> Capsule:
    """In a key, too, even in a field that nobody knows."""
    return _raw_input(_kept('"x"', r',"\udc00":1'))


@scenario(log("duplicate_key", 4))
def duplicate_key() -> Capsule:
    """The same key twice is refused at any depth."""
    return _raw_input(_kept('"x","text":"y"'))


@scenario(log("number_out_of_range", 4))
def integer_out_of_range() -> Capsule:
    """2^53 and above would be read differently by different readers."""
    return _raw_input(_kept('"x"', ',"n":9007199254740992'))


@scenario()
def largest_integer() -> Capsule:
    """2^53 - 1 is the largest integer, also below zero."""
    return _raw_input(_kept('"x"', ',"n":[9007199254740991,-9007199254740991,0.5,-0]'))


@scenario(log("number_out_of_range", 4))
def number_of_many_digits() -> Capsule:
    """A number of 5,000 digits is a failure, not a crash."""
    return _raw_input(_kept('"x"', ',"n":' + "9" * 5000))


@scenario(log("number_out_of_range", 4))
def float_out_of_range() -> Capsule:
    """So is a number with an exponent that no double holds."""
    return _raw_input(_kept('"x"', ',"n":1e400'))


@scenario(log("not_json", 4))
def not_a_number() -> Capsule:
    """NaN is not JSON."""
    return _raw_input(_kept('"x"', ',"n":NaN'))


@scenario()
def deep_but_allowed() -> Capsule:
    """Objects and lists nest 64 deep, the line itself counted."""
    return _raw_input(_kept('"x"', ',"n":' + "[" * 62 + "]" * 62))


@scenario(log("too_deep", 4))
def too_deep() -> Capsule:
    """Deeper nesting is a failure, not a crash."""
    return _raw_input(_kept('"x"', ',"n":' + "[" * 63 + "]" * 63))


@scenario(log("too_deep", 4))
def far_too_deep() -> Capsule:
    """A line of nothing but open brackets, too."""
    return _raw_input(b"[" * 100_000)


@scenario()
def brackets_in_strings() -> Capsule:
    """Brackets in strings do not nest."""
    return _raw_input(_kept('"' + "[{" * 100 + r"\"[\\" + '"'))


@scenario(log("line_too_long", 4))
def line_too_long() -> Capsule:
    """A line is at most 1 MiB."""
    return _raw_input(_kept('"' + "x" * 2**20 + '"'))
