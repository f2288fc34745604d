"""What statements answer.

Promises: columns and rows, or just OK.
Does not know: statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class Answer:
    """What a statement answers: columns and rows, or just OK."""

    schema: t.RowType | None = None
    rows: tuple[tuple[Any, ...], ...] = ()


OK = Answer()


def table_of(names: list[str], rows: list[tuple[Any, ...]]) -> Answer:
    """An answer of strings."""
    kinds: list[t.DataType] = [t.STRING for _ in names]
    return Answer(t.row_of(names, kinds, null=False), tuple(rows))
