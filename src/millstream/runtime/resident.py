"""How much memory this process has.

Promises: the resident bytes of now, not of the worst moment so far; None where the system does not tell.
Does not know: what they are used for."""

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0


def resident_bytes() -> int | None:
    """The bytes of this process that are in memory."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        return None
