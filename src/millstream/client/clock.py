"""The clock of the process, for the parts of the API that schedule something.

Promises: the control plane is imported on the first call.
Does not know: what the time is used for."""

from __future__ import annotations

import importlib

from millstream.times import Clock


def system_clock() -> Clock:
    """Return the clock of this machine."""
    clock: Clock = importlib.import_module("millstream.cluster.entrypoint").SystemClock()
    return clock
