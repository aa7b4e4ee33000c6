"""The project that `sojourn demo` lets an agent mend, and the script of its model."""
