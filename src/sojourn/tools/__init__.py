"""Adapters of the `Tool` port: what an agent can do, each with its replay rule."""
