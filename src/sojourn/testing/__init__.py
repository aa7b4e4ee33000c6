"""Shipped for users and for our own tests: fakes, conformance suites, the kill-anywhere kit."""
