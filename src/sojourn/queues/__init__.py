"""Adapters of the `Queue` port."""
