"""`python -m sojourn` is the command line."""

from sojourn.cli.main import entry

if __name__ == "__main__":
    entry()
