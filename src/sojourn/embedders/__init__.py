"""Adapters of the `Embedder` port: texts as vectors whose nearness is nearness of meaning."""
