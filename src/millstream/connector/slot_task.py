"""A function that runs in the worker of a slot, between epochs.

Promises: a task is a value that can be pickled; its result is a JSON value.
Does not know: engines, what the function does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SlotTask:
    """A function and the slot whose worker should run it; the slot is taken modulo the number of slots.

    The engine may run the function more than once, also at the same time and in another worker, and takes the result of
    one of these attempts. So the function must be idempotent."""

    slot: int
    run: Callable[[], Any]
