"""How programs are run for tools."""
