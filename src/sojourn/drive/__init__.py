"""The loops that perform the decisions of core through ports."""
