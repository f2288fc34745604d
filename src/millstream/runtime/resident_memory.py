"""The resident memory (RSS) of this process.

Promises: the bytes that are resident now, not the peak; None where the system does not report them.
Does not know: what the memory is used for."""

from __future__ import annotations

import os

_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0


def resident_memory() -> int | None:
    """Return the resident bytes of this process."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_SIZE
    except OSError:
        return None
