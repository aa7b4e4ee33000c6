"""Vectors about the end of the log: torn tails, and what manifest and ledger know."""

from format_bodies import born, ended, said, turn
from format_builder import Capsule, digest, log, scenario


def behind(lines: int) -> Capsule:
    """A turn of ten lines whose manifest names only the first ones."""
    capsule = turn()[0]
    capsule.marked = lines
    capsule.seal()
    return capsule


@scenario()
def log_longer_than_the_manifest() -> Capsule:
    """Lines after those that the manifest names are sound when they continue the chains."""
    return behind(3)


@scenario(log("torn_tail", 10))
def half_line_after_a_process_died() -> Capsule:
    """Bytes without a final line feed are torn."""
    capsule = behind(3)
    capsule.options = {"same_boot": True}
    capsule.lines[-1] = capsule.lines[-1][:100]
    return capsule


@scenario(log("torn_tail", 10))
def last_line_feed_missing() -> Capsule:
    """A whole line without its line feed is torn, too: it was never acknowledged."""
    capsule = behind(3)
    capsule.options = {"same_boot": True}
    capsule.lines[-1] = capsule.lines[-1][:-1]
    return capsule


@scenario(log("nul_bytes", 10))
def garbled_line_after_a_process_died() -> Capsule:
    """While the machine runs on, a whole line that cannot be read was not torn."""
    capsule = behind(3)
    capsule.options = {"same_boot": True}
    capsule.lines[-1] = bytes(50) + b"\n"
    return capsule


@scenario(log("nul_bytes", 9), log("torn_tail", 11))
def garbled_line_and_half_line() -> Capsule:
    """Then the half line is torn, and the other is damage."""
    capsule = behind(3)
    capsule.options = {"same_boot": True}
    capsule.lines[8] = bytes(50) + b"\n"
    capsule.tail(b'{"body":{"par')
    return capsule


@scenario(log("torn_tail", 9))
def nul_tail_after_a_restart() -> Capsule:
    """After a restart of the machine the last append may be NUL."""
    capsule = behind(3)
    capsule.lines[8:] = [bytes(700)]
    return capsule


@scenario(log("torn_tail", 9))
def nul_and_a_line_of_the_last_append() -> Capsule:
    """The first line of the last append is lost, the second is there: all of it is torn."""
    capsule = behind(3)
    capsule.lines[8] = bytes(len(capsule.lines[8]) - 1) + b"\n"
    return capsule


@scenario(log("torn_tail", 9))
def glued_in_the_last_append() -> Capsule:
    """Half of the first line with the second glued to it."""
    capsule = behind(3)
    capsule.lines[8] = capsule.lines[8][:200]
    return capsule


@scenario(log("torn_tail", 9))
def line_of_the_last_append_lost() -> Capsule:
    """A gap inside the last append is torn."""
    capsule = behind(3)
    del capsule.lines[8]
    return capsule


@scenario(log("torn_tail", 9))
def body_of_the_last_append_garbled() -> Capsule:
    """A body of the last append with other bytes is torn."""
    capsule = behind(3)
    capsule.lines[8] = capsule.lines[8].replace(b"x = 1", b"x = 7")
    return capsule


@scenario(log("torn_tail", 8))
def end_of_an_append_that_was_begun() -> Capsule:
    """The append began before: its whole lines stay, the rest of it is torn."""
    capsule, at = born()
    capsule.marked = 3
    capsule.seal()
    for number in range(6):
        capsule.add("input", said("x", f"r{number}"), at, more=number > 0)
    capsule.lines[7] = capsule.lines[7][:30] + bytes(100) + b"\n"
    return capsule


@scenario(log("torn_tail", 4))
def several_garbled_lines() -> Capsule:
    """Nothing after the first garbled line can be read: all of it is torn."""
    capsule = behind(3)
    capsule.lines[3:] = [b"\xff\xfe\n", b'{"body":\n', bytes(30) + b"\n", b"x"]
    return capsule


@scenario(log("nul_bytes", 7))
def later_append_proves_the_earlier() -> Capsule:
    """Line 9 begins a later append, so line 7 was durable: damage, not torn."""
    capsule = behind(3)
    capsule.lines[6] = bytes(len(capsule.lines[6]) - 1) + b"\n"
    return capsule


@scenario(log("nul_bytes", 5), log("torn_tail", 9))
def damage_and_a_torn_tail() -> Capsule:
    """Damage further up does not hide a torn tail."""
    capsule = behind(3)
    capsule.lines[4] = bytes(100) + b"\n"
    capsule.lines[8] = bytes(100) + b"\n"
    return capsule


@scenario(log("chain_gap", 8))
def lost_lines_of_an_earlier_append() -> Capsule:
    """A gap before a later append is damage."""
    capsule = behind(3)
    del capsule.lines[7]
    return capsule


@scenario(log("nul_bytes", 10), log("log_altered", None))
def known_line_is_never_torn() -> Capsule:
    """A line within the length that the manifest names was durable."""
    capsule = behind(10)
    capsule.lines[9] = bytes(len(capsule.lines[9]) - 1) + b"\n"
    return capsule


@scenario(log("line_unended", 10), log("log_shorter", None))
def known_line_without_its_end() -> Capsule:
    """So was its line feed."""
    capsule = behind(10)
    capsule.lines[9] = capsule.lines[9][:-1]
    return capsule


@scenario(log("line_unended", 10), log("log_altered", None))
def known_line_feed_altered() -> Capsule:
    """A line that runs over the known length is not torn."""
    capsule = behind(10)
    capsule.lines[9] = capsule.lines[9][:-1] + b"x"
    return capsule


@scenario(log("line_unended", 11))
def tail_larger_than_an_append() -> Capsule:
    """A tail of more than 16 MiB was never one append."""
    capsule = behind(10)
    capsule.tail(bytes(2**24 + 1))
    return capsule


@scenario(log("torn_tail", 11))
def tail_as_large_as_an_append() -> Capsule:
    """A tail of 16 MiB may have been one append."""
    capsule = behind(10)
    capsule.tail(bytes(2**24))
    return capsule


@scenario(log("log_shorter", None))
def log_shorter() -> Capsule:
    """A log that is shorter than the manifest says was cut or rolled back."""
    capsule = behind(10)
    del capsule.lines[8:]
    return capsule


@scenario(log("log_replaced", None))
def log_replaced() -> Capsule:
    """A log of the right length with another head was replaced."""
    capsule, at = turn()
    capsule.seal()
    del capsule.lines[9]
    at.seq, at.prev, capsule.clock = 9, capsule.ids[8], 9
    again = ended(capsule.ids[3]) | {"salt": "salt-of-another-event."}
    capsule.add("turn_ended", again, at, more=True)
    return capsule


@scenario(log("log_replaced", None))
def manifest_of_another_length() -> Capsule:
    """No line ends where the manifest says."""
    capsule = turn()[0]
    value = capsule.manifest()
    value["timeline"]["length"] -= 10
    capsule.seal(timeline=value["timeline"])
    return capsule


@scenario(log("log_altered", None))
def digest_of_another_log() -> Capsule:
    """The heads agree and the digest does not."""
    capsule = turn()[0]
    value = capsule.manifest()
    value["timeline"]["sha256"] = digest("x")
    capsule.seal(timeline=value["timeline"])
    return capsule


@scenario(log("chain_broken", 9))
def line_before_the_last_append_altered() -> Capsule:
    """A whole last append whose chain is broken was not torn: the line before it was altered."""
    capsule = behind(3)
    capsule.lines[7] = capsule.lines[7].replace(b"03:04:05", b"03:04:06")
    return capsule


@scenario(log("torn_tail", 10), log("log_altered", None))
def torn_tail_of_another_log() -> Capsule:
    """A torn tail is named before what does not agree with the manifest."""
    capsule, _ = turn()
    capsule.marked = 3
    value = capsule.manifest()
    value["timeline"]["sha256"] = digest("x")
    capsule.seal(timeline=value["timeline"])
    capsule.lines[-1] = capsule.lines[-1][:-1]
    return capsule
