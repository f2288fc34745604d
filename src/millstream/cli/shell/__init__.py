"""The SQL shell: `millstream sql`."""

from millstream.cli.shell.shell import Shell
from millstream.cli.shell.statements import split_statements

__all__ = ["Shell", "split_statements"]
