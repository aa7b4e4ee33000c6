"""Adapters of the key ports: where a machine keeps its key, and how it signs."""
