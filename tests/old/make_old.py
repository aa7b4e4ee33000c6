"""Makes capsules of every shape with the version that is installed (tests/old/README.md).

    python tests/old/make_old.py FOLDER

FOLDER gets `folders/`, `archives/` and `allowed_signers`; it must not be there yet. Each shape is
made by commands for bash, one shape after the other, in one folder; `state` is this machine, and
with `as_other` another one.
"""

import getpass
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

BIN = Path(sys.executable).parent

WRITES = [
    {"calls": [{"tool": "write", "args": {"path": "notes.txt", "content": "first\n"}}]},
    {"text": "Written."},
    {"calls": [{"tool": "write", "args": {"path": "more.txt", "content": "more\n"}}]},
    {"text": "Written, too."},
    {"text": "Said."},
    {"text": "Said again."},
    {"text": "Said once more."},
]
TOOLS = [
    {
        "text": "I look.",
        "calls": [
            {"tool": "write", "args": {"path": "a.txt", "content": "one\ntwo\n"}},
            {"tool": "shell", "args": {"command": "cat a.txt; exit 3"}},
        ],
    },
    {"calls": [{"tool": "edit", "args": {"path": "a.txt", "old": "two", "new": "three"}}]},
    {"calls": [{"tool": "todo", "args": {"items": [{"text": "look", "done": True}]}}]},
    {"calls": [{"tool": "read", "args": {"path": "nothing.txt"}}]},
    {"text": "Done."},
]
LARGE = [
    {
        "calls": [{"tool": "list", "args": {"path": "deep/" * 370 + str(n)}} for n in range(150)],
    },
    {"text": "long " * 8000},
]
CUT_OFF = [
    {
        "calls": [{"tool": "shell", "args": {"command": "echo > begun; sleep 99"}}],
        "if_unknown": "c",
    },
    {"text": "It went well."},
    {"name": "c", "text": "It is not known whether it happened."},
]

GARBLE = (
    'python3 -c \'import pathlib; p = pathlib.Path("repaired/memory/timeline_events.jsonl"); '
    'lines = p.read_bytes().split(b"\\n"); lines[6] = lines[6].replace(b"body", b"b\\0dy"); '
    'p.write_bytes(b"\\n".join(lines))\''
)
"""Garbles a line of a log and leaves the others alone."""

INIT = "mkdir -p work-{0} && sojourn init {0} -n {0} -m scripted/{1} --workspace work-{0} -q"

SHAPES = {
    "fresh": [INIT.format("fresh", "writes.json")],
    "turn_with_tools": [
        INIT.format("turn_with_tools", "tools.json"),
        "sojourn run turn_with_tools 'look at it' -p",
    ],
    "notes_edited": [
        INIT.format("notes_edited", "writes.json"),
        "sojourn run notes_edited hello -p",
        "printf '\\n## Plans\\n\\n- to look again\\n' >> notes_edited/memory/working_memory.md",
        "sojourn run notes_edited again -p",
    ],
    "snapshots": [
        INIT.format("snapshots", "writes.json"),
        "sojourn run snapshots 'write it' -p",
        "for n in 1 2 3 4; do echo $n > work-snapshots/notes.txt; "
        "sojourn snapshot take snapshots -q; done",
        'sojourn snapshot restore snapshots "$(sojourn snapshot list snapshots --json '
        "| python3 -c 'import json, sys; "
        'print(json.load(sys.stdin)["snapshots"][1]["event"])\')"',
    ],
    "unknown_settled": [
        INIT.format("unknown_settled", "cut_off.json"),
        "setsid sojourn run unknown_settled wait >/dev/null 2>&1 & agent=$!; "
        "until [ -s work-unknown_settled/begun ]; do sleep 0.05; done; "
        "kill -9 $agent; wait $agent 2>/dev/null || true; sojourn resume unknown_settled -p",
    ],
    "forked": [
        INIT.format("parent", "writes.json"),
        "sojourn run parent 'write it' -p",
        "sojourn fork parent forked -n forked --workspace work-forked -q",
        "sojourn run forked 'go on' -p -m scripted/writes.json",
    ],
    "forked_in_a_turn": [
        "sojourn fork parent forked_in_a_turn -n forked --at 9 --workspace work-in-a-turn -q",
    ],
    "claimed": [
        "cp -r parent claimed",
        "as_other sojourn claim ./claimed --forced --yes -q --workspace work-claimed",
        "as_other sojourn run ./claimed 'go on' -p -m scripted/writes.json",
    ],
    "merged": [
        "cp -r parent merged-there && cp -r claimed merged-other",
        "sojourn run parent 'at home' -p",
        "sojourn merge parent merged-other -q && cp -r parent merged",
    ],
    "large_bodies": [
        INIT.format("large_bodies", "large.json"),
        "sojourn run large_bodies hello -p",
    ],
    "redacted": [
        INIT.format("redacted", "writes.json"),
        "sojourn run redacted 'the word is plain' -p",
        "sojourn redact redacted 4 --reason 'it was a password' --yes -q",
    ],
    "snapshot_redacted": [
        INIT.format("snapshot_redacted", "writes.json"),
        "echo plain > work-snapshot_redacted/word; echo kept > work-snapshot_redacted/kept; "
        "sojourn snapshot take snapshot_redacted -q",
        "echo other > work-snapshot_redacted/word; sojourn snapshot take snapshot_redacted -q",
        "sojourn redact snapshot_redacted --path word --reason 'it was a password' --yes -q",
        "sojourn run snapshot_redacted 'write it' -p",
    ],
    "repaired": [
        INIT.format("repaired", "writes.json"),
        "sojourn run repaired 'write it' -p",
        f"{GARBLE}; sojourn repair repaired -q",
        "sojourn run repaired 'go on' -p",
    ],
    "merged_and_claimed": [
        INIT.format("origin", "writes.json"),
        "printf '# Plans\\n\\nnone\\n\\n# People\\n\\nnobody\\n' > origin/memory/working_memory.md",
        "sojourn run origin 'write it' -p && cp -r origin origin-there",
        "as_other sojourn claim ./origin-there --forced --yes -q --workspace work-there",
        "sed -i s/none/milk/ origin/memory/working_memory.md && sojourn run origin 'at home' -p",
        "sed -i 's/none/tea/; s/nobody/you/' origin-there/memory/working_memory.md && "
        "as_other sojourn run ./origin-there 'out there' -p -m scripted/writes.json",
        "sojourn merge origin origin-there -q && cp -r origin merged_and_claimed",
        "as_third sojourn claim ./merged_and_claimed --forced --yes -q --workspace work-third",
        "as_third sojourn run ./merged_and_claimed 'go on' -p -m scripted/writes.json",
    ],
    "environment_with_lock": [
        INIT.format("environment_with_lock", "writes.json"),
        "printf 'version = 1\\n' > environment_with_lock/environment/uv.lock",
        "sojourn run environment_with_lock hello -p",
    ],
}
"""A folder of each, and what makes it; a later one may use what an earlier one made."""

ARCHIVES = {
    "plain.tar": "sojourn export snapshots -o {} -q",
    "compressed.tar.zst": "sojourn export turn_with_tools -z -o {} -q",
    "signed.tar": "sojourn export notes_edited --sign key -o {} -q",
    "shared.tar": "sojourn export forked --purpose share -o {} -q",
    "without_workspace.tar": "sojourn export environment_with_lock --without-workspace -o {} -q",
    "at_an_event.tar": "sojourn export turn_with_tools --at 7 -o {} -q",
    "after_a_snapshot.tar.zst": "sojourn export snapshots --at 14 -z -o {} -q",
    "merged.tar.zst": "sojourn export parent -z -o {} -q",
    "large_bodies.tar.zst": "sojourn export large_bodies -z -o {} -q",
    "redacted.tar.zst": "sojourn export redacted -z -o {} -q",
    "snapshot_redacted.tar.zst": "sojourn export snapshot_redacted -z -o {} -q",
    "repaired.tar.zst": "sojourn export repaired -z -o {} -q",
    "merged_notes.tar.zst": "sojourn export origin -z -o {} -q",
}


def main() -> None:
    """Make the set."""
    target = Path(sys.argv[1]).absolute()
    target.mkdir(parents=True)
    (target / "folders").mkdir()
    (target / "archives").mkdir()
    with tempfile.TemporaryDirectory(prefix="old-") as name:
        folder = Path(name)
        prepare(folder)
        for shape, commands in SHAPES.items():
            run(folder, commands)
            pack(folder / shape, target / "folders" / f"{shape}.tar.gz")
        for file, command in ARCHIVES.items():
            run(folder, [command.format(file)])
            shutil.copyfile(folder / file, target / "archives" / file)
        shutil.copy(folder / "allowed_signers", target)
        check(folder, target)


def prepare(folder: Path) -> None:
    """Scripts of models, and a key for signing that is thrown away."""
    scripts = {"writes": WRITES, "tools": TOOLS, "large": LARGE, "cut_off": CUT_OFF}
    for name, steps in scripts.items():
        (folder / f"{name}.json").write_text(json.dumps({"steps": steps}))
    run(folder, ["ssh-keygen -q -t ed25519 -N '' -C '' -f key"])
    public = (folder / "key.pub").read_text()
    (folder / "allowed_signers").write_text(f"signer {public}")


def run(folder: Path, commands: list[str]) -> None:
    """Run commands for bash, each of which must succeed."""
    head = "set -e; "
    for name in ("other", "third"):
        head += f'as_{name}() {{ SOJOURN_HOME="$PWD/{name}" "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", head + "\n".join(commands)],
        cwd=folder,
        env={
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "SOJOURN_HOME": str(folder / "state"),
        },
        capture_output=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{commands}: {done.stdout.decode()}{done.stderr.decode()}")


def pack(folder: Path, file: Path) -> None:
    """The folder in an archive, without who made it and when."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.mtime = 0
        info.uname = info.gname = ""
        return info

    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        tar.add(folder, arcname=".", filter=plain)
    file.write_bytes(gzip.compress(held.getvalue(), mtime=0))


def check(made_in: Path, target: Path) -> None:
    """Refuse what tells where it was made, and what `scan` takes for a secret."""
    told = [str(made_in), made_in.name, os.uname().nodename, *_user(), str(BIN.parent.parent)]
    told += [f"{tempfile.gettempdir()}/", "/home/", "/root/"]
    any_of = "|".join(map(re.escape, told))
    words = re.compile(f"(?<![A-Za-z0-9_-])(?:{any_of})(?![A-Za-z0-9_-]|$)".encode())
    for name in SHAPES:
        for path in filter(Path.is_file, (made_in / name).rglob("*")):
            found = words.search(path.read_bytes())
            if found is not None:
                sys.exit(f"{path} holds {found[0].decode()}")
        run(made_in, [f"sojourn scan ./{name}"])
    if sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) > 2_000_000:
        sys.exit("the set is larger than 2 MB")


def _user() -> list[str]:
    """The user's name where it says something."""
    return [name for name in (getpass.getuser(),) if name != "root"]


if __name__ == "__main__":
    main()
