"""What the handlers of REST requests need.

Promises: time, ids and jobs are arguments.
Does not know: handlers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.cluster.dispatcher import Dispatcher
from millstream.times import Clock


@dataclass(frozen=True)
class RestContext:
    """The jobs of this process, its clock, and a source of random ids."""

    dispatcher: Dispatcher
    clock: Clock
    new_id: Callable[[], str]
