"""VIEW to REQUEST and REPLY to PARTS, pure: one API a dialect (docs/rendering.md)."""

from sojourn.render.dialect import Dialect, dialect, dialects
from sojourn.render.kept import Kept, Needed
from sojourn.render.reply import Delta, Reply, ReplyReader, StreamEvent
from sojourn.render.request import (
    Constraints,
    Loss,
    Rendered,
    Target,
    blobs_needed,
    render_bytes,
)

__all__ = [
    "Constraints",
    "Delta",
    "Dialect",
    "Kept",
    "Loss",
    "Needed",
    "Rendered",
    "Reply",
    "ReplyReader",
    "StreamEvent",
    "Target",
    "blobs_needed",
    "dialect",
    "dialects",
    "render_bytes",
]
