"""Adapters of the `Model` port: providers over HTTP, scripted replies, an echo (docs/models.md)."""
