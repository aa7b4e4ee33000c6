"""Adapters of the `Store` port: where capsules lie."""
