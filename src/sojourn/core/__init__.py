"""Values to decisions, pure (docs/protocol.md, docs/replay.md)."""
