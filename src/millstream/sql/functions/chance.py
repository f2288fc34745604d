"""Random values inside an epoch.

Promises: what is drawn follows from the epoch's moment, the seed and the number of draws before in the same frame, so a
replay of the epoch draws the same.
Does not know: who draws."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np


def generator(frame: Any, seed: int | None) -> np.random.Generator:
    """A source of random numbers for one column."""
    return np.random.default_rng([abs(int(frame.now)), 0 if seed is None else abs(int(seed)), frame.count])


def uuids(frame: Any) -> list[str]:
    """As many UUIDs as there are rows."""
    drawn = generator(frame, 4122).bytes(16 * frame.count)
    return [str(uuid.UUID(bytes=drawn[i : i + 16], version=4)) for i in range(0, 16 * frame.count, 16)]
