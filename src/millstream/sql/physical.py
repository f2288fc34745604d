"""Physical plans: operators with the changelog they make, how their input is dealt out, and their upsert keys.

Promises: a frozen tree whose nodes say everything that translation and EXPLAIN need.
Does not know: programs, jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from millstream.sql import types as t


class ChangelogMode(Enum):
    """The kinds of change in a stream of rows."""

    INSERT_ONLY = "I"
    RETRACT = "I,UB,UA,D"
    UPSERT = "I,UA,D"

    @property
    def insert_only(self) -> bool:
        """Whether nothing is ever corrected."""
        return self is ChangelogMode.INSERT_ONLY


@dataclass(frozen=True)
class Distribution:
    """How rows are dealt out to subtasks: forward, to one, or by the hash of key columns."""

    kind: str = "forward"
    keys: tuple[int, ...] = ()


FORWARD, SINGLE = Distribution(), Distribution("single")


def by_hash(keys: tuple[int, ...]) -> Distribution:
    """By the hash of columns; to one subtask where there are none."""
    return Distribution("hash", keys) if keys else SINGLE


@dataclass(frozen=True, eq=False)
class Operation:
    """One operator of a physical plan. `spec` is its operator, `source` or `sink` its end of the world."""

    name: str
    detail: str
    schema: t.RowType
    inputs: tuple[Operation, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    spec: Any = None
    source: Any = None
    sink: Any = None
    mode: ChangelogMode = ChangelogMode.INSERT_ONLY
    upsert_keys: frozenset[tuple[int, ...]] = frozenset()
    stream: Any = field(default=None)
    parallelism: int | None = None


def walk(operation: Operation) -> Iterator[Operation]:
    """The operation and all before it."""
    yield operation
    for each in operation.inputs:
        yield from walk(each)
