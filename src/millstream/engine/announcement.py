"""The line that says that an engine is being started, which can take many seconds.

Promises: the line is logged; on a terminal it is also written to standard error, never to standard output.
Does not know: engines."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("millstream.engine")
_is_hidden = False


def hide_announcements() -> None:
    """Write nothing to the terminal from now on: a display of this process shows the state of jobs itself."""
    global _is_hidden
    _is_hidden = True


def announce_start(engine: str) -> None:
    """Say that an engine is being started."""
    _log.info("starting %s", engine)
    if not _is_hidden and sys.stderr is not None and sys.stderr.isatty():
        print(f"millstream: starting {engine} ...", file=sys.stderr, flush=True)
