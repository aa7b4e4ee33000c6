"""What a machine remembers of a capsule's seals (docs/protocol.md#ledger)."""

import msgspec

from sojourn.format.body import Head


class SealSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The newest seal that this machine made or met: its manifest, the heads then, who signed it.

    `signer` is the fingerprint of the key, and stays when a later copy comes without a signature.
    """

    number: int = 0
    manifest: str | None = None
    signer: str | None = None
    heads: tuple[Head, ...] = ()
