"""The command line: `millstream <command>`."""

from millstream.cli.main import main

__all__ = ["main"]
