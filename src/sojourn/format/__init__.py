"""Bytes to values and back, pure (docs/format.md)."""
