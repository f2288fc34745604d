"""Physical plans: operators with their changelog modes, the distribution of their inputs, and their upsert keys.

Promises: a frozen tree whose nodes have everything that translation and EXPLAIN need.
Does not know: programs, jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.job.traits import OperatorTraits
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode


@dataclass(frozen=True)
class Distribution:
    """How rows are distributed to subtasks: forward, to a single one, or by the hash of key columns."""

    kind: str = "forward"
    keys: tuple[int, ...] = ()


FORWARD, SINGLE = Distribution(), Distribution("single")


def distribute_by_hash(keys: tuple[int, ...]) -> Distribution:
    """Distribute by the hash of columns; to a single subtask if there are none."""
    return Distribution("hash", keys) if keys else SINGLE


@dataclass(frozen=True)
class Origin:
    """The table that an operation reads, writes or looks up; from it, sources and sinks are created again."""

    name: tuple[str, ...]
    table: Any = field(compare=False)
    hints: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ScanOrigin(Origin):
    """A table that is read; `wanted` are the columns and fields that are read, None for all."""

    wanted: Any = None


@dataclass(frozen=True)
class LookupOrigin(Origin):
    """A table that is looked up by columns; `kept` are the indexes of the columns that are read, None for all."""

    columns: tuple[str, ...] = ()
    kept: tuple[int, ...] | None = None


@dataclass(frozen=True)
class PatternOrigin:
    """The description of a pattern, and the session's time zone."""

    description: Any
    zone: str


@dataclass(frozen=True)
class Identity:
    """The identity of an operator, independent of the operators around it: state is found by the uid."""

    uid: str
    traits: OperatorTraits


@dataclass(frozen=True, eq=False)
class Operation:
    """One operator of a physical plan: `spec` describes it; a `source` or `sink` connects it to a table.

    From `origin`, sources and sinks of stored plans are created again; `identity` is set for operators of a stored
    plan."""

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
    origin: Origin | PatternOrigin | None = None
    identity: Identity | None = None


def walk(operation: Operation) -> Iterator[Operation]:
    """Iterate over an operation and all operations before it."""
    yield operation
    for input_operation in operation.inputs:
        yield from walk(input_operation)
