"""Events about the capsule itself in words: one line each."""

from typing import assert_never

from sojourn.cli.clean import one_line
from sojourn.cli.people import counted
from sojourn.cli.voice import Painted
from sojourn.format.capsule_kinds import (
    Activated,
    CapsuleBody,
    Claimed,
    Forked,
    Redacted,
    Repaired,
    Restored,
    Sealed,
    Snapshotted,
)


def of_capsule(body: CapsuleBody) -> tuple[str | Painted, ...]:
    """The line of an event, for people."""
    match body:
        case Forked():
            return (f"capsule {one_line(body.name)}, forked from {body.parent[:8]}",)
        case Claimed():
            line = f"{body.how} by {one_line(body.by, 24)}"
            return (line, Painted("  forced", "alarm")) if body.forced else (line,)
        case Activated():
            label = f" as {one_line(body.label, 24)}" if body.label else ""
            return (f"arrived{label} from machine {body.source[:8]}",)
        case Snapshotted():
            left = body.left_out_count
            line = counted(body.entries, "entry", "entries")
            return (line, Painted(f"  {left} left out", "warn")) if left else (line,)
        case Restored():
            if not body.missing:
                return ("workspace restored",)
            lost = counted(len(body.missing), "call")
            return ("workspace restored", Painted(f"  without the effects of {lost}", "warn"))
        case Sealed():
            return (f"seal {body.number}, for {body.purpose}",)
        case Redacted():
            files = counted(len(body.blobs), "content") + " of the workspace"
            what = files if body.event is None else f"event {body.event[:8]}"
            return (Painted(f"{what} by {one_line(body.by, 24)}", "warn"),)
        case Repaired():
            size = 0 if body.blob is None else body.blob.size
            what = f"{counted(size, 'byte')} set aside [{one_line(body.code, 32)}]"
            return (Painted(what, "warn"),)
        case _:
            assert_never(body)
