"""The engine of a trace, as an option of its jobs.

Promises: without an engine, jobs have no option that an earlier release does not know.
Does not know: what a case does."""

from __future__ import annotations

from millstream.options import ENGINE
from millstream_chaos.trace import Trace


def engine_options(trace: Trace) -> dict[str, str]:
    """Return the options that choose the engine of a trace."""
    return {ENGINE.key: trace.engine} if trace.engine else {}
