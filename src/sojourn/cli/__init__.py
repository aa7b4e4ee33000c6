"""The command line: one file a command, each calling `sojourn.agent`."""
