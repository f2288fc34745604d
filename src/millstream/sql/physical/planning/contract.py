"""What planning functions use: the session's settings, and the planner of their inputs.

Promises: a node that several others read is planned once.
Does not know: how nodes are planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from millstream.sql.functions.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.logical import nodes as l
from millstream.sql.physical.nodes import Operation


@dataclass
class Settings:
    """Settings of the session that planning depends on."""

    zone: str = "UTC"
    mini_batch: bool = False
    ttl: int | None = None
    batch: bool = False
    asynchronous: AsyncOptions = ASYNC_DEFAULTS
    mini_batch_size: int | None = None
    two_phase: bool = True
    distinct_buckets: int | None = None
    catalyst: bool = False
    asynchronous_tables: AsyncOptions = ASYNC_DEFAULTS


class Planning(Protocol):
    """Plans queries. `versions` is whether a consumer reads every version of a row, not only the last one."""

    settings: Settings
    versions: bool
    lookup: Callable[[l.TemporalJoin, Operation], Operation | None]

    def plan(self, node: l.Plan, *, before: bool = True) -> Operation:
        """Create the physical plan of a logical one. `before` is whether -U rows are needed."""
