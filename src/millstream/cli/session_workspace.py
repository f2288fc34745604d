"""The process of the SQL workspace of a session cluster: `python -m millstream.cli.session_workspace PIPE`.

Promises: the process runs until the cluster ends it. Statements of its sessions run in this process, and their jobs get
slots of the cluster like those of other programs.
Does not know: other programs, who opens sessions."""

from __future__ import annotations

import sys
import threading
from typing import Any

from millstream.cli.workspace import add_workspace
from millstream.client import hosted_program


def main(pipe: int) -> None:
    """Serve sessions with the options that standard input describes."""
    hosted_program.host(pipe, _wait, lambda description: add_workspace(description["settings"]))


def _wait(_: dict[str, Any]) -> dict[str, Any]:
    threading.Event().wait()
    raise AssertionError


if __name__ == "__main__":
    main(int(sys.argv[1]))
