"""The machine's one daemon: what other machines, and this one's commands, may ask of it."""
