"""Vectors of archives: each one fault away from a sound one, made with the tarfile of Python."""

import tarfile
from typing import Any

from format_bodies import turn
from format_builder import LOG, MANIFEST, digest, pieces
from format_seals import sealed

BLOB = f"artifacts/blobs/{digest(b'x')}"
LONG = "environment/" + "d" * 120 + "/a.txt"
Files = dict[str, bytes]

ARCHIVES: dict[str, dict[str, Any]] = {}


def member(path: str, data: bytes, **fields: Any) -> bytes:
    """A member's blocks, with these fields of the header."""
    info = tarfile.TarInfo(path)
    info.size = len(data)
    for name, value in fields.items():
        setattr(info, name, value)
    return info.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % 512)


def live_manifest() -> bytes:
    """The manifest of a capsule that is not sealed."""
    made = turn()[0]
    made.seal()
    return made.files[MANIFEST]


END = bytes(1024)


def tar(*members: bytes, end: bytes = END) -> bytes:
    return b"".join(members) + end


def capsule() -> Files:
    """The files of a sealed capsule."""
    made = sealed()
    blobs = {f"artifacts/blobs/{name}": data for name, data in made.blobs.items()}
    return {**made.files, LOG: b"".join(made.lines), **blobs}


def whole(files: Files) -> bytes:
    return tar(*(member(path, data) for path, data in sorted(files.items())))


def vector(name: str, says: str, data: bytes, *expect: str) -> None:
    """Keep a vector; `expect` is the failure, none for a sound archive."""
    ARCHIVES[name] = {"says": says, "expect": list(expect), "data": pieces(data, run=32)}


def edited(at: int, new: bytes, *, sums: bool = True) -> bytes:
    """One member whose header has other bytes, with a fitting sum."""
    head = bytearray(member("VERIFY.txt", b"x"))
    head[at : at + len(new)] = new
    if sums:
        head[148:156] = b" " * 8
        head[148:156] = b"%06o\0 " % sum(head[:512])
    return tar(bytes(head))


def pax(records: bytes, path: str = LONG, size: int = 1) -> bytes:
    """A member with these records in front."""
    plain = tarfile.TarInfo("././@PaxHeader")
    plain.mode, plain.size, plain.type = 0, len(records), tarfile.XHDTYPE
    info = tarfile.TarInfo(path[:100])
    info.size = size
    front = plain.tobuf(tarfile.USTAR_FORMAT) + records + bytes(-len(records) % 512)
    return front + info.tobuf(tarfile.USTAR_FORMAT) + b"x" + bytes(511)


def record(key: str, value: str) -> bytes:
    size = len(f" {key}={value}\n") + 1
    size += len(str(size + len(str(size)) - 1)) - 1
    return f"{size} {key}={value}\n".encode()


A, B = member("SHA256SUMS", b"a"), member("VERIFY.txt", b"b" * 600)
vector("whole", "A sealed capsule.", whole(capsule()))
vector("two_members", "Members are what they are, whatever the capsule.", tar(A, B))
vector("long_path", "A path above 100 bytes stands in front.", tar(member(LONG, b"x")))
vector("nothing", "Nothing is no archive.", b"", "archive_cut")
vector("only_the_end", "An archive begins with a member.", END, "archive_empty")
vector("zip", "A zip is none.", b"PK\3\4" + bytes(600), "archive_empty")
vector("cut_in_a_header", "A half header.", tar(A, B)[:1500], "archive_cut")
vector("cut_in_a_content", "A half content.", tar(A, B)[:1700], "archive_cut")
vector("cut_before_the_end", "No end.", tar(A, B, end=b""), "archive_cut")
vector("half_an_end", "Half an end.", tar(A, B, end=bytes(512)), "archive_cut")
vector("more_after_the_end", "One more byte.", tar(A, B) + b"\0", "archive_trailing")
vector("second_archive", "An archive after the archive.", tar(A) + tar(B), "archive_trailing")
vector(
    "half_end_then_member",
    "One block of zeros ends nothing.",
    tar(A, bytes(512), B),
    "archive_header",
)
vector("padding", "What fills up is zero.", tar(A[:-1] + b"x", B), "archive_padding")
vector("wrong_sum", "The sum fits.", edited(100, b"0000755", sums=False), "archive_header")
vector("other_mode", "Every mode is 0644.", edited(100, b"0000755"), "archive_header")
vector("user", "Nobody is named.", edited(108, b"0001750"), "archive_header")
vector("group", "No group either.", edited(116, b"0001750"), "archive_header")
vector("time", "There is no time.", edited(136, b"14731500000"), "archive_header")
vector("user_name", "Nor a user's name.", edited(265, b"root"), "archive_header")
vector("device", "Nor a device.", edited(329, b"0000000"), "archive_header")
vector("prefix", "Paths are not split.", edited(345, b"memory"), "archive_header")
vector("gnu", "The form is ustar.", edited(257, b"ustar  \0"), "archive_empty")
vector(
    "size_in_binary", "Sizes are octal.", edited(124, b"\x80" + bytes(10) + b"\1"), "archive_header"
)
vector("size_with_spaces", "With zeros in front.", edited(124, b"          1"), "archive_header")
vector("bytes_after_the_path", "Nothing stands after a path.", edited(20, b"x"), "archive_path")
for name, kind in (
    ("symlink", b"2"),
    ("hard_link", b"1"),
    ("folder", b"5"),
    ("pipe", b"6"),
    ("device_file", b"3"),
    ("old_type", b"\0"),
    ("contiguous", b"7"),
    ("global_header", b"g"),
    ("long_name_of_gnu", b"L"),
    ("sparse", b"S"),
):
    vector(f"type_{name}", "Members are plain files.", edited(156, kind), "archive_type")
vector(
    "link_with_a_target",
    "Also when it says where it leads.",
    tar(member("VERIFY.txt", b"", type=tarfile.SYMTYPE, linkname="../../x")),
    "archive_type",
)
for name, path in (
    ("up", "../VERIFY.txt"),
    ("up_inside", "environment/../../x"),
    ("absolute", "/environment/x"),
    ("home", "~/x"),
    ("dot", "./VERIFY.txt"),
    ("empty_part", "environment//x"),
    ("backslash", "environment\\x"),
    ("drive", "C:x"),
    ("stream", "environment/a:b"),
    ("reserved", "environment/nul.txt"),
    ("final_dot", "environment/x."),
    ("final_space", "environment/x "),
    ("letter", "environment/\u00e9"),
    ("hidden", ".sojourn-x"),
    ("no_blob", "artifacts/blobs/x"),
    ("named_hash", "artifacts/blobs/sha256:" + "0" * 64),
    ("upper_case_blob", "artifacts/blobs/" + "A" * 64),
    ("short_blob", "artifacts/blobs/" + "a" * 40),
    ("slash_at_the_end", "environment/x/"),
):
    data = member(path, b"x")
    vector(
        f"path_{name}",
        "Paths are those of a capsule.",
        tar(data),
        *(["archive_pax"] if name == "letter" else ["archive_path"]),
    )
vector("path_not_ascii", "Bytes of a path are ASCII.", edited(0, b"VERIFY\xc3"), "archive_path")
vector("not_sorted", "Members are sorted.", tar(B, A), "archive_order")
vector("twice", "Each stands there once.", tar(A, A), "archive_order")
vector(
    "other_content_twice",
    "Also with another content.",
    tar(A, member("SHA256SUMS", b"b")),
    "archive_order",
)
vector(
    "file_in_a_file",
    "No path lies in a member.",
    tar(
        member("environment/a", b""), member("environment/a-b", b""), member("environment/a/c", b"")
    ),
    "archive_path",
)
vector(
    "text_too_long",
    "A member has a limit.",
    tar(member("VERIFY.txt", b"x" * (2**14 + 1))),
    "archive_too_large",
)


def promised(path: str, size: int) -> bytes:
    """A header that promises a content which never comes."""
    info = tarfile.TarInfo(path)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT)


for name, path, size in (
    ("memory", "memory/working_memory.md", 2**20 + 1),
    ("manifest", MANIFEST, 2**26 + 1),
    ("lock_file", "environment/uv.lock", 2**26 + 1),
    ("file_of_terabytes", "environment/x", 2**42),
):
    vector(
        f"too_large_{name}",
        "A size is compared before the content is read.",
        promised(path, size),
        "archive_too_large",
    )
vector(
    "large_blob",
    "A blob may be large; this one is cut.",
    promised(BLOB, 2**40),
    "archive_cut",
)
vector(
    "pax_not_needed",
    "No extended header that says what fits.",
    tar(pax(record("path", "VERIFY.txt"), "VERIFY.txt")),
    "archive_pax",
)
vector(
    "pax_size_not_needed",
    "Nor a size that fits.",
    tar(pax(record("size", "1"), "VERIFY.txt")),
    "archive_pax",
)
vector(
    "pax_other_key",
    "Nor any other key.",
    tar(pax(record("mtime", "1") + record("path", LONG))),
    "archive_pax",
)
vector("pax_twice", "Nor a key twice.", tar(pax(record("path", LONG) * 2)), "archive_pax")
vector(
    "pax_other_path",
    "The header goes on with the path's beginning.",
    tar(pax(record("path", LONG), "VERIFY.txt")),
    "archive_pax",
)
vector(
    "pax_wrong_length",
    "A record has its length.",
    tar(pax(b"9" + record("path", LONG)[1:])),
    "archive_pax",
)
vector(
    "pax_up",
    "A long path is a path of a capsule, too.",
    tar(pax(record("path", "../" + LONG), "../" + LONG)),
    "archive_path",
)
vector(
    "pax_huge",
    "An extended header is short.",
    tar(pax(record("comment", "x" * 4000))),
    "archive_pax",
)
vector(
    "pax_of_a_link",
    "It stands before a file.",
    tar(pax(record("path", LONG))[:1024], member("x", b"", type=tarfile.SYMTYPE)),
    "archive_type",
)
vector(
    "pax_alone", "Something follows it.", tar(pax(record("path", LONG))[:1024]), "archive_header"
)
live = {path: data for path, data in capsule().items() if path not in ("SHA256SUMS", "VERIFY.txt")}
live[MANIFEST] = live_manifest()
vector("live_capsule", "An archive holds a sealed capsule.", whole(live), "archive_live")
for name, change, code in (
    ("without_manifest", {MANIFEST: None}, "manifest_missing"),
    ("without_a_blob", {f"artifacts/blobs/{digest(b'x = 1' + bytes([10]))}": None}, "blob_missing"),
    ("with_one_more_blob", {BLOB: b"x"}, "file_surplus"),
    ("with_one_more_file", {"environment/more": b"x"}, "file_surplus"),
    ("with_other_memory", {"memory/working_memory.md": b"x"}, "file_altered"),
    ("with_other_sums", {"SHA256SUMS": b"x"}, "file_altered"),
):
    files = {path: data for path, data in {**capsule(), **change}.items() if data is not None}
    vector(f"capsule_{name}", "The members are those that the manifest names.", whole(files), code)
