"""What the commands that carry and verify capsules print with --json."""

from typing import Literal

from sojourn.cli.shapes import Answer, CapsuleShape, FaultShape, Shape


class SealShape(Shape, frozen=True, kw_only=True):
    """The seal of a capsule: how many there were, what for, and the sha256 of its manifest."""

    number: int
    purpose: Literal["backup", "fork", "move", "share"]
    without_workspace: bool
    manifest: str


class SignatureShape(Shape, frozen=True, kw_only=True):
    """A good signature; `principal` is the allowed signer, null when no list was given."""

    fingerprint: str
    kind: str
    principal: str | None


class ExportAnswer(Answer, frozen=True, kw_only=True):
    """`export`: the archive that was written; `new` unless it was sealed like that before.

    `redacted` counts what was redacted since the seal before: archives of earlier seals hold it.
    """

    capsule: CapsuleShape
    file: str
    size: int
    members: int
    seal: SealShape
    new: bool
    signer: str | None
    compressed: bool
    encrypted: bool
    redacted: int = 0


class ImportAnswer(Answer, frozen=True, kw_only=True):
    """`import`: what arrived; `folder` is null when it was not kept, or where it was already.

    `id` and `name` are those of the archive's capsule, `made` the id of the one that --as-new made.
    """

    outcome: Literal["imported", "forked", "same", "declined"]
    id: str
    name: str
    made: str | None
    folder: str | None
    seal: SealShape
    signature: SignatureShape | None
    doubts: tuple[FaultShape, ...]
    holder: str
    epoch: int
    machines: int
    events: int
    size: int
    first_time: str | None
    last_time: str | None
    model: str | None
    entries: int
    missing_secrets: tuple[str, ...]
    missing_tools: tuple[str, ...]


class SignAnswer(Answer, frozen=True, kw_only=True):
    """`sign`: the archive that holds the signature now."""

    file: str
    signature: SignatureShape


class VerifyAnswer(Answer, frozen=True, kw_only=True):
    """`verify`: `sound` when there is no failure; notices do not keep a capsule from running.

    `seal` and `signature` are null for a live capsule; of an archive `folder` is the file.
    """

    capsule: CapsuleShape
    sound: bool
    log_bytes: int
    blobs: int
    failures: tuple[FaultShape, ...]
    notices: tuple[FaultShape, ...]
    seal: SealShape | None
    signature: SignatureShape | None
