"""Vectors about the manifest, and the paths in it."""

from collections.abc import Callable
from typing import Any

from format_bodies import table, turn, with_file
from format_builder import GONE, MANIFEST, Capsule, Expected, canonical, digest


def manifest_bytes(data: Callable[[bytes], bytes]) -> Callable[[], Capsule]:
    """A sound turn whose manifest's bytes are changed."""

    def build() -> Capsule:
        capsule = turn()[0]
        capsule.seal()
        capsule.files[MANIFEST] = data(capsule.files[MANIFEST])
        return capsule

    return build


def manifest_with(**changes: Any) -> Callable[[], Capsule]:
    """A sound turn whose manifest has these fields."""

    def build() -> Capsule:
        capsule = turn()[0]
        capsule.seal(**changes)
        return capsule

    return build


def manifest_without(field: str) -> Callable[[], Capsule]:
    """A sound turn whose manifest lacks a field."""

    def build() -> Capsule:
        capsule = turn()[0]
        value = capsule.seal()
        del value[field]
        capsule.files[MANIFEST] = canonical(value) + b"\n"
        return capsule

    return build


def bad(code: str) -> tuple[Expected, ...]:
    return ((code, MANIFEST, 1),)


def form(**changes: Any) -> dict[str, Any]:
    return {"name": "sojourn.capsule", "read": 1, "write": 1} | changes


def features(**changes: Any) -> dict[str, Any]:
    return {"optional": [], "required": []} | changes


LISTED = {"sha256": digest("x"), "size": 1}

table(
    {
        "manifest_gone": (
            "Without a manifest the log is still read.",
            lambda: with_file(MANIFEST, GONE),
            (("manifest_missing", MANIFEST, None),),
        ),
        "manifest_half_written": (
            "Half a manifest is no JSON.",
            manifest_bytes(lambda data: data[: len(data) // 2]),
            bad("not_json"),
        ),
        "manifest_of_nul": (
            "Nor is a manifest of NUL.",
            manifest_bytes(lambda data: bytes(len(data))),
            bad("not_json"),
        ),
        "manifest_empty": ("Nor is an empty one.", manifest_bytes(lambda _: b""), bad("not_json")),
        "manifest_with_bom": (
            "A byte order mark is refused.",
            manifest_bytes(lambda data: b"\xef\xbb\xbf" + data),
            bad("bom"),
        ),
        "manifest_in_utf_16": (
            "There is no encoding but UTF-8.",
            manifest_bytes(lambda data: data.decode().encode("utf-16")),
            bad("not_utf8"),
        ),
        "manifest_with_two_epochs": (
            "The same key twice is refused.",
            manifest_bytes(lambda data: data.replace(b'"epoch":1', b'"epoch":1,"epoch":2')),
            bad("duplicate_key"),
        ),
        "manifest_with_trailing_data": (
            "Nothing follows the value.",
            manifest_bytes(lambda data: data + b"{}\n"),
            (("not_json", MANIFEST, 2),),
        ),
        "manifest_too_long": (
            "A manifest is at most 64 MiB.",
            manifest_bytes(lambda data: data + b" " * 2**26),
            bad("too_long"),
        ),
        "manifest_is_a_list": (
            "A manifest is an object.",
            manifest_bytes(lambda data: b"[" + data + b"]"),
            bad("manifest_malformed"),
        ),
        "manifest_laid_out": (
            "Strict is enough: spaces and another order are no failure.",
            manifest_bytes(lambda data: b"\n " + data.replace(b'":', b'" :\n')),
            (),
        ),
        "manifest_without_holder": (
            "A manifest has all its fields.",
            manifest_without("holder"),
            bad("manifest_malformed"),
        ),
        "manifest_without_format": (
            "The format is one of them.",
            manifest_without("format"),
            bad("manifest_malformed"),
        ),
        "manifest_with_epoch_0": (
            "Epochs begin with 1.",
            manifest_with(epoch=0),
            bad("manifest_malformed"),
        ),
        "manifest_with_named_hash": (
            "No file can ask for another hash.",
            manifest_with(capsule="md5:" + "0" * 32),
            bad("manifest_malformed"),
        ),
        "manifest_with_unknown_fields": (
            "Unknown fields are kept and ignored.",
            manifest_with(later={"n": [1]}, features=features(optional=["colour"])),
            (),
        ),
        "other_format": (
            "Another format is refused by its name, and nothing else is read.",
            manifest_with(format=form(name="other.capsule"), epoch="?"),
            bad("format_unknown"),
        ),
        "newer_read_version": (
            "A newer read version is refused, whatever else the manifest holds.",
            manifest_with(format=form(read=2, write=2), timeline="elsewhere"),
            bad("read_version_newer"),
        ),
        "newer_write_version": (
            "A newer write version is read, and not written.",
            manifest_with(format=form(write=2)),
            bad("write_version_newer"),
        ),
        "required_feature": (
            "A required feature that is not known is refused by name.",
            manifest_with(features=features(required=["folding"])),
            bad("feature_unknown"),
        ),
    }
)

for _name, _path in {
    "parent": "../x",
    "absolute": "/x",
    "inner_parent": "a/../../b",
    "dot": "./x",
    "empty_part": "a//b",
    "control": "a\x07b",
    "backslash": "..\\x",
    "drive": "C:x",
    "stream": "a:b",
    "reserved": "environment/nul.txt",
    "trailing_dot": "a./b",
    "trailing_space": "a ",
    "not_nfc": "e\u0301",
    "long_part": "x" * 256,
    "long_path": "x/" * 512 + "x",
    "line_feed": "a\n",
    "log": "memory/timeline_events.jsonl",
    "manifest": "manifest.json",
    "blob": "artifacts/blobs/" + "0" * 64,
    "space": "a b",
}.items():
    table(
        {
            f"path_{_name}": (
                "A path that could lead out, or that some system reads in its own way, is refused.",
                manifest_with(files={_path: LISTED}),
                bad("path_unsafe"),
            )
        }
    )
