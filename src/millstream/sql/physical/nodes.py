"""Physical plans: operators with the changelog they make, how their input is dealt out, and their upsert keys.

Promises: a frozen tree whose nodes say everything that translation and EXPLAIN need.
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
    """How rows are dealt out to subtasks: forward, to one, or by the hash of key columns."""

    kind: str = "forward"
    keys: tuple[int, ...] = ()


FORWARD, SINGLE = Distribution(), Distribution("single")


def by_hash(keys: tuple[int, ...]) -> Distribution:
    """By the hash of columns; to one subtask where there are none."""
    return Distribution("hash", keys) if keys else SINGLE


@dataclass(frozen=True)
class Origin:
    """How the part of an operation was made that is no plain value: the table it reads, writes or looks up."""

    name: tuple[str, ...]
    table: Any = field(compare=False)
    hints: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ScanOrigin(Origin):
    """A table is read, these columns and fields of it; None for all."""

    wanted: Any = None


@dataclass(frozen=True)
class LookupOrigin(Origin):
    """A table is looked up by columns; `kept` are the places of those that are read, None for all."""

    columns: tuple[str, ...] = ()
    kept: tuple[int, ...] | None = None


@dataclass(frozen=True)
class PatternOrigin:
    """A pattern is matched: its description, and the session's time zone."""

    description: Any
    zone: str


@dataclass(frozen=True)
class Identity:
    """Who an operator is, whatever stands around it: state is found by the uid."""

    uid: str
    traits: OperatorTraits


@dataclass(frozen=True, eq=False)
class Operation:
    """One operator of a physical plan. `spec` is its operator, `source` or `sink` its end of the world.

    `origin` says how what is not a plain value in it was made; `identity` is who it is, where a stored plan says so."""

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
    """The operation and all before it."""
    yield operation
    for each in operation.inputs:
        yield from walk(each)
