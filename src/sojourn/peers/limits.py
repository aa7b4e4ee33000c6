"""Every limit of the link, in one place (docs/link.md#limits)."""

from typing import Final

PROTOCOL: Final = 1
"""Version of the link; both sides must speak the same one."""

CHUNK: Final = 256 * 1024
"""Bytes of a content in one frame."""

STREAM: Final = 64 * 1024 * 1024
"""Bytes of frames in one request; what is longer goes on in the next one."""

FRAMES: Final = 200_000
"""Frames in one request."""

CONTENT: Final = 1 << 44
"""Bytes of one content."""

SMALL: Final = 64 * 1024
"""Bytes of the body of a request about a move, and of a refusal."""

TEXT: Final = 8 * 1024 * 1024
"""Bytes of the body of a request that carries messages for an agent."""

ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer; a list of missing contents is the longest."""

LINE: Final = 4 * 1024 * 1024
"""Bytes of one line of a log."""

HEADERS: Final = 8 * 1024
"""Bytes of a request's line and headers."""

CONNECTIONS: Final = 64
"""Connections at once; another one is closed at once."""

STREAMS: Final = 8
"""Requests at once that bring contents."""

FOLLOWERS: Final = 32
"""Requests at once that wait for what is added to logs."""

REQUESTS: Final = 16
"""Other requests at once."""

NONCES: Final = 65_536
"""Requests of this start that are remembered, so that none is done twice."""

HEADERS_SECONDS: Final = 15.0
"""Until the headers of a begun request are whole."""

BODY_SECONDS: Final = 30.0
"""Until a small body is whole, and between two pieces of a stream."""

IDLE_SECONDS: Final = 900.0
"""How long a connection without a request is kept."""

CONNECT_SECONDS: Final = 10.0
SSH_SECONDS: Final = 45.0
"""Until the other side is reached; by ssh a person may have to type something."""

ANSWER_SECONDS: Final = 60.0
"""Until an answer begins."""

PREPARE_SECONDS: Final = 3600.0
"""Until the answer of a message that makes the target read everything it has got."""

BEAT_SECONDS: Final = 15.0
"""How often a followed log says that it is still there."""

DEAD_SECONDS: Final = 15
"""How long a connection may be silent below us before it counts as cut."""
