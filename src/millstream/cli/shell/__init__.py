"""The SQL shell: `millstream sql`."""

from millstream.cli.shell.script import pieces
from millstream.cli.shell.shell import Shell

__all__ = ["Shell", "pieces"]
