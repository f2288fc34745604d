"""Results of statements that run no job.

Promises: a result is a table with a schema, or OK.
Does not know: statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement: a schema with rows, or OK where there is no schema."""

    schema: t.RowType | None = None
    rows: tuple[tuple[Any, ...], ...] = ()


OK = StatementResult()


def make_string_result(names: list[str], rows: list[tuple[Any, ...]]) -> StatementResult:
    """Return a result whose columns are strings."""
    types: list[t.DataType] = [t.STRING for _ in names]
    return StatementResult(t.row_of(names, types, null=False), tuple(rows))
