"""Suites of rules, one a port, to run on every adapter: those of sojourn and anybody's own."""
