"""Vectors about single lines of the log: their bytes, frame, header and body."""

from format_bodies import born, empty, ended, outcome, said, turn
from format_builder import LOG, Capsule, canonical, digest, log, scenario


@scenario()
def whole_turn() -> Capsule:
    """A capsule with one turn is sound."""
    return turn()[0]


@scenario(("identity_unknown", "manifest.json", 1))
def empty_log() -> Capsule:
    """An empty log is a log; only the manifest misses its identity event."""
    capsule = empty()
    capsule.files["memory/working_memory.md"] = b""
    capsule.seal()
    return capsule


@scenario(("log_missing", LOG, None), ("identity_unknown", "manifest.json", 1))
def no_log() -> Capsule:
    """A capsule without its log is named as such."""
    capsule = turn()[0]
    capsule.seal()
    capsule.files[LOG] = b"\0gone"
    return capsule


@scenario()
def line_separator_in_text() -> Capsule:
    """Lines end at 0x0A only: U+2028, U+0085 and a carriage return in a text end nothing."""
    capsule, at = born()
    capsule.add("input", said("one\u2028two\u0085three\rfour\u2029"), at)
    return capsule


@scenario(log("not_json", 4), log("not_json", 5), log("log_altered", None))
def raw_newline_in_string() -> Capsule:
    """A raw line feed in a string makes two broken lines; they are not joined by guess."""
    capsule, at = born()
    capsule.add("input", said("one two"), at)
    capsule.seal()
    capsule.lines[3] = capsule.lines[3].replace(b"one two", b"one\ntwo")
    capsule.add("input", said("three", "r2"), at)
    return capsule


@scenario()
def not_canonical_but_strict() -> Capsule:
    """Readers hash stored bytes: a body with another order, spaces and escapes is sound."""
    capsule, at = born()
    raw = b'{ "salt":"salt000000000000000003", "request":"r1","parts":[{"type":"text",'
    raw += rb'"text":"caf\u00e9 \ud83d\ude00"}],"author" : "you" }'
    capsule.add("input", None, at, raw=raw)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario()
def unknown_kind() -> Capsule:
    """A kind that nobody here knows is kept, and the chain goes on."""
    capsule, at = born()
    capsule.add("later.kind_2", {"any": [1, {"thing": "large"}]}, at)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario()
def unknown_fields() -> Capsule:
    """Unknown fields in a known body, a part or a header are kept and ignored."""
    capsule, at = born()
    body = said("hello") | {"new": {"n": 1}}
    body["parts"][0]["new"] = [1, 2]
    capsule.add("input", body, at, new="field")
    return capsule


@scenario()
def large_body() -> Capsule:
    """A whole body may lie in a blob."""
    capsule, at = born()
    salt = "salt000000000000000003"
    ref = capsule.blob(canonical(said("long") | {"salt": salt}), "application/json")
    capsule.add("input", {"large": ref, "salt": salt}, at)
    return capsule


@scenario(log("body_malformed", 4))
def large_body_without_salt() -> Capsule:
    """The line of a body in a blob has a salt, too."""
    capsule, at = born()
    ref = capsule.blob(canonical(said("long") | {"salt": "x" * 22}), "application/json")
    capsule.add("input", None, at, raw=canonical({"large": ref}))
    return capsule


@scenario(log("body_malformed", 4))
def large_body_of_another_shape() -> Capsule:
    """A body in a blob has the shape of its kind."""
    capsule, at = born()
    ref = capsule.blob(canonical(ended("t") | {"salt": "x" * 22}), "application/json")
    capsule.add("input", {"large": ref}, at)
    return capsule


@scenario(log("duplicate_key", 4))
def large_body_not_strict() -> Capsule:
    """It is strict JSON."""
    capsule, at = born()
    ref = capsule.blob(b'{"salt":"' + b"x" * 22 + b'","a":1,"a":2}', "application/json")
    capsule.add("later", {"large": ref}, at)
    return capsule


@scenario(log("blob_missing", 4))
def large_body_missing() -> Capsule:
    """A body whose blob is gone cannot be folded; the chain goes on."""
    capsule, at = born()
    ref = capsule.blob(canonical(said("long")), "application/json")
    capsule.add("input", {"large": ref}, at)
    capsule.add("turn_ended", ended("t"), at)
    capsule.blobs.clear()
    return capsule


@scenario(log("blob_size", 4), ("blob_altered", "BLOB", None))
def large_body_cut() -> Capsule:
    """The size of a body's blob is compared before its digest."""
    capsule, at = born()
    data = canonical(said("long"))
    capsule.add("input", {"large": capsule.blob(data, "application/json")}, at)
    capsule.blobs[digest(data)] = data[:-1]
    return capsule


@scenario(log("blob_altered", 4), ("blob_altered", "BLOB", None))
def large_body_altered() -> Capsule:
    """A body's blob must have its digest."""
    capsule, at = born()
    data = canonical(said("long"))
    capsule.add("input", {"large": capsule.blob(data, "application/json")}, at)
    capsule.blobs[digest(data)] = data.replace(b"long", b"lonG")
    return capsule


@scenario(log("nul_bytes", 6), log("log_altered", None))
def nul_span_in_the_middle() -> Capsule:
    """A block of NUL in the middle is one failure; what follows is read."""
    capsule = turn()[0]
    capsule.seal()
    line = capsule.lines[5]
    capsule.lines[5] = line[:40] + bytes(len(line) - 60) + line[-20:]
    return capsule


@scenario(log("nul_bytes", 4), log("log_altered", None))
def nul_span_over_lines() -> Capsule:
    """NUL over several lines and their ends leaves one line, and one failure."""
    capsule = turn()[0]
    capsule.seal()
    whole = b"".join(capsule.lines[3:6])
    capsule.lines[3:6] = [bytes(len(whole) - 1) + b"\n"]
    return capsule


@scenario(log("glued_lines", 5), log("log_shorter", None))
def glued_lines() -> Capsule:
    """Two lines without the line feed between them are one line that cannot be read."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[4] = capsule.lines[4][:-1]
    return capsule


@scenario(log("glued_lines", 5), log("log_shorter", None))
def half_line_glued_to_the_next() -> Capsule:
    """Half a line that another was appended to is named, and left where it is."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[4] = capsule.lines[4][:70]
    return capsule


@scenario(log("line_malformed", 6))
def malformed_line_among_good_ones() -> Capsule:
    """One line of another form does not stop the reading of those after it."""
    capsule = turn()[0]
    capsule.marked = 3
    capsule.seal()
    capsule.lines[5] = b'{"type":"metadata","title":"notes"}\n'
    return capsule


@scenario(log("not_json", 6), log("log_altered", None))
def blank_line() -> Capsule:
    """A blank line is not an event."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines.insert(5, b"\n")
    return capsule


@scenario(log("line_malformed", 4), log("log_altered", None))
def carriage_return() -> Capsule:
    """A line that ends in CR LF was altered."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[3] = capsule.lines[3][:-1] + b"\r\n"
    return capsule


@scenario(log("line_malformed", 4), log("log_altered", None))
def space_in_the_frame() -> Capsule:
    """No byte stands between the pieces of the frame."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[3] = capsule.lines[3].replace(b',"header":', b', "header":')
    return capsule


@scenario(log("line_malformed", 4), log("log_altered", None))
def third_piece() -> Capsule:
    """A line has two pieces, and nothing after them."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[3] = capsule.lines[3][:-2] + b',"more":1}\n'
    return capsule


@scenario(log("header_malformed", 4))
def header_without_clock() -> Capsule:
    """A header has all its fields."""
    capsule, at = born()
    capsule.add("input", said("x"), at, clock="-")
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("header_malformed", 4))
def header_with_float() -> Capsule:
    """A seq with a fraction is no integer."""
    capsule, at = born()
    capsule.add("input", said("x"), at, seq=3.0)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("header_malformed", 4))
def header_with_upper_case_machine() -> Capsule:
    """Digests are lower case."""
    capsule, at = born()
    capsule.add("input", said("x"), at, machine=at.machine.upper())
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("header_malformed", 4))
def header_with_strange_kind() -> Capsule:
    """A kind is a short word."""
    capsule, at = born()
    capsule.add("Input!", said("x"), at)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("body_altered", 4))
def header_with_named_hash() -> Capsule:
    """No file can ask for another hash: a digest with a name before it equals nothing."""
    capsule, at = born()
    body = said("x") | {"salt": "salt000000000000000003"}
    capsule.add("input", body, at, body="sha256:" + digest(canonical(body)))
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("body_altered", 4), log("log_altered", None))
def altered_body() -> Capsule:
    """A body that was changed is found by its digest; the chain goes on."""
    capsule = turn()[0]
    capsule.seal()
    capsule.lines[3] = capsule.lines[3].replace(b"Mend it.", b"Mend me.")
    return capsule


@scenario(log("body_altered", 4), log("log_altered", None))
def altered_digest_of_body() -> Capsule:
    """When the digest in the header was changed, the next line is not blamed for the new id."""
    capsule = turn()[0]
    capsule.seal()
    at = capsule.lines[3].index(b'"body":"') + 9
    capsule.lines[3] = capsule.lines[3][:at] + b"0000" + capsule.lines[3][at + 4 :]
    return capsule


@scenario(log("body_null", 4))
def body_gone() -> Capsule:
    """A body is null only when a redaction says so, and there is none."""
    capsule, at = born()
    capsule.add("input", None, at)
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("body_malformed", 4))
def body_without_salt() -> Capsule:
    """Every body has a salt, those of unknown kinds too."""
    capsule, at = born()
    capsule.add("later", None, at, raw=b'{"x":1}')
    capsule.add("turn_ended", ended("t"), at)
    return capsule


@scenario(log("body_malformed", 4))
def body_is_a_list() -> Capsule:
    """A body is an object."""
    capsule, at = born()
    capsule.add("later", [1, 2], at)
    return capsule


@scenario(log("body_malformed", 4), log("body_malformed", 5), log("body_malformed", 6))
def body_of_another_shape() -> Capsule:
    """A known kind has its shape: fields missing, of another type, an unknown type of part."""
    capsule, at = born()
    capsule.add("input", {"author": "you", "request": "r1"}, at)
    capsule.add("tool_outcome", outcome("t", "x", milliseconds=1.0), at)
    capsule.add("input", said("x") | {"parts": [{"type": "sculpture"}]}, at)
    return capsule


@scenario(*(log("body_malformed", line) for line in range(4, 9)))
def body_with_wrong_values() -> Capsule:
    """Words, lists, nulls and digests have their shape, too."""
    capsule, at = born()
    capsule.add("turn_ended", {"reason": "bored", "turn": "t"}, at)
    capsule.add("input", said("x") | {"parts": {"text": "x", "type": "text"}}, at)
    capsule.add("input", said("x") | {"author": None}, at)
    media = {"blob": {"media_type": "x", "sha256": "SHA256:ab", "size": 1}, "media_type": "x"}
    capsule.add("input", said("x") | {"parts": [media | {"type": "media"}]}, at)
    capsule.add("configured", {"model": "m", "options": {"temperature": -1}, "system": ""}, at)
    return capsule


@scenario(log("body_malformed", 4))
def heads_of_another_shape() -> Capsule:
    """`heads` has the same shape in every kind."""
    capsule, at = born()
    capsule.add("later", {"heads": [{"id": "x"}]}, at)
    return capsule
